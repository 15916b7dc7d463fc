"""Events in words: one line each for the board's log."""

from __future__ import annotations

from typing import Any

from workbench import events
from workbench.candidate import Evaluation
from workbench.events import EVENT_TYPES, Stamped

SPOKEN = tuple(name for name in EVENT_TYPES if name not in ("Asked", "Spent"))
"""Types of the events that have a line. The others need not be read for one: what a proposer was asked is the longest of all."""


def log_line(stamped: Stamped) -> dict[str, Any] | None:
    """The line of an event; None for those that people need not read."""
    said = _say(stamped.event)
    if said is None:
        return None
    level, text, candidate = said
    return {"seq": stamped.seq, "time": stamped.time, "level": level, "text": text, "candidate": candidate}


def microseconds(value: float) -> str:
    """Three significant digits and the unit."""
    return f"{value:.3g} µs" if value < 1e4 else f"{value / 1e3:.3g} ms"


def _say(event: events.Event) -> tuple[str, str, str] | None:
    match event:
        case events.RunStarted(task=task, proposers=proposers, elites_of=elites):
            seeded = f", seeded with the best of {elites}" if elites else ""
            return "info", f"run of {task.name} for {task.target}, proposers: {', '.join(proposers)}{seeded}", ""
        case events.Prepared(floor_us=floor, device=device, baselines=baselines, notes=notes):
            costs = [f"{base.name} {microseconds(base.timing.median_us)}" for base in baselines if base.timing is not None]
            return "info", f"the judge is ready on {device}: {', '.join([*costs, f'floor {microseconds(floor)}', *notes])}", ""
        case events.Proposed(proposal=proposal):
            made = proposal.candidate
            if made is None:
                return "info", f"no proposal for {proposal.brief}: {proposal.reason or 'no reason given'}", ""
            return "info", f"{made.id} by {made.proposer or 'unknown'}: {made.plan or 'no plan given'}", made.id
        case events.Submitted(candidate=mine):
            return "info", f"{mine.id} submitted by you", mine.id
        case events.Evaluated(evaluation=evaluation):
            return "info", _judged(evaluation), evaluation.candidate
        case events.BestChanged(candidate=best, time_us=time_us):
            return "info", f"{best} is the best so far: {microseconds(time_us)}", best
        case events.Migrated(candidate=moved, source=source, to=to):
            return "info", f"{moved} migrated from {source} to {to}", moved
        case events.Acted(verb=verb, argument=argument):
            return "info", f"you: {verb}{f' {argument}' if argument else ''}", ""
        case events.StateChanged(state=state, reason=reason):
            return "info", f"{state}{f': {reason}' if reason else ''}", ""
        case events.Noted(message=message, level=level):
            return level, message, ""
        case events.AcceptedCandidate(evidence=evidence, place=place):
            return "info", f"{evidence.candidate} accepted{f' ({place})' if place else ''}", evidence.candidate
        case events.Ended(reason=reason, best=best):
            return "info", f"the run ended: {reason}; best: {best or 'none is right'}", ""
    return None


def _judged(evaluation: Evaluation) -> str:
    word = evaluation.verdict.value.replace("_", " ")
    timing = evaluation.timing
    if timing is not None:
        return f"{evaluation.id} {word}, {microseconds(timing.median_us)}{' modelled' if timing.modelled else ''}"
    return f"{evaluation.id} {word}{f': {evaluation.reason}' if evaluation.reason else ''}"
