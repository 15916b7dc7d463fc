"""What a proposer is asked, as data, and the budget that bounds it all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.candidate import Candidate, Diagnosis, Evaluation
from workbench.task import Task

BriefKind = Literal["seed", "step", "repair", "crossover", "tune", "person"]


@dataclass(frozen=True)
class Budget:
    """Hard caps on one run; None is no cap. `spent` of a run is the same record with every figure filled in.

    `tune` caps the points of one candidate's tunable space beyond the first.
    """

    evaluations: int | None = None
    seconds: float | None = None
    gpu_seconds: float | None = None
    tokens: int | None = None
    money: float | None = None
    tune: int = 8


@dataclass(frozen=True)
class Role:
    """What an island is for: its name, what it tries, and the hints that its proposals get."""

    name: str
    aim: str
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parent:
    """A candidate to start from, with its best (or only) evaluation."""

    candidate: Candidate
    evaluation: Evaluation
    diagnosis: Diagnosis | None = None

    def __str__(self) -> str:
        timing, plan = self.evaluation.timing, self.candidate.plan.split("\n")[0]
        cost = f", {timing.median_us:.1f} µs {'modelled' if timing.modelled else 'measured'}" if timing is not None else ""
        return f"{self.evaluation.id}: {self.evaluation.verdict.value.replace('_', ' ')}{cost}" + (f" ({plan})" if plan else "")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In a notebook a line, not the whole record."""
        printer.text(str(self))


@dataclass(frozen=True)
class Card:
    """One piece of experience: when it applies, what was done, what came of it."""

    id: str
    trigger: str
    advice: str
    effect: str = ""
    confidence: float = 0.5


@dataclass(frozen=True)
class Brief:
    """One request for one candidate.

    Attributes:
        id: ``b1``, ``b2``, … in ask order.
        kind: seed (only correctness counts), step, repair (the smallest change that mends the parent), crossover (of two parents),
            tune (no new source: judge `parents[0]` at `parameters`), person (the person answers it).
        candidate: the id that the answer will bear; for tune that of the parent.
        expert: for an expert's seed: which expert and choices to instantiate.
        directive: the diagnosis's one change, or the island's aim.
        experts: names of the expert kernels that fit the op, best first.
        tried: digests (`records.digest`) of the sources judged so far; a proposal among them is a waste.
        seed: for every random choice of the proposer.
    """

    id: str
    kind: BriefKind
    candidate: str
    island: Role
    task: Task
    parents: tuple[Parent, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    expert: Mapping[str, Any] = field(default_factory=dict)
    directive: str = ""
    experts: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    hints: tuple[str, ...] = ()
    bans: tuple[str, ...] = ()
    left: Budget = Budget()
    tried: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class Usage:
    """What one proposal cost."""

    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0
    estimated: bool = False


@dataclass(frozen=True)
class Proposal:
    """A proposer's answer: a candidate, or None with the reason in one line."""

    brief: str
    candidate: Candidate | None
    reason: str = ""
    usage: Usage = Usage()
