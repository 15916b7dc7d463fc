"""The clock that counts: it runs in the judge, and every call that it times has inputs that nobody could know before.

One ring starts a call and reveals its seed: the worker draws the inputs into the same memory, behind a lead of idle work (see
`stopwatch`), empties the caches, calls, waits for the whole card, and answers with the time that its own events show. The judge measures
from ring to answer. Then it challenges: a fingerprint of the output, whose seed nobody knew (see `challenge`). `belief` says whether
claim, clock, outputs and physics fit.

Baselines go through the same rings in processes of their own that never saw a candidate, and so does a worker that does nothing.
"""

from __future__ import annotations

import contextlib
import random
import statistics as plain_statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from workbench.candidate import Baseline, Candidate, Verdict
from workbench.capture.references import Reference
from workbench.judge.correctness.checks import in_words
from workbench.judge.correctness.expected import Error
from workbench.judge.isolation.pool import Pool
from workbench.judge.isolation.process import Worker, WorkerLost
from workbench.judge.protocol import gpu, state
from workbench.judge.protocol.doorbell import Doorbell, DoorbellSilent, Order
from workbench.judge.protocol.shared import layout
from workbench.judge.text.label_words import OWN_STREAMS
from workbench.judge.timing import belief, nvml, statistics
from workbench.judge.timing.belief import Null, physical_floor_us
from workbench.judge.timing.player import BASELINE, FULL, QUICK, Plan, Player, Setting, short
from workbench.judge.trial import Limits, Stop, Trial
from workbench.records import decode, encode
from workbench.target import Target, get_target
from workbench.task import Task

_LATE_SECONDS = 0.05
_END_SECONDS = 10.0
"""How long after its last call a candidate's output is looked at again."""

_TRIES = 3
_MOST_DROPPED = 2
_NOISE = 0.05
_AUDITS = 3
_BESIDE = 1.3
"""How many times as long as alone a baseline may take beside a candidate."""

BASELINES = ("eager", "compile")

_MPS = "a CUDA MPS server runs: work of several processes runs at once, and a fault of one is a fault of all; stop it to judge here"


