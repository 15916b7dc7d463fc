"""From a run's view to what the browser reads: plain JSON data, named as in ``extensions/protocol.ts``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.board.contract import Run
from workbench.brief import Budget
from workbench.records import encode

NOTHING = encode(Budget(evaluations=0, seconds=0.0, gpu_seconds=0.0, tokens=0, money=0.0))


def rows(run: Run, after: int = 0) -> list[dict[str, Any]]:
    """Rows of the candidates that changed since event number `after`, in the order in which they came."""
    return [_row(summary, run.candidate(summary["id"])) for summary in run.rows(after)]


def detail(run: Run, candidate: str) -> dict[str, Any]:
    """Everything about one candidate.

    Raises:
        NoSuchCandidateError: the run has none of that id.
    """
    found = run.candidate(candidate)
    brief = found.brief
    asked: dict[str, Any] = {"id": "", "kind": "", "directive": "", "island": "", "expert": {}, "hints": [], "bans": []}
    if brief is not None:
        asked = {
            "id": brief.id, "kind": brief.kind, "directive": brief.directive, "island": brief.island.name, "expert": encode(brief.expert),
            "hints": list(brief.hints), "bans": list(brief.bans),
        }  # fmt: skip
    return {
        "candidate": encode(found.candidate), "evaluations": encode(found.evaluations), "diagnoses": encode(found.diagnoses),
        "brief": asked, "children": list(found.children),
    }  # fmt: skip


def header(run: Run) -> dict[str, Any]:
    """What stands above the table."""
    head = run.header()
    baselines = {baseline["name"]: baseline for baseline in head["baselines"]}
    work = head["work"] or {}
    live = bool(getattr(run, "live", True))
    return {
        **{name: head[name] for name in _SAME},
        "bytes": work.get("bytes", 0), "flops": work.get("flops", 0),
        "modelled": bool(head["device"]) and not head["device"].startswith("gpu"),
        "eager": baselines.get("eager"), "compile": baselines.get("compile"),
        "best": _best(run, head["best"]), "spent": head["spent"] or NOTHING,
        "islands": [{"name": island["name"], "aim": island.get("aim", "")} for island in head["islands"]],
        "notes": [note["message"] for note in head["notes"] if note["level"] != "info"],
        "started_at": head["began"], "live": live, "live_reason": "" if live else str(getattr(run, "live_reason", "")),
    }  # fmt: skip


def points(run: Run) -> list[dict[str, Any]]:
    """The chart's points so far, one an evaluation."""
    found: list[dict[str, Any]] = []
    for summary in run.rows():
        for evaluation in run.candidate(summary["id"]).evaluations:
            found.append(point(len(found) + 1, evaluation, summary["island"]))
    return found


def point(number: int, evaluation: Any, island: str) -> dict[str, Any]:
    """The chart's point of one evaluation; `number` counts them from 1."""
    timing = evaluation.timing
    return {
        "n": number, "evaluation": evaluation.id, "candidate": evaluation.candidate, "verdict": evaluation.verdict.value,
        "time_us": timing.median_us if timing is not None else None, "island": island, "modelled": timing is not None and timing.modelled,
    }  # fmt: skip


_SAME = (
    "run", "name", "state", "reason", "target", "device", "precision", "inputs", "outputs", "floor_us", "budget", "proposers", "hints",
    "bans", "pinned", "evaluations", "candidates", "cell",
)  # fmt: skip


def _row(summary: Mapping[str, Any], found: Any) -> dict[str, Any]:
    shown, diagnosis = found.evaluation, found.diagnosis
    row = {
        "id": summary["id"], "order": summary["number"], "backend": summary["backend"], "kind": summary["kind"],
        "island": summary["island"], "proposer": summary["proposer"], "plan": summary["plan"], "parents": summary["parents"], "accepted": summary["accepted"],
        "evaluations": len(found.evaluations), "verdict": "proposed", "reason": "", "evaluation": "", "judged_by": "", "mode": "",
        "time_us": None, "low_us": None, "high_us": None, "modelled": False, "speedup": None, "against": "", "headroom": None,
        "diagnosis": "", "limiter": "", "parameters": {}, "labels": [],
    }  # fmt: skip
    if shown is None:
        return row
    timing, speedup = shown.timing, shown.speedup
    row.update(
        verdict=shown.verdict.value, reason=shown.reason, evaluation=shown.id, judged_by=shown.judged_by, mode=shown.mode,
        parameters=encode(shown.parameters), labels=list(shown.labels), limiter=shown.modelled.limiter if shown.modelled else "",
    )  # fmt: skip
    if timing is not None:
        row.update(time_us=timing.median_us, low_us=timing.low_us, high_us=timing.high_us, modelled=timing.modelled)
    if speedup is not None:
        row.update(speedup=speedup.ratio, against=speedup.against)
    if diagnosis is not None:
        row.update(diagnosis=diagnosis.kind, headroom=diagnosis.headroom)
    return row


def _best(run: Run, summary: Mapping[str, Any] | None) -> dict[str, Any] | None:
    shown = run.candidate(summary["id"]).evaluation if summary is not None else None
    if shown is None or shown.timing is None:
        return None
    timing = shown.timing
    return {
        "id": shown.candidate, "evaluation": shown.id, "time_us": timing.median_us, "low_us": timing.low_us, "high_us": timing.high_us,
        "modelled": timing.modelled, "speedup": encode(shown.speedup),
    }  # fmt: skip
