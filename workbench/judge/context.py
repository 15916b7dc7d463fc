"""What all stages of a judging share: the task on this machine, its reference, its input sets, its workers and its seeds."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
from collections.abc import Callable, Sequence

import torch

from workbench.candidate import Verdict
from workbench.capture.references import MODEL_SEED, Reference, load_reference
from workbench.inputs import make_inputs
from workbench.judge.correctness import buffers, compare, inputsets
from workbench.judge.correctness.checks import shared_bytes
from workbench.judge.correctness.expected import Error
from workbench.judge.correctness.inputsets import InputSet
from workbench.judge.isolation import sandbox
from workbench.judge.isolation.pool import Nursery, Pool, spares
from workbench.judge.isolation.process import Kind, Worker
from workbench.judge.protocol import gpu, state
from workbench.judge.protocol.shared import needed
from workbench.judge.timing.clock import BASELINES, Clock
from workbench.judge.trial import Limits, Stop
from workbench.target import get_target
from workbench.task import InputSpec, Task

Workers = dict[Kind, Worker]


class Context:
    """One task on one machine. The arguments are those of `Judge`.

    Attributes:
        device: ``cuda``, ``cpu`` or ``host``; `measured` where candidates are timed, and not modelled.
        place: where the judge's own tensors live, ``cuda`` or ``cpu``.
        construction_seed: seeds the constructor of a model in the workers of the baselines.
        state_specs: how a model's parameters and buffers are drawn, once the reference is loaded.
        buffer_errors: of the buffers that `updates` names: honest errors, by the kind of input.
    """

    def __init__(
        self, task: Task, *, device: str, seed: int | None, tier: sandbox.Tier | None, limits: Limits | None, memory_cap: int | None,
        nursery: Nursery | None, baselines: Sequence[str] | None,
    ) -> None:  # fmt: skip
        self.task = task
        self._baselines = BASELINES if baselines is None else tuple(baselines)
        self.device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        self.tier = tier or sandbox.detect()
        self.limits = limits or Limits()
        self.seed = seed
        self.target = get_target(task.target)
        self.measured = self.device in ("cuda", "host")
        self.place = "cuda" if self.device == "cuda" else "cpu"
        torch.set_grad_enabled(False)
        torch.set_num_threads(sandbox.threads())
        torch.set_float32_matmul_precision(task.matmul_precision)
        torch.backends.cudnn.allow_tf32 = task.convolution_tf32
        sizes = [spec.nbytes for spec in task.inputs] + [output.nbytes for output in task.outputs]
        kinds: tuple[Kind, ...] = ("record", "device") if self.measured else ("record", "interpret")
        self.pool = Pool(
            self.tier, kinds, target=task.target, shared_bytes=shared_bytes(sizes), memory_cap=memory_cap, nursery=nursery,
            depth=spares(), busy=self.busy, pin=needed([output.nbytes for output in task.outputs]) if self.place == "cuda" else 0,
        )  # fmt: skip
        self.construction_seed = secrets.randbits(31) if seed is None else seed & 0x7FFFFFFF
        self.cancelled = threading.Event()
        self.state_specs: tuple[InputSpec, ...] = ()
        self._reference: Reference | None = None
        self._sets: tuple[InputSet, ...] | Stop | None = None
        self._neighbours: tuple[InputSet, ...] | None = None
        self._clock: Clock | None = None
        self._updates: tuple[str, ...] | None = None
        self.buffer_errors: dict[str, list[Error]] = {}

    def take(self, kind: Kind, workers: Workers) -> Worker:
        """A fresh worker, noted in `workers` so that it is discarded at the end of the trial."""
        if self.cancelled.is_set():
            raise Stop(Verdict.NOT_JUDGED, "cancelled")
        workers[kind] = worker = self.pool.take(kind)
        return worker

    def reference(self) -> Reference:
        """The reference, loaded once; a model's state is redrawn in place for each judging."""
        if self._reference is None:
            self._reference = self.fresh_reference(MODEL_SEED)
            if self._reference.module is not None:
                self.state_specs = state.describe(self._reference.module)
        return self._reference

    def fresh_reference(self, seed: int) -> Reference:
        """The reference with the state that it is constructed with after a seed."""
        return load_reference(self.task, device=self.place, seed=seed)

    def updates(self) -> tuple[str, ...]:
        """Names of the buffers that a call of the reference changes, where it is a model; found once."""
        if self._updates is None:
            self._updates = ()
            module = self.reference().module
            if module is not None and any(True for _ in module.buffers()):
                smallest = min(self.input_sets(), key=lambda kind: sum(spec.nbytes for spec in kind.specs))
                self._updates = buffers.updated(self.reference(), make_inputs(smallest.specs, self.seeds("buffers")(), self.place))
        return self._updates

    def input_sets(self) -> tuple[InputSet, ...]:
        """The sets of differing shape, smallest first; found once per task, since it takes runs of the reference."""
        if self._sets is None:
            try:
                self._sets = self._find_sets()
            except Stop as stop:
                self._sets = stop
        if isinstance(self._sets, Stop):
            raise self._sets
        return self._sets

    def _find_sets(self) -> tuple[InputSet, ...]:
        from workbench.judge.emulation.shrink import SMALL_SIZES, Unshrinkable, shape_sets

        own = InputSet("the task's inputs", self.task.inputs, own_shape=True)
        try:
            found = shape_sets(self.task)
        except Unshrinkable as reason:
            if not self.measured:
                raise Stop(Verdict.NOT_JUDGED, f"shape can't be shrunk: {reason}") from None
            return (own,)
        near = tuple(InputSet(item.name, item.inputs, inputsets.listed(self.task, item.inputs)) for item in found)
        # Short rows show best what leans to one side: a sum that is divided by one too many.
        small = tuple(kind for kind in near[1:] if kind.name.startswith(SMALL_SIZES))
        rest = tuple(kind for kind in near if kind not in small)
        return (own, *rest[:2], *small) if self.measured else (*rest[:3], *small)

    def neighbours(self) -> tuple[InputSet, ...]:
        """Further shapes, for candidates that are to be accepted; found once."""
        if self._neighbours is None:
            from workbench.judge.emulation import shrink

            known = [kind.specs for kind in self.input_sets()]
            found = shrink.neighbours(self.task)
            self._neighbours = tuple(
                InputSet(item.name, item.inputs, inputsets.listed(self.task, item.inputs)) for item in found if item.inputs not in known
            )
        return self._neighbours

    def allowed(self) -> float:
        """The round-off that the policy grants beyond the outputs' own."""
        if self.task.precision == "half":
            return compare.ROUND_OFF[torch.bfloat16]
        return compare.TF32 if self.task.tf32 else 0.0

    def root_seed(self) -> int:
        """What all seeds of one judging come from: from the operating system, or the one that was asked for."""
        return secrets.randbits(52) if self.seed is None else self.seed

    def seeds(self, purpose: str, root: int | None = None) -> Callable[[], int]:
        """A source of seeds. With the same root they are the same, whatever the candidate is."""
        root = self.root_seed() if root is None else root
        count = iter(range(1 << 30))
        return lambda: int.from_bytes(hashlib.sha256(f"{root}:{purpose}:{next(count)}".encode()).digest()[:8], "big") >> 2

    def busy(self) -> contextlib.AbstractContextManager[bool]:
        """Held while the card is used but nothing is timed: whoever times waits for its end."""
        if self.place != "cuda":
            return contextlib.nullcontext(True)
        return gpu.lock(gpu.uuid(), self.limits.timing, shared=True)

    def checking(self) -> contextlib.AbstractContextManager[bool]:
        """Held while a candidate is checked. From then on spare workers leave the card alone, since timing follows."""
        self.pool.rest(False)
        return self.busy()

    def close(self) -> None:
        """Ends everything that was started."""
        if self._clock is not None:
            self._clock.close()
        self.pool.close()

    def clock(self) -> Clock:
        """The clock that counts, with the baselines' times."""
        if self._clock is None:
            self._clock = Clock(
                self.task, self.pool, self.reference, self.place, self.limits, self.seeds("clock"), self.construction_seed, self._baselines,
            )  # fmt: skip
        return self._clock
