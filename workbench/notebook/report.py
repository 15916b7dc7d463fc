"""A run as one HTML page that needs nothing: no script, no other file, no network. It is folded from the run's events."""

from __future__ import annotations

import contextlib
import datetime
import functools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench import events
from workbench.candidate import Baseline, Candidate, Evaluation, Timing, Verdict
from workbench.notebook import report_chart
from workbench.notebook.report_code import changes, highlighted
from workbench.task import Task

ROWS = 300
"""Variants in the table; the rest are counted below it."""

VERDICTS: Mapping[Verdict, str] = {
    Verdict.RIGHT: "right", Verdict.LOWER_PRECISION: "lower", Verdict.WRONG: "wrong", Verdict.NOT_JUDGED: "none",
}  # fmt: skip
"""How a verdict is coloured; all others are failures. Words say it too."""


def render(evolution: Any) -> str:
    """The page of a run.

    Args:
        evolution: an `Evolution`, alive or opened from the store.

    Everything that proposers, candidates and compilers wrote is escaped, and the page's own policy forbids scripts besides.
    """
    text: str = _environment().get_template("report.html.j2").render(gather(evolution))
    return text


def gather(evolution: Any) -> dict[str, Any]:
    """What the template shows, as plain data."""
    found = _Folded()
    for stamped in evolution.events(0):
        found.add(stamped)
    task, prepared = found.task, found.prepared
    head = evolution.header()
    best = evolution.best
    shown = found.best_of_each()
    points = [
        report_chart.Point(number, one.id, one.timing.median_us if one.timing else None, VERDICTS.get(one.verdict, "failed"),
                           one.verdict.value.replace("_", " "), one.verdict.passes)
        for number, one in enumerate(found.evaluations, 1)
    ]  # fmt: skip
    lines = [report_chart.Line("floor", prepared.floor_us)] if prepared is not None and prepared.floor_us > 0 else []
    lines += [report_chart.Line(_baseline_name(base), base.timing.median_us) for base in head_baselines(prepared) if base.timing]
    return {
        "run": evolution.id, "name": task.name, "state": head["state"], "reason": head["reason"], "target": task.target,
        "device": prepared.device if prepared else "not known yet", "began": _when(found.began),
        "modelled": any(one.timing is not None and one.timing.modelled for one in found.evaluations),
        "inputs": [
            {"name": spec.name, "shape": "×".join(map(str, spec.shape)) or "scalar", "dtype": spec.dtype, "role": spec.role}
            for spec in task.inputs if spec.is_tensor
        ],
        "work": task.work, "precision": task.precision, "reference": highlighted(task.reference),
        "warning": prepared.warning if prepared else "",
        "best": _best(best, task, found) if best is not None else None,
        "tiles": _tiles(best, head, found, prepared),
        "baselines": [_baseline(base) for base in head_baselines(prepared)],
        "chart": report_chart.chart(points, lines) if points else None,
        "rows": [_row(one, found, best) for one in shown[:ROWS]], "left_out": max(0, len(shown) - ROWS),
        "counts": Counter(one.verdict.value.replace("_", " ") for one in found.evaluations),
        "candidates": len(found.candidates), "evaluations": len(found.evaluations),
        "failures": _failures(found), "models": _models(evolution), "accepted": [_accepted(one) for one in found.accepted],
        "notes": found.notes, "hints": found.said["hint"], "bans": found.said["ban"],
        "environment": prepared.environment if prepared else None,
        "qualification_notes": list(prepared.notes) if prepared else [],
        "proposers": list(found.started.proposers) if found.started else [], "seed": found.started.seed if found.started else 0,
        "made": _when(None), "version": _version(),
    }  # fmt: skip


