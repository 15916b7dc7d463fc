"""What the view keeps of one candidate, and the fields of its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.candidate import Candidate, Diagnosis, Evaluation
from workbench.records import encode


@dataclass(slots=True)
class Entry:
    """One candidate.

    Attributes:
        number: counts candidates from 1.
        seq: of the last event that changed its row.
        evaluation: the one that stands for it: the fastest right one, else the first; None while it is being judged.
        best: whether it is the best of the run.
    """

    candidate: Candidate
    number: int
    kind: str = ""
    seq: int = 0
    evaluation: Evaluation | None = None
    evaluations: list[Evaluation] = field(default_factory=list)
    diagnoses: dict[str, Diagnosis] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)
    islands: list[str] = field(default_factory=list)
    best: bool = False
    accepted: bool = False


Get = Callable[[Entry], Any]


def _judged(get: Callable[[Evaluation], Any], without: Any = None) -> Get:
    """What the evaluation says; `without` while there is none."""
    return lambda entry: without if entry.evaluation is None else get(entry.evaluation)


def _part(name: str, get: Callable[[Any], Any], without: Any = None) -> Get:
    """The same of a part that an evaluation may lack, such as its timing."""

    def of(entry: Entry) -> Any:
        part = None if entry.evaluation is None else getattr(entry.evaluation, name)
        return get(part) if part else without

    return of


def _parameters(entry: Entry) -> Any:
    return encode(entry.evaluation.parameters) if entry.evaluation is not None else {}


def _labels(entry: Entry) -> Any:
    return list(entry.evaluation.labels) if entry.evaluation is not None else []


def _diagnosis(entry: Entry) -> str:
    found = entry.diagnoses.get(entry.evaluation.id) if entry.evaluation is not None else None
    return found.kind if found is not None else ""


FIELDS: Mapping[str, Get] = {
    "id": lambda entry: entry.candidate.id,
    "number": lambda entry: entry.number,
    "seq": lambda entry: entry.seq,
    "kind": lambda entry: entry.kind,
    "island": lambda entry: entry.candidate.island,
    "islands": lambda entry: list(entry.islands),
    "backend": lambda entry: entry.candidate.backend,
    "proposer": lambda entry: entry.candidate.proposer,
    "parents": lambda entry: list(entry.candidate.parents),
    "children": lambda entry: len(entry.children),
    "plan": lambda entry: entry.candidate.plan,
    "cites": lambda entry: list(entry.candidate.cites),
    "verdict": _judged(lambda found: found.verdict._value_, ""),
    "reason": _judged(lambda found: found.reason, "being judged"),
    "judged_by": _judged(lambda found: found.judged_by, ""),
    "parameters": _parameters,
    "labels": _labels,
    "matched": _judged(lambda found: found.matched),
    "time_us": _judged(lambda found: found.time_us),
    "median_us": _part("timing", lambda timing: timing.median_us),
    "interval": _part("timing", lambda timing: [timing.low_us, timing.high_us]),
    "modelled": _part("timing", lambda timing: timing.modelled),
    "speedup": _part("speedup", lambda speedup: speedup.ratio),
    "speedup_interval": _part("speedup", lambda speedup: [speedup.low, speedup.high]),
    "against": _part("speedup", lambda speedup: speedup.against, ""),
    "registers": _part("resources", lambda kernels: max(kernel.registers for kernel in kernels)),
    "spill_bytes": _part("resources", lambda kernels: max(kernel.spill_bytes for kernel in kernels)),
    "shared_bytes": _part("resources", lambda kernels: max(kernel.shared_bytes for kernel in kernels)),
    "occupancy": _part("resources", lambda kernels: min(kernel.occupancy for kernel in kernels)),
    "launches": _part("resources", lambda kernels: sum(kernel.launches for kernel in kernels)),
    "diagnosis": _diagnosis,
    "evaluations": lambda entry: len(entry.evaluations),
    "best": lambda entry: entry.best,
    "accepted": lambda entry: entry.accepted,
}
"""What a row says, field by field: a row is all of these of one entry, a column one of these of all entries."""
