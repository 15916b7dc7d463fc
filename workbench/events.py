"""What happened in a run, in order. Store, board and tests read these, and a run can be rebuilt from them alone.

Each event is a frozen record. `Stamped` puts it on the run's time line; its `type` is the class name, in the store as on the
wire to the board (``extensions/protocol.ts`` mirrors this file, held by a test).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from workbench.brief import Brief, Budget, Proposal
from workbench.candidate import Baseline, Candidate, Diagnosis, Environment, Evaluation, Evidence
from workbench.records import decode, encode
from workbench.task import Task

RunState = Literal["preparing", "waiting", "running", "paused", "stopping", "ended", "interrupted"]
"""`interrupted` is never stored: so a run is shown whose process is gone."""


@dataclass(frozen=True)
class RunStarted:
    """A run was made. `cell` is the notebook cell's id and `cell_source` its text, both empty outside a notebook."""

    task: Task
    budget: Budget
    seed: int
    proposers: tuple[str, ...]
    cell: str = ""
    cell_source: str = ""
    elites_of: str = ""
    """The earlier run of the same cell whose elites seed this one."""
    elites: tuple[Candidate, ...] = ()
    """Those elites, so that the run stands on its own."""
    experts: tuple[str, ...] = ()
    """Names of the expert kernels that fitted the op, best first."""
    device: str = "auto"
    accept_degenerate: bool = False
    """The person knows that the op may be degenerate, and wants the search all the same."""
    mechanisms: Mapping[str, Any] = field(default_factory=dict)
    """Which mechanisms of the search were on, see `search.Mechanisms`."""


@dataclass(frozen=True)
class Canary:
    """A bad answer that the checker was tried on before any search. `told` is whether it told it from a right one.

    `ratio` is the error over its bound, where it has one: over 1 is told.
    """

    name: str
    told: bool
    ratio: float | None = None


@dataclass(frozen=True)
class Qualification:
    """Whether the op can be judged at all on the inputs that it has.

    Attributes:
        degenerate: the bad answer that passes for a right one, such as ``zeros``, or ``input x does not matter``; empty for a sound op.
        advice: what to change.
        canaries: all bad answers that were tried.
        blind: coarser computations, such as ``bf16``, that can't be told from the reference's own here. Not degenerate, but worth knowing.
        noise: by how much two runs on the same inputs differ at most, relative to the outputs' rms.
        error: rms error of honest computation, relative to the outputs' rms.
        low, high: the outputs' range; `spread`: by how much outputs of other seeds differ, relative to their rms.
        impact: of each input: change of the outputs when it alone is drawn anew, over the honest error.
        random: the op that draws random numbers; empty where none does. Such an op is judged by distribution.
        truth: what the truth is where it can't be had in float64.
        updates: a model's buffers that its call changes, such as running statistics.
        seconds: what all this took.
    """

    degenerate: str = ""
    advice: str = ""
    canaries: tuple[Canary, ...] = ()
    blind: tuple[str, ...] = ()
    noise: float = 0.0
    error: float = 0.0
    low: float | None = None
    high: float | None = None
    spread: float = 0.0
    impact: Mapping[str, float] = field(default_factory=dict)
    random: str = ""
    truth: str = ""
    updates: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Prepared:
    """The judge has rebuilt the task, and knows what it costs today and how fast it could ever be."""

    floor_us: float
    baselines: tuple[Baseline, ...]
    device: str
    """``gpu: NVIDIA H200``, or ``no GPU: interpreter, modelled for cuda:90``."""
    environment: Environment = Environment()
    notes: tuple[str, ...] = ()
    degenerate: str = ""
    """The bad answer that the checker could not refuse on this op, such as ``zeros``; empty for a sound op."""
    qualification: Qualification = Qualification()
    inductor: str = ""
    """Inductor's own kernels for the op as a candidate's source, where ``torch.compile`` was measured and they can be turned into one."""

    @property
    def warning(self) -> str:
        """What is wrong with a degenerate op and what to change, in one line; empty for a sound one."""
        bad, advice = self.degenerate, self.qualification.advice
        if not bad:
            return ""
        what = bad if " matter" in bad or " depend" in bad else f"{bad} passes for its answer"
        return f"degenerate: {what}, so no verdict on it means much" + (f"; {advice}" if advice else "")