class _Folded:
    """A run's events, sorted by what they tell."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.started: events.RunStarted | None = None
        self.prepared: events.Prepared | None = None
        self.candidates: dict[str, Candidate] = {}
        self.evaluations: list[Evaluation] = []
        self.diagnoses: dict[str, Any] = {}
        self.accepted: list[events.AcceptedCandidate] = []
        self.notes: list[tuple[str, str]] = []
        self.said: dict[str, list[str]] = {"hint": [], "ban": []}
        self.kinds: dict[str, str] = {}

    @property
    def task(self) -> Task:
        assert self.started is not None, "a run begins with its start"
        return self.started.task

    def add(self, stamped: events.Stamped) -> None:
        match stamped.event:
            case events.RunStarted() as event:
                self.started, self.began = event, stamped.time
            case events.Prepared() as event:
                self.prepared = event
            case events.Asked(brief):
                self.kinds[brief.candidate] = brief.kind
            case events.Proposed(proposal) if proposal.candidate is not None:
                self.candidates[proposal.candidate.id] = proposal.candidate
            case events.Submitted(candidate):
                self.candidates[candidate.id] = candidate
                self.kinds[candidate.id] = "person"
            case events.Evaluated(evaluation=evaluation, diagnosis=diagnosis):
                self.evaluations.append(evaluation)
                if diagnosis is not None:
                    self.diagnoses[evaluation.id] = diagnosis
            case events.Noted(message, level=level):
                self.notes.append((level, message))
            case events.Acted(verb, argument) if verb in self.said:
                self.said[verb].append(argument)
            case events.AcceptedCandidate() as event:
                self.accepted.append(event)

    def best_of_each(self) -> list[Evaluation]:
        """One evaluation a candidate: right ones by time, then the others, best verdict first."""
        kept: dict[str, Evaluation] = {}
        for one in self.evaluations:
            if one.candidate not in kept or _order(one) < _order(kept[one.candidate]):
                kept[one.candidate] = one
        return sorted(kept.values(), key=_order)


def head_baselines(prepared: events.Prepared | None) -> tuple[Baseline, ...]:
    """Baselines, where the judge was ready."""
    return prepared.baselines if prepared is not None else ()


def _order(one: Evaluation) -> tuple[int, float]:
    return -one.verdict.rank, one.timing.median_us if one.timing is not None else float("inf")


def _best(best: Any, task: Task, found: _Folded) -> dict[str, Any]:
    candidate, one = best.candidate, best.evaluation
    source = _chosen(candidate, one)
    return {
        **_about(candidate, one, found), "code": highlighted(source),
        "diff": changes(task.reference, source, "the reference", candidate.id), "resources": one.resources,
        "diagnosis": best.diagnosis or found.diagnoses.get(one.id),
        "points": [
            (other.id, _parameters(other, candidate), _time(other.timing), other.verdict.value.replace("_", " "))
            for other in found.evaluations if other.candidate == candidate.id
        ],
        "modelled_parts": one.modelled, "matched": one.matched, "error_ratio": one.error_ratio, "sets": one.input_sets,
        "parents": candidate.parents, "cites": candidate.cites, "labels": one.labels, "own": one.own_kernel_share,
    }  # fmt: skip


def _about(candidate: Candidate | None, one: Evaluation, found: _Folded) -> dict[str, Any]:
    return {
        "id": one.candidate, "evaluation": one.id, "verdict": one.verdict.value.replace("_", " "),
        "kind": VERDICTS.get(one.verdict, "failed"), "time": _time(one.timing), "interval": _interval(one.timing),
        "judged_by": one.judged_by or "–", "plan": (candidate.plan if candidate else "").strip(),
        "proposer": candidate.proposer if candidate else "", "island": candidate.island if candidate else "",
        "made": found.kinds.get(one.candidate, ""), "backend": candidate.backend if candidate else "",
        "parameters": _parameters(one, candidate),
        "reason": one.reason,
    }  # fmt: skip


def _row(one: Evaluation, found: _Folded, best: Any) -> dict[str, Any]:
    tried = sum(other.candidate == one.candidate for other in found.evaluations)
    diagnosis = found.diagnoses.get(one.id)
    speedup = one.speedup
    return {
        **_about(found.candidates.get(one.candidate), one, found), "tried": tried,
        "best": best is not None and best.candidate.id == one.candidate,
        "speedup": f"{speedup.ratio:.2f}×" if speedup is not None else "", "diagnosis": diagnosis.kind if diagnosis else "",
    }  # fmt: skip


def _tiles(best: Any, head: Mapping[str, Any], found: _Folded, prepared: events.Prepared | None) -> list[dict[str, str]]:
    one = best.evaluation if best is not None else None
    tiles = [{
        "name": "Best", "value": _time(one.timing) if one else "none yet",
        "note": f"{one.id}, {'modelled' if one.timing and one.timing.modelled else 'measured'}" if one else "no right variant",
    }]  # fmt: skip
    eager = next((base.timing for base in head_baselines(prepared) if base.name == "eager" and base.timing), None)
    if one is not None and one.speedup is not None:
        speedup = one.speedup
        tiles.append({
            "name": f"Speedup against {_against(speedup.against)}", "value": f"{speedup.ratio:.2f}×",
            "note": f"95 %: {speedup.low:.2f}–{speedup.high:.2f}",
        })  # fmt: skip
    elif eager is not None:
        tiles.append({
            "name": "Eager", "value": _time(eager),
            "note": "modelled: no speedup is claimed without a GPU" if eager.modelled else "measured",
        })  # fmt: skip
    if prepared is not None:
        note = "the fastest this card could ever be"
        if one is not None and one.timing is not None and prepared.floor_us > 0:
            note = f"the best takes {one.timing.median_us / prepared.floor_us:.2f}× as long"
        tiles.append({"name": "Floor", "value": us(prepared.floor_us), "note": note})
    right = sum(1 for name in {item.candidate for item in found.evaluations if item.verdict.passes} if name)
    tiles.append({
        "name": "Variants", "value": str(len(found.candidates)),
        "note": f"{right} right, {len(found.evaluations)} judgements",
    })  # fmt: skip
    spent = head["spent"] or {}
    parts = [
        f"{spent.get('tokens') or 0:,} tokens" if spent.get("tokens") else "",
        _money(spent.get("money")) if spent.get("money") else "",
    ]
    tiles.append({
        "name": "Spent", "value": _seconds(float(spent.get("seconds") or 0.0)), "note": ", ".join(filter(None, parts)) or "no model asked",
    })  # fmt: skip
    return tiles


def _failures(found: _Folded) -> list[dict[str, Any]]:
    """For each kind of failure: how many, and the latest with its witness."""
    kinds: dict[Verdict, list[Evaluation]] = {}
    for one in found.evaluations:
        if not one.verdict.passes:
            kinds.setdefault(one.verdict, []).append(one)
    return [
        {
            "verdict": verdict.value.replace("_", " "), "kind": VERDICTS.get(verdict, "failed"), "count": len(many),
            "example": many[-1].id, "reason": many[-1].reason, "witness": _witness(many[-1]), "log": many[-1].log.strip()[-2000:],
        }
        for verdict, many in sorted(kinds.items(), key=lambda item: item[0].rank)
    ]  # fmt: skip


def _witness(one: Evaluation) -> str:
    witness = one.witness
    if witness is None:
        return ""
    text = f"{witness.input_set}, seed {witness.seed}"
    if witness.got is not None and witness.expected is not None:
        place = ", ".join(map(str, witness.index))
        text += f": output {witness.output}[{place}] is {witness.got:.6g}, should be {witness.expected:.6g}"
        text += f" within {witness.bound:.2g}" if witness.bound is not None else ""
    return text + (f" ({witness.pattern})" if witness.pattern else "")


def _models(evolution: Any) -> list[dict[str, Any]]:
    from workbench.evolution.summary import models

    return [
        {**one, "money": _money(one["money"]) if one["money"] is not None else "not known", "seconds": _seconds(one["seconds"])}
        for one in models(evolution.calls())
    ]


def _accepted(event: events.AcceptedCandidate) -> dict[str, Any]:
    evidence = event.evidence
    return {
        "candidate": evidence.candidate, "place": event.place, "made_at": evidence.made_at, "time": _time(evidence.evaluation.timing),
        "verdict": evidence.evaluation.verdict.value.replace("_", " "), "judged_by": evidence.evaluation.judged_by,
        "hashes": [
            ("variant", evidence.source_sha), ("reference", evidence.reference_sha), ("accepted code", evidence.accepted_source_sha),
        ],
        "guard": dict(evidence.guard), "code": highlighted(event.code), "environment": evidence.evaluation.environment,
    }  # fmt: skip


def _baseline(base: Baseline) -> dict[str, str]:
    name = _baseline_name(base)
    if base.timing is None:
        return {"name": name, "time": "–", "note": base.reason}
    return {"name": name, "time": _time(base.timing), "note": "modelled" if base.timing.modelled else _interval(base.timing)}


def _baseline_name(base: Baseline) -> str:
    return _against(base.name)


def _against(name: str) -> str:
    return "torch.compile" if name == "compile" else name


def _chosen(candidate: Candidate, one: Evaluation) -> str:
    from workbench.build.tune import choose

    try:
        return choose(candidate.source, one.parameters)
    except ValueError:
        return candidate.source


def _parameters(one: Evaluation, candidate: Candidate | None) -> str:
    """The chosen point, with the defaults that nobody named."""
    from workbench.build.tune import complete

    chosen = dict(one.parameters)
    if candidate is not None:
        with contextlib.suppress(ValueError):
            chosen = dict(complete(candidate.source, one.parameters))
    return ", ".join(f"{name}={value}" for name, value in chosen.items())


def _time(timing: Timing | None) -> str:
    return us(timing.median_us) if timing is not None else "–"


def _interval(timing: Timing | None) -> str:
    if timing is None:
        return ""
    return "modelled" if timing.modelled else f"95 %: {us(timing.low_us)} to {us(timing.high_us)}"


def us(value: float) -> str:
    """A time for people, with a narrow space before its unit."""
    return f"{value:.4g}\u202fµs" if value < 1000 else f"{value / 1000:.4g}\u202fms" if value < 1e6 else f"{value / 1e6:.4g}\u202fs"


def _seconds(value: float) -> str:
    return f"{value:.1f}\u202fs" if value < 60 else f"{value / 60:.1f}\u202fmin" if value < 3600 else f"{value / 3600:.1f}\u202fh"


def _money(value: float | None) -> str:
    return f"{value or 0.0:.4f}\u202fUSD" if (value or 0.0) < 0.1 else f"{value:.2f}\u202fUSD"


def _when(seconds: float | None) -> str:
    zone = datetime.UTC
    moment = datetime.datetime.now(zone) if seconds is None else datetime.datetime.fromtimestamp(seconds, zone)
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _version() -> str:
    from workbench._version import __version__

    return __version__


@functools.cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")), undefined=jinja2.StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
