"""The clock that counts: it runs in the judge, and every call that it times has inputs that nobody could know before.

For each call the judge rings twice. The first ring reveals the call's seed: the worker draws new inputs into the same memory and reports
that it is ready. The second starts the call. The worker claims a time by its own events; the judge measures from ring to answer. If the
claim is much shorter than that, less the lead (see `stopwatch`) and what a worker that does nothing takes, or shorter than physics
allows, the time is not confirmed. The outputs of a few calls, chosen at random, are compared in full before the next ring.

Baselines go through the same rings in processes of their own that never saw a candidate.
"""

from __future__ import annotations

import contextlib
import random
import statistics as plain_statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from workbench.candidate import Baseline, Candidate, Verdict, Witness
from workbench.capture.references import Reference
from workbench.inputs import make_inputs
from workbench.judge import gpu, state, statistics
from workbench.judge.checks import in_words
from workbench.judge.compare import compare
from workbench.judge.doorbell import Answer, Doorbell, DoorbellSilent, Order
from workbench.judge.expected import Error, expect
from workbench.judge.pool import Pool
from workbench.judge.process import Worker, WorkerLost
from workbench.judge.shared import layout
from workbench.judge.stopwatch import COLD, HOT, call_seed
from workbench.judge.trial import Limits, Stop, Trial
from workbench.records import encode
from workbench.target import Target, get_target
from workbench.task import Task

SHORT_US, ENOUGH_US = 30.0, 200.0
"""Calls shorter than the first are timed several at a ring, so that together they take the second at least."""

_MOST_COPIES, _COPIES_BYTES = 64, 2 << 30
_LEAD_MARGIN, _LEAST_LEAD_US, _MOST_LEAD_US = 2.0, 150, 20_000
"""The lead ahead of a call is what its launches took when it was warmed up, times the first, within the others: the first launches after
a pause take longer, and one that comes too late is measured as an idle card."""
_NULL = Candidate("null", "triton", "def null(*inputs):\n    return [x for x in inputs if hasattr(x, 'shape')][:1]\n", "null")


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    blocks: int
    calls: int
    warm_calls: int
    warm_seconds: float
    verified: int = 3


QUICK = Plan(blocks=3, calls=5, warm_calls=5, warm_seconds=0.02)
FULL = Plan(blocks=6, calls=10, warm_calls=25, warm_seconds=0.2)


@dataclass
class Player:
    """One process that is being timed, with what was measured of it."""

    name: str
    worker: Worker
    bell: Doorbell
    count: int = 1
    lead: int = 0
    enqueued: float = 0.0
    claims: list[list[float]] = field(default_factory=list)
    walls: list[list[float]] = field(default_factory=list)


