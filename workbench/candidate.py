"""What everything passes around: a candidate, its verdict, its evaluation, its diagnosis, and the evidence of an accepted one."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Backend = Literal["triton", "cuda"]
Mode = Literal["quick", "full"]


class Verdict(enum.Enum):
    """What the judge says of a candidate. Failure is data."""

    RIGHT = "right"
    """Within the bounds of the reference's own error, on every input set."""
    LOWER_PRECISION = "lower_precision"
    """Right by the same rule with the round-off of a coarser type. Acceptable with the person's consent."""
    WRONG = "wrong"
    """A witness shows an element, shape or dtype that differs."""
    REFUSED = "refused"
    """Tampering, or unsafe."""
    CRASHED = "crashed"
    """The worker died or the launcher raised."""
    TIMED_OUT = "timed_out"
    DOES_NOT_BUILD = "does_not_build"
    TIME_NOT_CONFIRMED = "time_not_confirmed"
    """The clocks disagree, or the time is faster than physics."""
    NOT_JUDGED = "not_judged"
    """It could not be run here; the reason says why. Never a fault of the candidate."""

    @property
    def passes(self) -> bool:
        """May be a best candidate and a parent for structure."""
        return self is Verdict.RIGHT

    @property
    def rank(self) -> int:
        """Failing candidates are ranked too: does not build < crashes < runs but wrong < lower precision < right."""
        return _RANKS[self]


_RANKS = {
    Verdict.REFUSED: 0,
    Verdict.DOES_NOT_BUILD: 1,
    Verdict.NOT_JUDGED: 2,
    Verdict.CRASHED: 3,
    Verdict.TIMED_OUT: 3,
    Verdict.WRONG: 4,
    Verdict.TIME_NOT_CONFIRMED: 5,
    Verdict.LOWER_PRECISION: 6,
    Verdict.RIGHT: 7,
}


@dataclass(frozen=True)
class Candidate:
    """One self-contained module that should compute what the reference computes, only faster.

    Attributes:
        id: short and unique in its run, in ask order: ``k1``, ``k2``, …
        source: the module. Its literal ``TUNE`` is the tunable space, see `build.tune`.
        entry: the function or class that it must define.
        recipe: for an expert's candidate: ``{"expert": name, **choices}``, what the search recombines.
        parents: ids of the candidates that it came from.
        proposer: ``experts``, ``llm:<model>``, ``person``, ``recording`` or a name of the user's own.
        plan: the idea in a sentence or two.
        cites: ids of the experts and cards that it used.
    """

    id: str
    backend: Backend
    source: str
    entry: str
    recipe: Mapping[str, Any] = field(default_factory=dict)
    parents: tuple[str, ...] = ()
    island: str = ""
    proposer: str = ""
    plan: str = ""
    brief: str = ""
    cites: tuple[str, ...] = ()


@dataclass(frozen=True)
class Witness:
    """One place where a candidate is wrong, enough to see it again: same seed, same input set, same index.

    `got`, `expected` and `bound` are of the element at `index` of output number `output`; bound is on ``|got - expected|``.
    """

    seed: int
    input_set: str
    output: int = 0
    index: tuple[int, ...] = ()
    got: float | None = None
    expected: float | None = None
    bound: float | None = None
    pattern: str = ""
    """Where the mismatches lie, in words: ``last tile of dim 1``, ``every element scaled by 1.002``, ``one row``, ``NaN``."""


@dataclass(frozen=True)
class Timing:
    """A time in µs. `low_us` and `high_us` are the 95 % interval of the median; for a modelled time all five are equal."""

    median_us: float
    low_us: float
    high_us: float
    p10_us: float
    p90_us: float
    calls: int = 0
    blocks: int = 0
    modelled: bool = False


@dataclass(frozen=True)
class Baseline:
    """What the op costs today. `timing` is None where it could not be measured or modelled, and `reason` says why."""

    name: Literal["eager", "compile"]
    timing: Timing | None = None
    reason: str = ""


@dataclass(frozen=True)
class Speedup:
    """Baseline time over candidate time, with its 95 % interval. Measured only: a modelled time never has one."""

    ratio: float
    low: float
    high: float
    against: str