@dataclass(frozen=True)
class Asked:
    """The search wants a proposal, or a tunable point tried."""

    brief: Brief


@dataclass(frozen=True)
class Proposed:
    """A proposer answered; `proposal.candidate` is None where it could not."""

    proposal: Proposal


@dataclass(frozen=True)
class Evaluated:
    """The judge has spoken. `brief` is what it answers."""

    brief: str
    evaluation: Evaluation
    diagnosis: Diagnosis | None = None


@dataclass(frozen=True)
class BestChanged:
    """A faster right candidate. `candidate` with the parameters of `evaluation`."""

    candidate: str
    evaluation: str
    time_us: float


@dataclass(frozen=True)
class Migrated:
    """An elite was copied to an island that stagnates."""

    candidate: str
    source: str
    to: str


@dataclass(frozen=True)
class Acted:
    """The person did something: step, auto, pause, resume, stop, cancel, hint, ban, pin, branch. After an end, or when the proposers had
    nothing more, `reopen` follows the word that took the search up again.
    """

    verb: str
    argument: str = ""


@dataclass(frozen=True)
class Submitted:
    """The person handed in a variant of their own."""

    candidate: Candidate


@dataclass(frozen=True)
class StateChanged:
    """The run went from one state to another. `reason` says why, for people."""

    state: RunState
    reason: str = ""


@dataclass(frozen=True)
class Spent:
    """The budget used so far; sent with every evaluation."""

    spent: Budget


@dataclass(frozen=True)
class Noted:
    """Something worth telling the person in one line. `level` is info or warning."""

    message: str
    level: str = "info"


@dataclass(frozen=True)
class AcceptedCandidate:
    """A variant passed the second judging and its code was made. `place` says where it went."""

    evidence: Evidence
    code: str
    place: str = ""


@dataclass(frozen=True)
class Ended:
    """The run is over; `best` is the id of the best candidate, empty where none is right."""

    reason: str
    best: str = ""


Event = (
    RunStarted | Prepared | Asked | Proposed | Evaluated | BestChanged | Migrated | Acted | Submitted | StateChanged | Spent | Noted
    | AcceptedCandidate | Ended
)  # fmt: skip
EVENT_TYPES: Mapping[str, type] = {kind.__name__: kind for kind in get_args(Event)}


@dataclass(frozen=True)
class Stamped:
    """An event on a run's time line. `seq` counts from 1 without gaps; `time` is seconds since the epoch."""

    run: str
    seq: int
    time: float
    event: Event

    @property
    def type(self) -> str:
        return type(self.event).__name__


def encode_event(stamped: Stamped) -> dict[str, Any]:
    """JSON data of a stamped event, with its type beside its body."""
    return {
        "run": stamped.run, "seq": stamped.seq, "time": stamped.time, "type": stamped.type, "body": encode(stamped.event),
    }  # fmt: skip


def decode_event(data: Mapping[str, Any]) -> Stamped:
    """The stamped event that `encode_event` made `data` from."""
    return Stamped(run=data["run"], seq=data["seq"], time=data["time"], event=decode(EVENT_TYPES[data["type"]], data["body"]))


__all__ = [
    "EVENT_TYPES", "AcceptedCandidate", "Acted", "Asked", "BestChanged", "Ended", "Evaluated", "Event", "Migrated", "Noted",
    "Prepared", "Proposed", "RunStarted", "RunState", "Spent", "Stamped", "StateChanged", "Submitted", "decode_event", "encode_event",
]  # fmt: skip
