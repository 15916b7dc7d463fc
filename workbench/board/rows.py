"""From a run's view to what the browser reads: plain JSON data, named as in ``extensions/protocol.ts``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.board.contract import Run
from workbench.brief import Budget
from workbench.candidate import Evaluation
from workbench.events import Prepared
from workbench.records import encode
from workbench.target import TARGETS
from workbench.task import Task

NOTHING = encode(Budget(evaluations=0, seconds=0.0, gpu_seconds=0.0, tokens=0, money=0.0))


def rows(run: Run, after: int = 0) -> list[dict[str, Any]]:
    """Rows of the candidates that changed since event number `after`, in the order in which they came."""
    return [_row(summary) for summary in run.rows(after)]


def columns(run: Run) -> dict[str, list[Any]]:
    """All rows by field."""
    names = (*_ROW, *_OWN)
    if hasattr(run, "columns"):
        found: Mapping[str, list[Any]] = run.columns(names)
    else:
        summaries = run.rows()
        found = {name: [summary[name] for summary in summaries] for name in names}
    ranges = [interval or _NO_RANGE for interval in found["interval"]]
    return {
        **{name: found[name] for name in _ROW},
        "order": found["number"], "verdict": [verdict or "proposed" for verdict in found["verdict"]],
        "modelled": list(map(bool, found["modelled"])),
        "time_us": [_time(time_us, low, high) for time_us, (low, high) in zip(found["time_us"], ranges, strict=True)],
        "low_us": [low for low, _ in ranges], "high_us": [high for _, high in ranges],
    }  # fmt: skip


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
        "shown": found.evaluation.id if found.evaluation is not None else "",
    }  # fmt: skip


def header(run: Run, prepared: Prepared | None) -> dict[str, Any]:
    """What stands above the table. `prepared` is what the judge said when it was ready."""
    head = run.header()
    baselines = {baseline["name"]: baseline for baseline in head["baselines"]}
    work = head["work"] or {}
    live = bool(getattr(run, "alive", True))
    return {
        **{name: head[name] for name in _SAME},
        "bytes": work.get("bytes", 0), "flops": work.get("flops", 0),
        "modelled": bool(head["device"]) and not head["device"].startswith("gpu"),
        "eager": baselines.get("eager"), "compile": baselines.get("compile"),
        "best": _best(head["best"]), "spent": head["spent"] or NOTHING,
        "islands": [{"name": island["name"], "aim": island.get("aim", "")} for island in head["islands"]],
        "notes": _notes(head, prepared),
        "started_at": head["began"], "live": live,
    }  # fmt: skip


def roof(task: Task) -> dict[str, Any] | None:
    """The roofline of the op on its target: rates per second, and the least work. None where the target is not in the table."""
    target, work = TARGETS.get(task.target), task.work
    if target is None:
        return None
    dtype = work.matmul_dtype
    return {
        "gpu": target.gpu, "bandwidth": target.bandwidth, "l2_bandwidth": target.l2_bandwidth, "plain": target.peak("float32"),
        "products": target.peak(dtype) if dtype else None, "products_dtype": dtype, "bytes": work.bytes, "flops": work.flops,
        "launch_us": target.launch_us + target.latency_us, "shared_bytes": target.shared_bytes, "registers": target.registers,
        "warps": target.warps,
    }  # fmt: skip


def point(number: int, evaluation: Evaluation) -> dict[str, Any]:
    """The chart's point of one evaluation; `number` counts them from 1."""
    timing = evaluation.timing
    return {
        "n": number, "evaluation": evaluation.id, "candidate": evaluation.candidate, "verdict": evaluation.verdict.value,
        "time_us": timing.median_us if timing is not None else None, "modelled": timing is not None and timing.modelled,
    }  # fmt: skip


def point_columns(judged: Sequence[Evaluation]) -> dict[str, list[Any]]:
    """The points of all evaluations by field."""
    timings = [evaluation.timing for evaluation in judged]
    return {
        "n": list(range(1, len(judged) + 1)), "evaluation": [evaluation.id for evaluation in judged],
        "candidate": [evaluation.candidate for evaluation in judged], "verdict": [evaluation.verdict._value_ for evaluation in judged],
        "time_us": [timing.median_us if timing is not None else None for timing in timings],
        "modelled": [timing is not None and timing.modelled for timing in timings],
    }  # fmt: skip


def _notes(head: Mapping[str, Any], prepared: Prepared | None) -> list[str]:
    """What must not be overlooked: above all that the op can't tell right from wrong."""
    # Before there is a variant every note counts: that no expert fits the op, for one, is why Step brings nothing.
    notes = [note["message"] for note in head["notes"] if note["level"] != "info" or not head["candidates"]]
    if prepared is None:
        return notes
    warned = [prepared.warning] if prepared.warning else []
    return [*warned, *(note for note in prepared.notes if note != prepared.warning), *notes]


_SAME = (
    "run", "name", "state", "reason", "target", "device", "precision", "inputs", "outputs", "floor_us", "budget", "proposers", "hints",
    "bans", "pinned", "evaluations", "candidates", "cell",
)  # fmt: skip
_ROW = (
    "id", "backend", "kind", "reason", "judged_by", "speedup", "against", "diagnosis", "island", "proposer", "plan", "parents",
    "parameters", "labels", "evaluations", "accepted",
)  # fmt: skip


_OWN = ("number", "verdict", "modelled", "time_us", "interval")
_NO_RANGE = (None, None)


def _row(summary: Mapping[str, Any]) -> dict[str, Any]:
    low, high = summary["interval"] or _NO_RANGE
    return {
        **{name: summary[name] for name in _ROW},
        "order": summary["number"],
        "verdict": summary["verdict"] or "proposed",
        "modelled": bool(summary["modelled"]),
        "time_us": _time(summary["time_us"], low, high),
        "low_us": low,
        "high_us": high,
    }


def _time(time_us: float | None, low: float | None, high: float | None) -> float | None:
    """A modelled time of a variant that does not pass is shown too; a measured one is in the details only."""
    return low if time_us is None and low == high else time_us


def _best(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if row is None or row["time_us"] is None:
        return None
    low, high = row["interval"]
    speedup = None
    if row["speedup"] is not None:
        least, most = row["speedup_interval"]
        speedup = {"ratio": row["speedup"], "low": least, "high": most, "against": row["against"]}
    return {"id": row["id"], "time_us": row["time_us"], "low_us": low, "high_us": high, "modelled": row["modelled"], "speedup": speedup}
