"""One process that is being timed: the rings that it gets, and what was heard of it."""

from __future__ import annotations

import math
import random
import statistics as plain_statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import torch

from workbench.candidate import Verdict
from workbench.judge.correctness.checks import in_words
from workbench.judge.isolation.process import Worker
from workbench.judge.protocol.doorbell import Answer, Doorbell, DoorbellSilent, Order
from workbench.judge.protocol.shared import layout
from workbench.judge.timing.stopwatch import BESIDE, COLD, HOT, IDLE, LATE
from workbench.judge.trial import Stop
from workbench.task import Task

SHORT_US, ENOUGH_US = 75.0, 150.0
"""Calls shorter than the first are timed several at a ring, so that together they take the second at least."""

LONG_US = 2000.0
"""Calls longer than this vary little from one to the next, so half as many are measured of them."""

_MOST_COPIES, _COPIES_BYTES = 64, 2 << 30
_LEAD_MARGIN, _LEAST_LEAD_US, _MOST_LEAD_US = 2.0, 150, 20_000
"""The lead ahead of a call is what its launches took when it was warmed up, times the first, within the others: the first launches after
a pause take longer, and one that comes too late is measured as an idle card."""

_random = random.SystemRandom()


@dataclass(frozen=True)
class Plan:
    """How much is measured: blocks of calls, calls of warming up and their seconds at least, outputs compared in full."""

    blocks: int
    calls: int
    warm_calls: int
    warm_seconds: float
    verified: int = 3

    def of(self, typical_us: float) -> Plan:
        """The plan for calls that take so long."""
        if typical_us <= LONG_US:
            return self
        return replace(self, calls=-(-self.calls // 2), warm_calls=-(-self.warm_calls // 3))


QUICK = Plan(blocks=3, calls=5, warm_calls=8, warm_seconds=0.02)
FULL = Plan(blocks=6, calls=10, warm_calls=25, warm_seconds=0.4)
BASELINE = Plan(blocks=6, calls=8, warm_calls=10, warm_seconds=0.1, verified=0)
"""Of a baseline, which is measured once per task."""


@dataclass(frozen=True)
class Setting:
    """What all that play against each other share: the task, where, and for how long an answer is waited for."""

    task: Task
    place: str
    timeout: float
    next_seed: Callable[[], int]

    @property
    def sizes(self) -> list[int]:
        """Bytes of each output."""
        return [output.nbytes for output in self.task.outputs]


@dataclass(frozen=True)
class Heard:
    """What came of one timed call besides its time.

    Attributes:
        seed, place: of the ring, and which of its calls was asked about.
        print_seed, numbers: of the challenge and its answer, which took `reply_us`.
        outputs: the bytes that were handed over, for the few calls where they were asked for.
        in_order: whether what the next op in the caller's stream would have read is what was there when the whole card was done.
        committed: where a ring has several calls, what was said of this one's output before it was asked about, see `challenge.commit`.
    """

    seed: int
    place: int
    print_seed: int
    numbers: tuple[float, ...]
    reply_us: float
    outputs: tuple[torch.Tensor, ...] | None = None
    in_order: bool = True
    committed: float | None = None


@dataclass
class Player:
    """A worker at its doorbell. `count` calls a ring, behind `lead` µs of idle work; times in µs, by block.

    Attributes:
        idles: wall times of the rings without a call that followed the calls of a block; none where none were asked for.
        typical: about what a call takes, as it was when it was warmed up.
        again: what the answers to second challenges took, when the output had been there for long.
        streams: whether it works on streams of its own.
    """

    name: str
    worker: Worker
    bell: Doorbell
    setting: Setting
    streams: bool = False
    count: int = 1
    lead: int = 0
    enqueued: float = 0.0
    typical: float = 0.0
    claims: list[list[float]] = field(default_factory=list)
    walls: list[list[float]] = field(default_factory=list)
    idles: list[list[float]] = field(default_factory=list)
    again: list[list[float]] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)

    @property
    def apart(self) -> list[float]:
        """How much longer each ring with a call took than the one without a call right after it."""
        return [wall - idle for block in zip(self.walls, self.idles, strict=True) for wall, idle in zip(*block, strict=False)]

    def call(self, seed: int) -> tuple[float, float]:
        """Wall time of one ring, and the time claimed for one call: cold, on content that is known only now."""
        begin = seed
        if self.setting.place != "cuda":  # on the CPU drawing takes longer than most calls, and nothing runs behind anything
            self.ring(Order.PREPARE, seed=seed, count=self.count, flag=COLD)
            begin = 0
        answer = self.ring(Order.GO, seed=begin, count=self.count, flag=COLD, lead=self.lead)
        self.enqueued = answer.enqueued
        return answer.wall, answer.claim / self.count

    def idle(self, seed: int) -> float:
        """Wall time of one ring with everything but the call: what the call's own wall time is measured from.

        In the same process, since the same drawing takes other times in other processes, whose memory lies elsewhere.
        """
        flag = BESIDE if self.streams else IDLE
        if self.setting.place != "cuda":
            self.ring(Order.PREPARE, seed=seed, count=self.count, flag=flag)
            seed = 0
        return self.ring(Order.GO, seed=seed, count=self.count, flag=flag, lead=self.lead).wall

    def challenge(self, seed: int, place: int) -> tuple[tuple[float, ...], float, float | None]:
        """The fingerprint of what the last ring's call `place` returned, how long the answer took, and what was committed to before.

        All calls of the ring are summed up before the worker hears which one it is.
        """
        committed, wall = None, 0.0
        if self.count > 1:
            wall = self.ring(Order.COMMIT, seed=seed).wall
            sums = self.bell.numbers()
            committed = sums[place] if place < len(sums) else math.nan
        wall += self.ring(Order.CHALLENGE, seed=seed, count=place).wall
        return tuple(self.bell.numbers()), wall, committed

    def hand_over(self, place: int) -> tuple[tuple[torch.Tensor, ...], bool]:
        """The bytes of what the last ring's call `place` returned, in the shapes that the task says; and whether they came in order."""
        task, shared = self.setting.task, self.worker.shared
        shared.clear(sum(self.setting.sizes))
        in_order = self.ring(Order.HAND_OVER, count=place).claim == 1.0
        outputs = tuple(
            shared.read(offset, output.shape, getattr(torch, output.dtype), self.setting.place)
            for offset, output in zip(layout(self.setting.sizes), task.outputs, strict=True)
        )  # fmt: skip
        return outputs, in_order

    def hot(self) -> float:
        """Time of one call on inputs that the call before has just used; as many calls make a ring as of cold ones."""
        self.ring(Order.PREPARE, seed=self.setting.next_seed(), count=1, flag=HOT)
        self.ring(Order.GO, count=self.count, flag=HOT, lead=self.lead)
        return self.ring(Order.GO, count=self.count, flag=HOT, lead=self.lead).claim / self.count

    def block(self, calls: int, verified: Iterable[int] = (), *, listen: bool = True, idle: bool = False) -> None:
        """A block of timed calls.

        Args:
            verified: calls whose bytes are asked for afterwards. Which ones, nobody knows while they run.
            listen: challenge each call.
            idle: a ring without a call follows each, and a second challenge: what the first ones are measured from, in the same process
                at almost the same moment. From one process to the next, and from one second to the next, both vary by tens of µs.
        """
        claims, walls, idles, again = [], [], [], []
        for call in range(calls):
            seed = self.setting.next_seed()
            wall, claim = self.call(seed)
            claims.append(claim)
            walls.append(wall)
            place = _random.randrange(self.count)
            if listen:
                print_seed = _random.randrange(1, 1 << 62)
                numbers, reply, committed = self.challenge(print_seed, place)
                outputs, in_order = self.hand_over(place) if call in verified else (None, True)
                self.heard.append(Heard(seed, place, print_seed, numbers, reply, outputs, in_order, committed))
            if idle:
                idles.append(self.idle(self.setting.next_seed()))
                again.append(self.challenge(_random.randrange(1, 1 << 62), place)[1])
        for kept, found in zip(self._blocks, (claims, walls, idles, again), strict=True):
            kept.append(found)

    def audit(self, rings: int) -> None:
        """Rings like the timed ones, but each call's inputs come when the call before is over.

        Where several calls make one ring, all of its inputs are in memory before the first call, and who finds them could compute all
        results at once. Here that gives the results of the ring before. The times of these rings do not count.
        """
        for _ in range(rings if self.count > 1 else 0):
            seed, place, print_seed = self.setting.next_seed(), _random.randrange(1, self.count), _random.randrange(1, 1 << 62)
            self.ring(Order.GO, seed=seed, count=self.count, flag=LATE, lead=self.lead)
            numbers, reply, committed = self.challenge(print_seed, place)
            self.heard.append(Heard(seed, place, print_seed, numbers, reply, committed=committed))

    def forget(self) -> None:
        """Forgets everything that was measured and heard."""
        for kept in self._blocks:
            kept.clear()
        self.heard.clear()

    def drop_block(self, heard: int) -> None:
        """Forgets the last block; `heard` is how much had been heard before it."""
        for kept in self._blocks:
            kept.pop()
        del self.heard[heard:]

    @property
    def _blocks(self) -> tuple[list[list[float]], ...]:
        return self.claims, self.walls, self.idles, self.again

    def warm(self, plan: Plan) -> None:
        """Runs until compiling and autotuning are over, and settles how many calls a ring asks for."""
        self.count, self.lead = 1, 0
        times: list[float] = []
        begun = time.perf_counter()
        while len(times) < plan.of(min(times, default=0.0)).warm_calls or time.perf_counter() - begun < plan.warm_seconds:
            times.append(self.call(self.setting.next_seed())[1])
            self._fit_lead()
        self.typical = typical = plain_statistics.median(times[len(times) // 2 :])
        if typical < SHORT_US:
            task = self.setting.task
            fitting = max(1, _COPIES_BYTES // max(1, sum(spec.nbytes for spec in task.inputs) + sum(self.setting.sizes)))
            self.count = int(min(_MOST_COPIES, fitting, -(-ENOUGH_US // max(0.1, typical)) + _random.randrange(3)))
            for _ in range(2):  # the first makes the copies, the second shows what launching takes
                self.call(self.setting.next_seed())
                self._fit_lead()

    def _fit_lead(self) -> None:
        """Fits the lead to what launching took in the last call. A worker that claims too much or too little only harms its own times."""
        if self.setting.place == "cuda":
            self.lead = int(min(_MOST_LEAD_US, max(_LEAST_LEAD_US, _LEAD_MARGIN * self.enqueued)))

    def ring(self, order: Order, *, seed: int = 0, count: int = 0, flag: int = 0, lead: int = 0) -> Answer:
        """One ring.

        Raises:
            Stop: the candidate raised.
            WorkerLost: it is gone.
        """
        try:
            return self.bell.ring(
                order, seed=seed, count=count, flag=flag, lead=lead, timeout=self.setting.timeout,
                alive=lambda: self.worker.look_after() is None,
            )  # fmt: skip
        except DoorbellSilent:
            # Either it raised, and its answer is waiting, or it is dead or hangs.
            answer = self.worker.receive(1.0)
            error = answer.get("error")
            raise Stop(Verdict.CRASHED, f"{in_words(error) if isinstance(error, dict) else 'it ended'} when timed") from None


def short(times: Sequence[float]) -> float:
    """The lower quartile: being put off the core lengthens some wall times, nothing shortens any."""
    return sorted(times)[len(times) // 4]