class Clock:
    """Times candidates of one task against its baselines.

    Args:
        reference: gives the reference with the parameters of the judging that is going on.
        place: ``cuda``, or ``cpu`` to test the harness with PyTorch on the CPU.
        against: the names of the baselines.
    """

    def __init__(
        self, task: Task, pool: Pool, reference: Callable[[], Reference], place: str, limits: Limits, next_seed: Callable[[], int],
        construction_seed: int, against: Sequence[str] = BASELINES,
    ) -> None:  # fmt: skip
        self.task, self.pool, self.place, self.limits, self.against = task, pool, place, limits, against
        self.target: Target = get_target(task.target)
        self._reference, self._next_seed, self._construction_seed = reference, next_seed, construction_seed
        self._setting = Setting(task, place, limits.timing, next_seed)
        self._flush = gpu.flush_bytes() if place == "cuda" else 0
        self._gauge = nvml.Gauge(gpu.uuid()) if place == "cuda" else None
        self._mps = place == "cuda" and nvml.under_mps()
        self._measured: dict[str, list[list[float]]] = {}
        self._baselines: tuple[Baseline, ...] | None = None
        self.generated: dict[str, Any] = {}
        self._idler: tuple[contextlib.ExitStack, Player] | None = None

    def baselines(self) -> tuple[Baseline, ...]:
        """Those that are wanted, measured once per task."""
        if self._baselines is None:
            self._baselines = tuple(self._baseline(name) for name in self.against)
        return self._baselines

    def measured(self) -> dict[str, Any]:
        """The baselines and their single times by block, in µs, as plain data for `adopt` in another judge of the same card."""
        return {"times": self._measured, "baselines": encode(self.baselines())}

    def adopt(self, measured: Mapping[str, Any]) -> None:
        """Takes over what another judge has measured of the baselines."""
        self._measured = {name: [list(block) for block in blocks] for name, blocks in measured["times"].items()}
        self._baselines = tuple(decode(Baseline, baseline) for baseline in measured["baselines"])

    def time(self, trial: Trial, worker: Worker, errors: tuple[Error, ...] | None = None) -> None:
        """Fills in the trial's timing and speedup, or ends it.

        Args:
            errors: of honest computation at the task's own shapes, if known.
        """
        if self._mps:
            raise Stop(Verdict.NOT_JUDGED, _MPS)
        plan = FULL if trial.mode == "full" else QUICK
        faster = self._faster()
        floor = physical_floor_us(self.task, self.target) if self.place == "cuda" else 0.0
        with contextlib.ExitStack() as stack:
            player = stack.enter_context(self._play(trial.candidate.id, worker))
            player.streams = OWN_STREAMS in trial.labels
            rival = None
            if plan is FULL and faster is not None:
                rival = stack.enter_context(self._play(faster, stack.enter_context(self._baseline_worker(faster))))
            for attempt in range(_TRIES):
                self._measure(trial, plan, player, rival)
                try:
                    belief.confirm_time(trial, player, self._null(player), floor)
                    break
                except Stop:  # another program may have been in the way: an honest claim is confirmed the next time, a false one never
                    if attempt == _TRIES - 1:
                        raise
            over = time.perf_counter()
            with self._busy():
                belief.confirm_outputs(trial, player, trial.reference or self._reference(), errors)
            time.sleep(max(0.0, _LATE_SECONDS - (time.perf_counter() - over)))
            belief.confirm_late(player)
        against = rival.claims if rival is not None else self._measured.get(faster or "")
        if against and faster is not None:
            trial.speedup = statistics.speedup(against, player.claims, faster, paired=rival is not None)
        self._label(trial, rival)

    # Blocks

    def _measure(self, trial: Trial, plan: Plan, player: Player, rival: Player | None) -> None:
        """One measurement of everybody, alone on the card."""
        with self._alone(trial):
            for turn in (player, rival):
                if turn is not None:
                    turn.forget()
                    turn.warm(plan)
            plan = plan.of(player.typical)
            idler = self._ready_idler(player)
            self._blocks(trial, player, rival, idler, plan)
            player.audit(_AUDITS)
            hot = [player.hot() for _ in range(min(5, plan.calls))]
            player.block(1)  # so that the late look is at a cold call's output
            player.drop_block(len(player.heard))
        trial.timing = statistics.timing(player.claims)
        trial.hot = statistics.timing([hot])

    def _blocks(self, trial: Trial, player: Player, rival: Player | None, idler: Player, plan: Plan) -> None:
        checked = set(random.SystemRandom().sample(range(plan.blocks * plan.calls), plan.verified))
        before, dropped, block = self._reasons(), 0, 0
        while block < plan.blocks:
            # A B, B A, A B, …: neither always runs on the cooler card.
            turns = [player, rival] if block % 2 == 0 else [rival, player]
            heard = len(player.heard)
            for turn in turns:
                if turn is player:
                    turn.block(plan.calls, {number - block * plan.calls for number in checked}, idle=True)
                    # Right after it: what clocks and other programs do to one, they do to the other.
                    idler.block(-(-plan.calls // 2), idle=idler.streams)
                elif turn is not None:
                    turn.block(plan.calls, listen=False)
            after = self._reasons()
            if before != after and dropped < _MOST_DROPPED:
                dropped += 1
                player.drop_block(heard)
                if rival is not None:
                    rival.drop_block(len(rival.heard))
            else:
                block += 1
            before = after
        if dropped:
            trial.labels.add(f"dropped {dropped} blocks in which the card changed its clocks")
        if (
            self.place == "cuda" and rival is None and statistics.noise(player.claims) > _NOISE
        ):  # measure twice as much before it is believed
            for _ in range(plan.blocks):
                player.block(plan.calls)

    def _label(self, trial: Trial, rival: Player | None) -> None:
        assert trial.timing is not None
        if rival is not None and (slower := self._slower(rival)) > _BESIDE:
            raise Stop(
                Verdict.NOT_JUDGED,
                f"too noisy a card to time on: {rival.name} takes {slower:.2f} times as long beside this candidate as it took alone",
            )  # fmt: skip
        if rival is not None and (noise := statistics.noise(rival.claims)) > _NOISE:
            raise Stop(Verdict.NOT_JUDGED, f"too noisy a card to time on: one and the same baseline takes times that are {noise:.0%} apart")
        if statistics.bimodal(trial.timing):
            trial.labels.add("times vary by more than 30 %")
        compiled = next((b.timing.median_us for b in self.baselines() if b.name == "compile" and b.timing is not None), None)
        if compiled and compiled / trial.timing.median_us > belief.REVIEW_RATIO:
            trial.labels.add(f"held for review: {compiled / trial.timing.median_us:.0f} times as fast as torch.compile")
        if self._gauge is not None and trial.mode == "full":
            trial.labels.add(f"the card after it: {reading}" if (reading := self._gauge.read()) else self._gauge.mend)
            if others := self._gauge.others():
                trial.labels.add(f"{others} other processes hold memory on the card")

    def _slower(self, rival: Player) -> float:
        """How many times as long a baseline takes beside a candidate as alone: one that works while it is not asked slows others down."""
        alone = statistics.timing(self._measured[rival.name]).median_us if self._measured.get(rival.name) else 0.0
        return statistics.timing(rival.claims).median_us / alone if alone and rival.claims else 1.0

    def _reasons(self) -> int | None:
        return self._gauge.reasons() if self._gauge is not None else None

    # Who plays

    @contextlib.contextmanager
    def _play(self, name: str, worker: Worker) -> Iterator[Player]:
        bell = Doorbell(worker.shared)
        bell.reset()
        worker.send({
            "do": "time", "inputs": encode(self.task.inputs), "flush_bytes": self._flush, "offsets": layout(self._setting.sizes),
            "sizes": self._setting.sizes,
        })  # fmt: skip
        player = Player(name, worker, bell, self._setting)
        try:
            yield player
            with contextlib.suppress(DoorbellSilent):
                bell.ring(Order.END, timeout=0.0, alive=lambda: False)
        finally:
            bell.close()

    def _ready_idler(self, player: Player) -> Player:
        """The worker that does nothing, with as many calls a ring and the same lead. It stays for the next candidate."""
        if self._idler is not None and not self._idler[1].worker.alive:
            self.close()
        if self._idler is None:
            self._idler = self._start_idler()
        idler = self._idler[1]
        idler.forget()
        idler.count, idler.lead, idler.streams = player.count, player.lead, player.streams
        for _ in range(2):
            idler.call(self._next_seed())
        return idler

    def _null(self, player: Player) -> Null:
        assert self._idler is not None
        idler = self._idler[1]
        walls = short([wall for block in (idler.idles if idler.streams else idler.walls) for wall in block])
        most = walls + belief.IDLE_SHARE * max(0.0, walls - player.lead) + belief.IDLE_SLACK_US[self.place]
        return Null(most, plain_statistics.median(heard.reply_us for heard in idler.heard))

    def _start_idler(self) -> tuple[contextlib.ExitStack, Player]:
        null = _null_candidate(self.task, self.place)
        with contextlib.ExitStack() as stack:
            worker = self.pool.take("device")
            stack.callback(self.pool.discard, worker)
            worker.ask({
                "do": "load", "source": null.source, "entry": null.entry, "parameters": {}, "format": "function", "init_args": [],
                "device": self.place, "seed": 0,
            }, self.limits.load)  # fmt: skip
            player = stack.enter_context(self._play("null", worker))
            for _ in range(5):
                player.call(self._next_seed())
                player.challenge(self._next_seed(), 0)
            return stack.pop_all(), player

    def close(self) -> None:
        """Ends the worker that does nothing."""
        if self._idler is not None:
            stack, self._idler = self._idler[0], None
            with contextlib.suppress(WorkerLost, Stop):
                stack.close()

    def _baseline(self, name: str) -> Baseline:
        if name == "compile" and self.place != "cuda":
            return Baseline("compile", None, "needs a GPU to be measured")
        if self._mps:
            return Baseline(name, None, _MPS)  # type: ignore[arg-type]
        try:
            with self._baseline_worker(name) as worker:
                with self._play(name, worker) as player:
                    player.call(self._next_seed())  # compiles, and may take minutes: others may use the card meanwhile
                    with self._alone(None):
                        player.warm(BASELINE)
                        plan = BASELINE.of(player.typical)
                        for _ in range(plan.blocks):
                            player.block(plan.calls, listen=False)
                if name == "compile":
                    self.generated = self._ask_generated(worker)
        except (WorkerLost, Stop) as error:
            return Baseline(name, None, str(error))  # type: ignore[arg-type]
        self._measured[name] = player.claims
        return Baseline(name, statistics.timing(player.claims))  # type: ignore[arg-type]

    def _ask_generated(self, worker: Worker) -> dict[str, Any]:
        """What torch.compile made, see `generated`. A worker that can't say costs no baseline."""
        try:
            worker.receive(_END_SECONDS)  # the end of its playing
            answer = worker.ask({"do": "generated"}, self.limits.load)
        except WorkerLost as error:
            return {"reason": str(error)}
        return dict(answer.get("generated") or {"reason": in_words(answer["error"]) if "error" in answer else ""})

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

    def _busy(self) -> contextlib.AbstractContextManager[bool]:
        if self.place != "cuda":
            return contextlib.nullcontext(True)
        return gpu.lock(gpu.uuid(), self.limits.timing, shared=True)

    @contextlib.contextmanager
    def _alone(self, trial: Trial | None) -> Iterator[None]:
        if self.place != "cuda":
            yield
            return
        with gpu.lock(gpu.uuid(), self.limits.timing) as held:
            if not held and trial is not None:
                trial.labels.add("timed while another judge used the card")
            yield


def _null_candidate(task: Task, place: str) -> Candidate:
    """A module that returns outputs of the right form at once."""
    made = ", ".join(f"torch.zeros({tuple(output.shape)!r}, dtype=torch.{output.dtype}, device={place!r})" for output in task.outputs)
    return Candidate("null", "triton", f"import torch\nKEPT = ({made},)\ndef null(*inputs):\n    return KEPT\n", "null")