class Clock:
    """Times candidates of one task against its baselines.

    Args:
        reference: gives the reference with the parameters of the judging that is going on.
        place: ``cuda``, or ``cpu`` to test the harness with PyTorch on the CPU.
    """

    def __init__(
        self, task: Task, pool: Pool, reference: Callable[[], Reference], place: str, limits: Limits, next_seed: Callable[[], int],
        construction_seed: int,
    ) -> None:  # fmt: skip
        self.task, self.pool, self.place, self.limits = task, pool, place, limits
        self.target: Target = get_target(task.target)
        self._reference, self._next_seed, self._construction_seed = reference, next_seed, construction_seed
        self._sizes = [output.nbytes for output in task.outputs]
        self._flush = gpu.flush_bytes() if place == "cuda" else 0
        self._measured: dict[str, list[list[float]]] = {}
        self._baselines: tuple[Baseline, ...] | None = None
        self._null_us: float | None = None

    def baselines(self) -> tuple[Baseline, ...]:
        """Eager and torch.compile, measured once per task."""
        if self._baselines is None:
            self._baselines = (self._baseline("eager"), self._baseline("compile"))
        return self._baselines

    def time(self, trial: Trial, worker: Worker, errors: tuple[Error, ...] | None = None) -> None:
        """Fills in the trial's timing and speedup, or ends it.

        Args:
            errors: of honest computation at the task's own shapes, if known.
        """
        plan = FULL if trial.mode == "full" else QUICK
        faster = self._faster()
        with self._alone(trial), contextlib.ExitStack() as stack:
            null = self._null()
            player = stack.enter_context(self._play(trial.candidate.id, worker))
            self._warm(player, plan)
            rival = None
            if plan is FULL and faster is not None:
                rival = stack.enter_context(self._play(faster, stack.enter_context(self._baseline_worker(faster))))
                self._warm(rival, plan)
            checked = set(random.SystemRandom().sample(range(plan.blocks * plan.calls), plan.verified))
            for block in range(plan.blocks):
                # A B, B A, A B, …: neither always runs on the cooler card.
                turns = [player, rival] if block % 2 == 0 else [rival, player]
                for turn in turns:
                    if turn is not None:
                        self._block(trial, turn, plan, {n - block * plan.calls for n in checked} if turn is player else set(), errors)
            hot = [self._hot(player) for _ in range(5)]
        trial.timing = statistics.timing(player.claims)
        trial.hot = statistics.timing([hot])
        self._confirm(trial, player, null)
        against = rival.claims if rival is not None else self._measured.get(faster or "")
        if against and faster is not None:
            trial.speedup = statistics.speedup(against, player.claims, faster, paired=rival is not None)

    # One call, one block

    def _call(self, player: Player, seed: int) -> tuple[float, float]:
        """Wall and claimed µs of one call, cold, on content that is known only now."""
        self._ring(player, Order.PREPARE, seed=seed, count=player.count, flag=COLD)
        answer = self._ring(player, Order.GO, flag=COLD, lead=player.lead)
        player.enqueued = answer.enqueued
        return answer.wall - player.lead, answer.claim / player.count

    def _hot(self, player: Player) -> float:
        self._ring(player, Order.PREPARE, seed=self._next_seed(), count=1, flag=HOT)
        self._ring(player, Order.GO, flag=HOT, lead=player.lead)
        return self._ring(player, Order.GO, flag=HOT, lead=player.lead).claim

    def _block(self, trial: Trial, player: Player, plan: Plan, checked: set[int], errors: tuple[Error, ...] | None) -> None:
        claims, walls = [], []
        for call in range(plan.calls):
            seed = self._next_seed()
            wall, claim = self._call(player, seed)
            claims.append(claim)
            walls.append(wall)
            if call in checked:
                self._verify(trial, player, seed, errors)
        player.claims.append(claims)
        player.walls.append(walls)

    def _verify(self, trial: Trial, player: Player, seed: int, errors: tuple[Error, ...] | None) -> None:
        """Compares the output of a call that was timed. Which one, nobody knew while it ran."""
        place = random.SystemRandom().randrange(player.count)
        shared = player.worker.shared
        shared.clear()
        self._ring(player, Order.HAND_OVER, count=place)
        expected = expect(
            trial.reference or self._reference(), make_inputs(self.task.inputs, call_seed(seed, place), self.place), known=errors
        )
        offsets = layout(self._sizes)
        for number, (offset, right) in enumerate(zip(offsets, expected.outputs, strict=True)):
            output = shared.read(offset, right.reference.shape, right.reference.dtype)
            found = compare(output, right, allowed=trial.allowed)
            if not found.right:
                witness = Witness(seed, "a timed call", number, found.index, found.got, found.expected, found.bound, found.pattern)
                raise Stop(Verdict.WRONG, f"right when checked, wrong when timed: {found.reason}", witness)

    def _warm(self, player: Player, plan: Plan) -> None:
        """Runs until compiling and autotuning are over, and settles how many calls a ring asks for."""
        player.count, player.lead = 1, 0
        times: list[float] = []
        begun = time.perf_counter()
        while len(times) < plan.warm_calls or time.perf_counter() - begun < plan.warm_seconds:
            times.append(self._call(player, self._next_seed())[1])
            self._lead(player)
        typical = plain_statistics.median(times[len(times) // 2 :])
        if typical < SHORT_US:
            fitting = max(1, _COPIES_BYTES // max(1, sum(spec.nbytes for spec in self.task.inputs) + sum(self._sizes)))
            player.count = int(min(_MOST_COPIES, fitting, -(-ENOUGH_US // max(0.1, typical)) + random.SystemRandom().randrange(3)))
            self._call(player, self._next_seed())
            self._lead(player)

    def _lead(self, player: Player) -> None:
        """Fits the lead to what launching took in the last call. A worker that claims too much or too little only harms its own times."""
        if self.place == "cuda":
            player.lead = int(min(_MOST_LEAD_US, max(_LEAST_LEAD_US, _LEAD_MARGIN * player.enqueued)))

    def _ring(self, player: Player, order: Order, *, seed: int = 0, count: int = 0, flag: int = 0, lead: int = 0) -> Answer:
        try:
            return player.bell.ring(
                order,
                seed=seed,
                count=count,
                flag=flag,
                lead=lead,
                timeout=self.limits.timing,
                alive=lambda: player.worker.look_after() is None,
            )
        except DoorbellSilent:
            # Either it raised, and its answer is waiting, or it is dead or hangs.
            answer = player.worker.receive(1.0)
            error = answer.get("error")
            raise Stop(Verdict.CRASHED, f"{in_words(error) if isinstance(error, dict) else 'it ended'} when timed") from None

    # Whether to believe it

    def _confirm(self, trial: Trial, player: Player, null: float) -> None:
        """The worker's claim against the judge's own clock, and against physics."""
        assert trial.timing is not None
        claimed = trial.timing.median_us * player.count
        # Of the judge's times the short ones: being put off the core lengthens some, nothing shortens any.
        wall = _short([wall for block in player.walls for wall in block])
        if claimed < 0.8 * (wall - null) - 3.0:
            seen = f"its process claims {claimed:.1f} µs, the judge's clock shows {wall - null:.1f} µs for the same calls"
            raise Stop(Verdict.TIME_NOT_CONFIRMED, seen)
        floor = physical_floor_us(self.task, self.target) if self.place == "cuda" else 0.0
        if trial.timing.median_us < floor:
            raise Stop(
                Verdict.TIME_NOT_CONFIRMED,
                f"{trial.timing.median_us:.2f} µs is faster than physics: moving its bytes takes {floor:.2f} µs on this card",
            )  # fmt: skip
        if trial.timing.p10_us and trial.timing.p90_us / trial.timing.p10_us > 1.3:
            trial.labels.add("times vary by more than 30 %")

    def _null(self) -> float:
        """Ring to answer, in µs, of a worker that does nothing."""
        if self._null_us is None:
            worker = self.pool.take("device")
            try:
                worker.ask({
                    "do": "load", "source": _NULL.source, "entry": _NULL.entry, "parameters": {}, "format": "function", "init_args": [],
                    "device": self.place, "seed": 0,
                }, self.limits.load)  # fmt: skip
                with self._play("null", worker) as player:
                    walls = [self._call(player, self._next_seed())[0] for _ in range(25)]
                self._null_us = _short(walls)
            finally:
                self.pool.discard(worker)
        return self._null_us

    # Who plays

    @contextlib.contextmanager
    def _play(self, name: str, worker: Worker) -> Iterator[Player]:
        bell = Doorbell(worker.shared)
        bell.reset()
        worker.send({
            "do": "time", "inputs": encode(self.task.inputs), "flush_bytes": self._flush, "offsets": layout(self._sizes),
            "sizes": self._sizes,
        })  # fmt: skip
        player = Player(name, worker, bell)
        try:
            yield player
            with contextlib.suppress(DoorbellSilent):
                bell.ring(Order.END, timeout=0.0, alive=lambda: False)
        finally:
            bell.close()

    def _baseline(self, name: str) -> Baseline:
        if name == "compile" and self.place != "cuda":
            return Baseline("compile", None, "needs a GPU to be measured")
        try:
            with self._alone(None), self._baseline_worker(name) as worker, self._play(name, worker) as player:
                self._warm(player, QUICK)
                trial_free = Plan(QUICK.blocks, QUICK.calls, 0, 0.0, 0)
                for _ in range(trial_free.blocks):
                    walls_claims = [self._call(player, self._next_seed()) for _ in range(trial_free.calls)]
                    player.claims.append([claim for _, claim in walls_claims])
        except (WorkerLost, Stop) as error:
            return Baseline(name, None, str(error))  # type: ignore[arg-type]
        self._measured[name] = player.claims
        return Baseline(name, statistics.timing(player.claims))  # type: ignore[arg-type]

    @contextlib.contextmanager
    def _baseline_worker(self, name: str) -> Iterator[Worker]:
        worker = self.pool.take("baseline")
        try:
            answer = worker.ask({
                "do": "load_reference", "task": encode(self.task), "device": self.place, "seed": self._construction_seed,
                "compile": name == "compile",
            }, self.limits.load)  # fmt: skip
            if "error" in answer:
                raise WorkerLost("start", in_words(answer["error"]))
            module = self._reference().module
            if module is not None:
                worker.ask({"do": "state", "specs": encode(state.describe(module)), "seed": self._next_seed()}, self.limits.load)
            yield worker
        finally:
            self.pool.discard(worker)

    def _faster(self) -> str | None:
        timed = [(b.timing.median_us, b.name) for b in self.baselines() if b.timing is not None]
        return min(timed)[1] if timed else None

    @contextlib.contextmanager
    def _alone(self, trial: Trial | None) -> Iterator[None]:
        if self.place != "cuda":
            yield
            return
        with gpu.lock(gpu.uuid(), self.limits.timing) as held:
            if not held and trial is not None:
                trial.labels.add("timed while another judge used the card")
            yield


def _short(walls: list[float]) -> float:
    """The tenth percentile."""
    return sorted(walls)[len(walls) // 10]


def physical_floor_us(task: Task, target: Target) -> float:
    """The least time that can be true: what no card can beat, with a margin.

    Outputs may still lie in the L2 when the call is over, so as much of them does not count. Products may be computed in the fastest type
    that is exact enough (three TF32 products for one in float32).
    """
    outputs = sum(output.nbytes for output in task.outputs)
    memory = (task.work.bytes - min(outputs, target.l2_bytes)) / target.bandwidth
    compute = 0.0
    if task.work.matmul_flops:
        peak = target.peak(task.work.matmul_dtype)
        if task.work.matmul_dtype == "float32":
            peak = max(peak, target.peak("tf32"))
        compute = task.work.matmul_flops / peak
    return max(0.95 * memory, 0.8 * compute) * 1e6
