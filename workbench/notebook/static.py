"""A run as it stays in the notebook when widgets, kernel and store are gone: semantic HTML and plain text.

The HTML has no script and no style sheet, so it reads well after a sanitiser, on GitHub and in nbconvert. It is folded from the run's
events, so a run that was opened again looks like the live one.
"""

from __future__ import annotations

import html
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from workbench import events
from workbench.candidate import Candidate, Evaluation, Timing, Verdict
from workbench.notebook.bridge_record import Records
from workbench.task import Task

ROWS = 12
"""Variants in the table; the rest are counted below it."""

SIDES = ("left", "left", "left", "right", "left")
"""Where the text of each column stands. JupyterLab puts everything in tables to the right; its sanitiser lets this much style through."""


@dataclass
class Summary:
    """What the static output says, folded from a run's events one by one."""

    run: str = ""
    task: Task | None = None
    started: events.RunStarted | None = None
    prepared: events.Prepared | None = None
    state: str = "preparing"
    reason: str = ""
    best: tuple[str, str] | None = None
    candidates: dict[str, Candidate] = field(default_factory=dict)
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    diagnoses: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, stamped: Iterable[events.Stamped]) -> Summary:
        """The summary of a run's events so far."""
        summary = cls()
        for one in stamped:
            summary.add(one)
        return summary

    def add(self, stamped: events.Stamped) -> None:
        """Takes in one more event."""
        self.run = stamped.run
        match stamped.event:
            case events.RunStarted() as event:
                self.started, self.task = event, event.task
            case events.Prepared() as event:
                self.prepared = event
            case events.Proposed(proposal) if proposal.candidate is not None:
                self.candidates[proposal.candidate.id] = proposal.candidate
            case events.Submitted(candidate):
                self.candidates[candidate.id] = candidate
            case events.Evaluated(evaluation=evaluation, diagnosis=diagnosis):
                self.evaluations[evaluation.id] = evaluation
                if diagnosis is not None:
                    self.diagnoses[evaluation.id] = diagnosis.summary
            case events.BestChanged(candidate, evaluation):
                self.best = (candidate, evaluation)
            case events.StateChanged(state, reason):
                self.state, self.reason = state, reason
            case events.Noted(message):
                self.notes.append(message)
            case events.AcceptedCandidate(evidence, place=place):
                self.accepted.append(f"{evidence.candidate} was accepted{f' into {place}' if place else ''}.")
            case events.Ended(reason):
                self.state, self.reason = "ended", reason

    def ranked(self) -> list[Evaluation]:
        """The best evaluation of each candidate: right ones by time, then the others, best verdict first."""
        best: dict[str, Evaluation] = {}
        for evaluation in self.evaluations.values():
            kept = best.get(evaluation.candidate)
            if kept is None or _order(evaluation) < _order(kept):
                best[evaluation.candidate] = evaluation
        return sorted(best.values(), key=_order)


def render(evolution: Any) -> tuple[str, str]:
    """The run as ``(html, text)``."""
    summary = Summary.of(evolution.events(0))
    return render_html(summary), render_text(summary)


def mimebundle(summary: Summary, *, folded: bool = False) -> dict[str, str]:
    """Both forms, keyed by mime type, as displays take them."""
    return {"text/html": render_html(summary, folded=folded), "text/plain": render_text(summary)}