@dataclass(frozen=True)
class Resources:
    """What one launch of a compiled kernel takes.

    Attributes:
        kernel: its name; `grid`: its programs per axis; `launches`: how often the launcher does it in one call.
        registers: per thread; `spill_bytes`: per thread, of local memory; `shared_bytes`: per program.
        occupancy: resident warps over the most that the target can hold, 0 to 1; `limited_by`: what limits it.
        waves: programs over those that are resident at once on the whole card.
        vector_bytes: the widest global load or store of one thread.
        tensor_cores: whether the code has matrix instructions; `dot_precision`: what Triton's IR asks of them.
        backend: what the kernel is written in, so that advice speaks its language.
    """

    kernel: str
    grid: tuple[int, ...]
    launches: int = 1
    warps: int = 4
    stages: int = 1
    registers: int = 0
    spill_bytes: int = 0
    shared_bytes: int = 0
    occupancy: float = 0.0
    limited_by: str = ""
    waves: float = 0.0
    vector_bytes: int = 0
    tensor_cores: bool = False
    dot_precision: str = ""
    backend: Backend = "triton"


@dataclass(frozen=True)
class ModelledTime:
    """Where a modelled time comes from, summed over the launches of one call.

    `dram_bytes` are distinct bytes touched, `l2_bytes` all bytes requested. The four times add up to more than the total where
    they overlap. `limiter` is one of memory, l2, compute, launches.
    """

    total_us: float
    dram_bytes: float
    l2_bytes: float
    flops: float
    memory_us: float
    l2_us: float
    compute_us: float
    launch_us: float
    launches: int
    limiter: str


@dataclass(frozen=True)
class Environment:
    """Where a judgement was made. `gpu` is empty on a machine without one."""

    python: str = ""
    torch: str = ""
    triton: str = ""
    gpu: str = ""
    driver: str = ""
    sandbox: str = ""
    """The tier in words, such as ``bubblewrap`` or ``not sandboxed``."""


NOT_UPDATED = "does not update "
"""How the label begins of a kernel that leaves buffers stale which the reference's call updates; their names follow."""


@dataclass(frozen=True)
class Evaluation:
    """What the judge found of one candidate at one point of its tunable space.

    Attributes:
        id: ``<candidate>.<n>``.
        parameters: the chosen value of each ``TUNE`` name.
        reason: one line for people; for anything but `right` it says why.
        judged_by: ``gpu`` or ``interpreter (4×130, 4×64)``: shown beside every verdict.
        matched: share of output elements within their bounds on the worst input set; None if it never ran.
        error_ratio: worst ``error / bound`` of any element; ≤ 1 for a right candidate.
        stage_ms: wall time of each stage, in order.
        timing: cold time of one call; None where none could be had. `hot`: the same with warm caches.
        speedup: against the faster measured baseline.
        own_kernel_share: share of GPU time in the candidate's own kernels, 0 to 1.
        labels: facts worth showing that refuse nothing, such as ``calls torch.matmul``.
        log: the end of the compiler's or candidate's output. Untrusted text.
    """

    id: str
    candidate: str
    task: str
    verdict: Verdict
    reason: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    witness: Witness | None = None
    judged_by: str = ""
    mode: Mode = "quick"
    input_sets: tuple[str, ...] = ()
    matched: float | None = None
    error_ratio: float | None = None
    stage_ms: Mapping[str, float] = field(default_factory=dict)
    timing: Timing | None = None
    hot: Timing | None = None
    speedup: Speedup | None = None
    own_kernel_share: float | None = None
    labels: tuple[str, ...] = ()
    resources: tuple[Resources, ...] = ()
    modelled: ModelledTime | None = None
    log: str = ""
    seed: int | None = None
    """The seed that was asked for; an evaluation that has one is repeatable, and no evidence."""
    replay: int | None = None
    """The seed to ask for to see the very same inputs again: known only after the run."""
    environment: Environment = Environment()

    @property
    def time_us(self) -> float | None:
        """The time that ranks it, measured or modelled; None where it has none or does not pass."""
        return self.timing.median_us if self.timing is not None and self.verdict.passes else None


@dataclass(frozen=True)
class Diagnosis:
    """Why an evaluation came out as it did, and the one thing to do next. Made from the evaluation alone.

    Attributes:
        kind: ``build``, ``launch``, ``mismatch``, ``precision``, ``timeout``, ``refused``, ``unknown`` for failures; ``memory``,
            ``compute``, ``l2``, ``launches``, ``occupancy``, ``spills``, ``floor`` (nothing left to gain) for what works.
        summary: one sentence for people.
        evidence: the few figures that it rests on.
        directive: the one change to make next.
        headroom: time over floor; None where there is no time.
    """

    evaluation: str
    kind: str
    summary: str
    directive: str
    evidence: tuple[str, ...] = ()
    headroom: float | None = None


@dataclass(frozen=True)
class Evidence:
    """What an accepted kernel carries: enough to judge it again."""

    task: str
    run: str
    candidate: str
    source_sha: str
    reference_sha: str
    accepted_source_sha: str
    evaluation: Evaluation
    guard: Mapping[str, Any] = field(default_factory=dict)
    made_at: str = ""
    workbench: str = ""
