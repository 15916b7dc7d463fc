"""What the view keeps of one candidate, and the fields of its row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


OFTEN = (
    "id", "number", "kind", "island", "backend", "proposer", "parents", "plan", "verdict", "reason", "judged_by", "parameters", "labels",
    "time_us", "interval", "modelled", "speedup", "against", "diagnosis", "evaluations", "accepted",
)  # fmt: skip
"""Fields of a row that a table shows, in the order of `often`."""


def often(entry: Entry) -> tuple[Any, ...]:
    """The fields `OFTEN`. Written out, since a long run has ten thousand entries, and all of them are wanted at once."""
    candidate, found = entry.candidate, entry.evaluation
    own = candidate.id, entry.number, entry.kind, candidate.island, candidate.backend, candidate.proposer, list(candidate.parents)
    if found is None:
        return (*own, candidate.plan, "", "being judged", "", {}, [], None, None, None, None, "", "", 0, entry.accepted)
    timing, speedup, diagnosis = found.timing, found.speedup, entry.diagnoses.get(found.id)
    return (
        *own, candidate.plan, found.verdict._value_, found.reason, found.judged_by, encode(found.parameters), list(found.labels),
        found.time_us, [timing.low_us, timing.high_us] if timing else None, timing.modelled if timing else None,
        speedup.ratio if speedup else None, speedup.against if speedup else "", diagnosis.kind if diagnosis is not None else "",
        len(entry.evaluations), entry.accepted,
    )  # fmt: skip


def columns(cells: Sequence[tuple[Any, ...]], names: Iterable[str]) -> dict[str, list[Any]]:
    """What `often` says of several entries, by field."""
    found = dict(zip(OFTEN, map(list, zip(*cells, strict=True)), strict=True)) if cells else {name: [] for name in OFTEN}
    return {name: found[name] for name in names}


def row(entry: Entry) -> dict[str, Any]:
    """All fields of an entry's row."""
    candidate, found = entry.candidate, entry.evaluation
    timing, speedup = (found.timing, found.speedup) if found is not None else (None, None)
    kernels = found.resources if found is not None else ()
    return {
        **dict(zip(OFTEN, often(entry), strict=True)),
        "seq": entry.seq, "islands": list(entry.islands), "children": len(entry.children), "cites": list(candidate.cites),
        "matched": found.matched if found is not None else None, "median_us": timing.median_us if timing else None,
        "speedup_interval": [speedup.low, speedup.high] if speedup else None,
        "registers": max(kernel.registers for kernel in kernels) if kernels else None,
        "spill_bytes": max(kernel.spill_bytes for kernel in kernels) if kernels else None,
        "shared_bytes": max(kernel.shared_bytes for kernel in kernels) if kernels else None,
        "occupancy": min(kernel.occupancy for kernel in kernels) if kernels else None,
        "launches": sum(kernel.launches for kernel in kernels) if kernels else None,
        "best": entry.best,
    }  # fmt: skip