def render_html(summary: Summary, *, folded: bool = False) -> str:
    """One section: heading, facts, table of variants, best code, and how to open the run again.

    Args:
        folded: behind one line with the outcome, to stand beside a board that shows the same.
    """
    if summary.task is None:
        return "<p>This run has no events yet.</p>"
    facts = "".join(f"<li>{_escape(name)}: {_escape(value)}</li>" for name, value in _facts(summary))
    ranked = summary.ranked()
    parts = [f"<h4>{_escape(_title(summary))}</h4>", f"<ul>{facts}</ul>"]
    if ranked:
        names = ("Variant", "Verdict", "Judged by", "Time", "Idea")
        head = "".join(f'<th scope="col" style="text-align:{side}">{name}</th>' for name, side in zip(names, SIDES, strict=True))
        rows = "".join(_html_row(summary, evaluation) for evaluation in ranked[:ROWS])
        parts.append(f"<table><caption>{_escape(_counts(summary))}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    best = _best(summary)
    if best is not None:
        candidate, evaluation = best
        label = _escape(f"Code of {candidate.id}, the best so far ({time_text(evaluation)})")
        parts.append(f"<details><summary>{label}</summary><pre>{_escape(_plain_source(candidate, evaluation))}</pre></details>")
    parts += [f"<p>{_escape(line)}</p>" for line in (*summary.notes[-3:], *summary.accepted)]
    parts.append(f"<p>Open it again: <code>workbench.open(&quot;{_escape(summary.run)}&quot;)</code></p>")
    section = f"<section>{''.join(parts)}</section>"
    return f"<details><summary>{_escape(headline(summary))}</summary>{section}</details>" if folded else section


def render_text(summary: Summary) -> str:
    """The same for a terminal."""
    if summary.task is None:
        return "This run has no events yet."
    lines = [_title(summary), *(f"  {name}: {value}" for name, value in _facts(summary))]
    ranked = summary.ranked()
    if ranked:
        lines += ["", _counts(summary)]
        rows = [("variant", "verdict", "judged by", "time", "idea")]
        rows += [_cells(summary, evaluation) for evaluation in ranked[:ROWS]]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        for row in rows:
            lines.append("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=False)) + "  " + row[4])
    lines += ["", *summary.notes[-3:], *summary.accepted, f'Open it again: workbench.open("{summary.run}")']
    return "\n".join(lines)


def time_text(evaluation: Evaluation | None) -> str:
    """A time in µs that says whether it is measured or modelled; a dash where there is none."""
    return timing_text(evaluation.timing) if evaluation is not None else "–"


def timing_text(timing: Timing | None) -> str:
    """See `time_text`."""
    if timing is None:
        return "–"
    return f"{_us(timing.median_us)} {'modelled' if timing.modelled else 'measured'}"


class LiveDisplay:
    """A display that follows a run: refreshed at each new best, at each change of state and at the end, at most once a second.

    It stands beside the board and stays when the notebook is saved. `publish` gets the new mimebundle; it is called from the run's
    thread, or from a timer's. With `records` the bundle has the run as JSON too, for front ends that have the extension.
    """

    def __init__(
        self, evolution: Any, publish: Callable[[dict[str, Any]], None], *, interval: float = 1.0, records: Records | None = None
    ) -> None:
        self._publish = publish
        self._records = records
        self._interval = interval
        self._lock = threading.Lock()
        self._summary = Summary()
        self._last_seq = 0
        self._early: list[events.Stamped] | None = []  # events that come while the past is still being read
        self._shown_at = 0.0
        self._timer: threading.Timer | None = None
        self._unsubscribe = evolution.subscribe(self._on_event)
        past = list(evolution.events(0))
        with self._lock:
            for stamped in sorted((*past, *self._early), key=lambda one: one.seq):
                self._take(stamped)
            self._early = None

    def bundle(self) -> dict[str, Any]:
        """The run as it stands now."""
        with self._lock:
            made: dict[str, Any] = dict(mimebundle(self._summary, folded=True))
            line, state, small = headline(self._summary), self._summary.state, len(self._summary.candidates) <= 1000
        if self._records is None:
            return made
        # Nothing may follow for hours once it waits or has ended, so the record must then be up to date.
        return made | self._records.bundle(line, now=state == "ended" or (small and state in ("waiting", "paused")))

    def flush(self) -> None:
        """Shows the run as it stands, now."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._shown_at = time.monotonic()
        self._publish(self.bundle())

    def close(self) -> None:
        """Follows the run no longer."""
        if callable(self._unsubscribe):
            self._unsubscribe()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()

    def _take(self, stamped: events.Stamped) -> None:
        if stamped.seq == 0 or stamped.seq > self._last_seq:  # number 0: shown, though the store could not keep it
            self._last_seq = max(self._last_seq, stamped.seq)
            self._summary.add(stamped)

    def _on_event(self, stamped: events.Stamped) -> None:
        with self._lock:
            if self._early is not None:
                self._early.append(stamped)
                return
            self._take(stamped)
        if isinstance(stamped.event, events.Ended):
            self.flush()
        elif isinstance(stamped.event, (events.Prepared, events.BestChanged, events.StateChanged, events.AcceptedCandidate, events.Noted)):
            self._soon()

    def _soon(self) -> None:
        with self._lock:
            wait = self._shown_at + self._interval - time.monotonic()
            if wait > 0:
                if self._timer is None:
                    self._timer = threading.Timer(wait, self.flush)
                    self._timer.daemon = True
                    self._timer.start()
                return
        self.flush()


def _order(evaluation: Evaluation) -> tuple[int, float]:
    time_us = evaluation.timing.median_us if evaluation.timing is not None else float("inf")
    return (-evaluation.verdict.rank, time_us)


def _best(summary: Summary) -> tuple[Candidate, Evaluation] | None:
    if summary.best is None:
        return None
    candidate, evaluation = summary.candidates.get(summary.best[0]), summary.evaluations.get(summary.best[1])
    return (candidate, evaluation) if candidate is not None and evaluation is not None else None


def _title(summary: Summary) -> str:
    assert summary.task is not None
    shapes = ", ".join(
        f"{spec.name} {'×'.join(map(str, spec.shape)) or 'scalar'} {spec.dtype}" for spec in summary.task.inputs if spec.is_tensor
    )
    return f"{summary.task.name} ({shapes}) for {summary.task.target}"


def headline(summary: Summary) -> str:
    """The outcome in one line."""
    if summary.task is None:
        return "This run has no events yet."
    best = _best(summary)
    found = f"best {best[0].id}, {_verdict(best[1].verdict)}, {time_text(best[1])}" if best is not None else "no right variant yet"
    count = len(summary.candidates)
    return f"Record of {summary.task.name}: {found}; {summary.state}; {count} variant{'' if count == 1 else 's'}"


def _facts(summary: Summary) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    prepared = summary.prepared
    if prepared is not None:
        facts.append(("Judged on", prepared.device))
        facts += [(base.name, timing_text(base.timing) if base.timing else f"no time: {base.reason}") for base in prepared.baselines]
        facts.append(("Floor", f"{_us(prepared.floor_us)}, the fastest that this GPU could ever be"))
    best = _best(summary)
    if best is not None:
        candidate, evaluation = best
        text = f"{candidate.id}, {_verdict(evaluation.verdict)}, {time_text(evaluation)}"
        if evaluation.speedup is not None:
            speedup = evaluation.speedup
            text += f", {speedup.ratio:.2f}× against {speedup.against} (95 %: {speedup.low:.2f}–{speedup.high:.2f})"
        facts.append(("Best", text))
        why = summary.diagnoses.get(evaluation.id)
        if why:
            facts.append(("Why", why))
    if summary.started is not None and summary.started.elites_of:
        facts.append(("Seeded", f"with the best variants of {summary.started.elites_of}, this cell's earlier run"))
    facts.append(("State", summary.state + (f": {summary.reason}" if summary.reason else "")))
    return facts


def _counts(summary: Summary) -> str:
    ranked = summary.ranked()
    verdicts = Counter(_verdict(evaluation.verdict) for evaluation in ranked)
    shown = f", the first {ROWS} shown" if len(ranked) > ROWS else ""
    counts = ", ".join(f"{count} {name}" for name, count in verdicts.items())
    return f"Variants: {len(ranked)} judged in {len(summary.evaluations)} evaluations ({counts}){shown}"


def _cells(summary: Summary, evaluation: Evaluation) -> tuple[str, str, str, str, str]:
    candidate = summary.candidates.get(evaluation.candidate)
    idea = (candidate.plan if candidate is not None else "") or evaluation.reason
    if not evaluation.verdict.passes and evaluation.reason:
        idea = evaluation.reason
    mark = "★ " if summary.best is not None and summary.best[1] == evaluation.id else ""
    first = idea.strip().split("\n")[0]
    return (
        mark + evaluation.id, _verdict(evaluation.verdict), evaluation.judged_by or "–", time_text(evaluation),
        first if len(first) <= 100 else first[:99] + "…",
    )  # fmt: skip


def _html_row(summary: Summary, evaluation: Evaluation) -> str:
    name, *rest = (_escape(text) for text in _cells(summary, evaluation))
    cells = "".join(f'<td style="text-align:{side}">{text}</td>' for text, side in zip(rest, SIDES[1:], strict=True))
    return f'<tr><th scope="row" style="text-align:{SIDES[0]}">{name}</th>{cells}</tr>'


def _plain_source(candidate: Candidate, evaluation: Evaluation) -> str:
    from workbench.build.tune import choose

    try:
        return choose(candidate.source, evaluation.parameters)
    except ValueError:
        return candidate.source


def _verdict(verdict: Verdict) -> str:
    return verdict.value.replace("_", " ")


def _us(value: float) -> str:
    return f"{value:.1f} µs" if value < 1000 else f"{value / 1000:.2f} ms"


def _escape(text: str) -> str:
    return html.escape(text)
