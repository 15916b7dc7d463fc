"""How a candidate is judged.

This process knows the reference, the seeds, the truth and the clock, and never runs a line of the candidate. That happens in workers (see
`process`): closed in, used once, believed in nothing. A trial goes through stages, cheapest first, and each can end it with a verdict, a
reason in one line, and a witness:

    text -> build -> one small run -> correctness -> timing

What can't be judged here is `not_judged`, never wrong. Failure is data: `evaluate` raises for no candidate.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import re
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch

from workbench.candidate import Baseline, Candidate, Environment, Evaluation, Mode, Timing, Verdict
from workbench.capture.references import Reference, load_reference
from workbench.errors import CaptureError
from workbench.events import Prepared
from workbench.judge import compare, inputsets, labels, qualify, sandbox, state
from workbench.judge.checks import Caller, in_words, raise_error, shared_bytes
from workbench.judge.clock import Clock
from workbench.judge.expected import Expected
from workbench.judge.inputsets import InputSet
from workbench.judge.launches import Recording, Traffic
from workbench.judge.pool import Nursery, Pool
from workbench.judge.probe import disagreement
from workbench.judge.process import Kind, Worker, WorkerLost
from workbench.judge.trial import Limits, Stop, Trial, Unsupported
from workbench.records import decode, encode
from workbench.target import get_target
from workbench.task import Task

Device = Literal["auto", "cuda", "cpu", "host"]
_SAMPLED_PROGRAMS = 16
_RECORDED = {"build": Verdict.DOES_NOT_BUILD, "raised": Verdict.CRASHED, "unsupported": Verdict.CRASHED}
"""At the Task's own shapes a launcher has to work, so even "not for this shape" is a failure there."""


class FirstRun(NamedTuple):
    """The small run: who called, on what, and what was expected and came."""

    caller: Caller
    kind: InputSet
    expected: Expected
    outputs: list[torch.Tensor]


class Judge:
    """Judges candidates of one task.

    Args:
        task: what to compute.
        device: ``cuda`` measures on the GPU; ``cpu`` interprets and models; ``auto`` takes the GPU where there is one. ``host`` goes the
            way of ``cuda`` with PyTorch on the CPU, so that the harness itself can be tested anywhere.
        seed: makes every draw repeatable. Marked in each evaluation, and never accepted as evidence.
        tier: how workers are closed in; the best that works here by default.
        limits: seconds that each stage may take.
        memory_cap: bytes that one worker may hold.
        nursery: shared by the judges of one process, so that what they fork from is imported once.

    Example:
        >>> judge = Judge(task)                                    # doctest: +SKIP
        >>> judge.evaluate(candidate, {}, id="k1.0").verdict       # doctest: +SKIP
        <Verdict.RIGHT: 'right'>
    """

    def __init__(
        self, task: Task, *, device: Device = "auto", seed: int | None = None, tier: sandbox.Tier | None = None,
        limits: Limits | None = None, memory_cap: int | None = None, nursery: Nursery | None = None,
    ) -> None:  # fmt: skip
        self.task = task
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
        sizes = [spec.nbytes for spec in task.inputs] + [output.nbytes for output in task.outputs]
        kinds: tuple[Kind, ...] = ("record", "device") if self.measured else ("record", "interpret")
        self._pool = Pool(self.tier, kinds, target=task.target, shared_bytes=shared_bytes(sizes), memory_cap=memory_cap, nursery=nursery)
        self._construction_seed = secrets.randbits(31) if seed is None else seed & 0x7FFFFFFF
        self._reference: Reference | None = None
        self._sets: tuple[InputSet, ...] | Stop | None = None
        self._prepared: Prepared | None = None
        self._cancelled = threading.Event()
        self._clock: Clock | None = None

    # What can be asked of it

    def prepare(self, probe: Mapping[str, Any] | None = None) -> Prepared:
        """Rebuilds the task, checks it against the live op, and finds what it costs today.

        Args:
            probe: what the live op returned for a seed, see `capture.probe`.

        Raises:
            CaptureError: the reference does not run, or is not what the live op computes.
        """
        from workbench.explain.roofline import floor_us

        reference = self._load_reference()
        notes = []
        if probe is not None and (fault := disagreement(self.task, probe, self.place)):
            raise CaptureError(f"the captured reference does not compute what the cell does: {fault}")
        if self.tier.mend:
            notes.append(f"candidates are {self.tier.name}: {self.tier.mend}")
        if not labels.kernelguard_available():
            notes.append("not scanned: KernelGuard is not installed")
        canary, note = self._qualify(reference)
        notes += [note] if note else []
        self._prepared = Prepared(
            floor_us=floor_us(self.task.work, self.target), baselines=self._baselines(), device=self._device_in_words(),
            environment=self._environment(), notes=tuple(notes), degenerate=canary,
        )  # fmt: skip
        return self._prepared

    def evaluate(self, candidate: Candidate, parameters: Mapping[str, Any], *, id: str, mode: Mode = "quick") -> Evaluation:
        """The verdict on one candidate at one point of its tunable space."""
        self._cancelled.clear()
        trial = Trial(
            self.task, candidate, parameters, id=id, mode=mode, next_seed=self._seeds(id), seed=self.seed, environment=self._environment()
        )  # fmt: skip
        trial.allowed = self._allowed()
        workers: dict[Kind, Worker] = {}
        try:
            with trial.stage("text"):
                self._read(trial)
            with trial.stage("build"):
                recording = self._build(trial, workers)
            with trial.stage("run"):
                first = self._run_once(trial, workers)
            with trial.stage("correctness"):
                self._check(trial, first, recording)
            with trial.stage("timing"):
                self._time(trial, workers, recording, first)
            raise self._passed(trial)
        except Stop as stop:
            trial.log = "\n".join(log for worker in workers.values() if (log := worker.log.strip()))
            return trial.evaluation(stop)
        except CaptureError as error:
            return trial.evaluation(Stop(Verdict.NOT_JUDGED, f"the reference does not run here: {error}"))
        finally:
            for worker in workers.values():
                self._pool.discard(worker)

    def cancel(self) -> None:
        """From any thread: kills what runs now; its evaluation becomes `not_judged`."""
        self._cancelled.set()
        self._pool.cancel()

    def close(self) -> None:
        """Kills all workers."""
        self._pool.close()

    # The stages, in order

    def _read(self, trial: Trial) -> None:
        """Labels from the text alone; only tampering and what is no module end here."""
        reading = labels.read(trial.candidate.source)
        trial.labels |= set(reading.labels)
        if reading.error:
            raise Stop(Verdict.DOES_NOT_BUILD, reading.error)
        if reading.tampering:
            raise Stop(Verdict.REFUSED, reading.tampering)
        if trial.candidate.backend != "triton" and not self.measured:
            raise Stop(Verdict.NOT_JUDGED, "CUDA C++ needs a GPU to be judged")

    def _build(self, trial: Trial, workers: dict[Kind, Worker]) -> Recording:
        """Compiles every launch of the real shapes for the target.

        Without a GPU this comes first: what does not build is not interpreted. On a GPU the candidate's own first call compiles, and the
        recorder, which a launcher may be too clever for, only tells what the kernels take; so nobody waits for it until the end.
        """
        self._take("record", workers).send({
            "do": "record", "source": trial.candidate.source, "entry": trial.candidate.entry, "parameters": encode(trial.parameters),
            "inputs": encode(self.task.inputs), "format": self.task.format, "init_args": encode(self.task.init_args),
        })  # fmt: skip
        self._input_sets()  # meanwhile
        return Recording() if self.measured else self._recorded(trial, workers["record"])

    def _recorded(self, trial: Trial, worker: Worker) -> Recording:
        answer = worker.receive(self.limits.build)
        if "error" in answer:
            raise Stop(Verdict.NOT_JUDGED, f"it could not be recorded: {in_words(answer['error'])}")
        try:
            recording = decode(Recording, answer["recording"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Stop(Verdict.REFUSED, "its process sent what no worker sends") from error
        trial.resources = recording.resources
        trial.labels |= set(recording.labels)
        if recording.error is not None:
            where = f" (line {recording.error.line})" if recording.error.line else ""
            trial.log = recording.error.log
            raise Stop(_RECORDED[recording.error.kind], recording.error.message + where)
        return recording

    def _run_once(self, trial: Trial, workers: dict[Kind, Worker]) -> FirstRun:
        """The smallest set first: most faults show at once. A candidate may refuse shapes that the Task does not list."""
        sets = self._input_sets()
        worker = self._take("device" if self.measured else "interpret", workers)
        caller = Caller(trial, worker, self._load_reference(), self.place, self.limits.call, trial.allowed)
        self._load(trial, worker, caller)
        trial.reference = caller.reference
        trial.judged_by = "gpu" if self.device == "cuda" else "host" if self.measured else "interpreter"
        for kind in sets:
            with self._may_refuse(trial, kind):
                return FirstRun(caller, kind, *caller.check(kind, poison="nan"))
        raise Stop(Verdict.NOT_JUDGED, f"the launcher refuses every shape that can be tried here: {trial.unsupported[0]}")

    def _check(self, trial: Trial, first: FirstRun, recording: Recording) -> None:
        """Fresh content behind the same pointers, other shapes, other scales, structure; earlier outputs must not have changed."""
        caller = first.caller
        caller.check(first.kind, poison="large", rewrite=True, known=[output.error for output in first.expected.outputs])
        caller.check_kept(0, first.expected, first.outputs, first.kind)
        for number, kind in enumerate(self._others(trial, first.kind)):
            with self._may_refuse(trial, kind):
                caller.check(kind, poison="nan" if number % 2 else "large")
        if not self.measured:
            shapes = dict.fromkeys(kind.shape for kind in self._input_sets() if kind.name in trial.input_sets)
            trial.judged_by = f"interpreter ({', '.join(shapes)})"
        self._check_dots(trial, recording)

    def _check_dots(self, trial: Trial, recording: Recording) -> None:
        """The interpreter multiplies in full precision, whatever the kernel asks for; so the compiled code is asked."""
        uses = {use.precision for launch in recording.launches for use in launch.dots if use.dtype in ("float32", "fp32", "f32")}
        if not self.measured and any(use.startswith("tf32") and use != "tf32x3" for use in uses) and self._allowed() < 2.0**-11:
            trial.precision = trial.precision or "TF32"

    def _time(self, trial: Trial, workers: dict[Kind, Worker], recording: Recording, first: FirstRun) -> None:
        """Measured against the baselines on a GPU; modelled without one, and then never called a speedup."""
        if self.measured:
            own = first.kind.specs == self.task.inputs and not first.kind.structure
            errors = tuple(output.error for output in first.expected.outputs) if own else None
            self._clocks().time(trial, workers["device"], errors)
            if trial.mode == "full":  # the profiler takes seconds to start
                self._share(trial, workers["device"])
            try:
                self._recorded(trial, workers["record"])
            except (Stop, WorkerLost) as error:
                trial.labels.add(f"kernels not described: {error}"[:200])
            return
        worker = workers["interpret"]
        answer = worker.ask({"do": "traffic", "inputs": encode(self.task.inputs), "sample": _SAMPLED_PROGRAMS}, self.limits.traffic)
        if "error" in answer:
            trial.labels.add(f"no modelled time: {in_words(answer['error'])}"[:200])
            return
        try:
            traffic = decode(Traffic, answer["traffic"])
            if traffic.error:
                trial.labels.add(f"modelled from a part: {traffic.error}"[:200])
            from workbench.judge.modelled import model_time

            trial.modelled = model_time(recording, traffic, self.target)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            trial.labels.add(f"no modelled time: {error}"[:200])
            return
        time = trial.modelled.total_us
        trial.timing = Timing(time, time, time, time, time, modelled=True)

    def _share(self, trial: Trial, worker: Worker) -> None:
        """How much of the GPU time is in the candidate's own kernels: a claim, so a label."""
        if self.device != "cuda":
            return
        answer = worker.ask({"do": "profile", "inputs": encode(self.task.inputs), "seed": trial.next_seed()}, self.limits.call)
        with contextlib.suppress(KeyError, TypeError, ValueError):
            times = [(float(kernel["us"]), bool(kernel["own"])) for kernel in answer["kernels"]]
            if total := sum(us for us, _ in times):
                trial.own_share = sum(us for us, own in times if own) / total
                if trial.own_share < 0.5:
                    trial.labels.add(f"own kernels take {trial.own_share:.0%} of the time")

    def _passed(self, trial: Trial) -> Stop:
        if trial.precision:
            return Stop(Verdict.LOWER_PRECISION, f"right within the round-off of {trial.precision}, not within the reference's own")
        return Stop(Verdict.RIGHT, f"right on {', '.join(trial.input_sets)}")

    # What the stages need

    def _take(self, kind: Kind, workers: dict[Kind, Worker]) -> Worker:
        if self._cancelled.is_set():
            raise Stop(Verdict.NOT_JUDGED, "cancelled")
        workers[kind] = worker = self._pool.take(kind)
        return worker

    def _load(self, trial: Trial, worker: Worker, caller: Caller) -> None:
        answer = worker.ask({
            "do": "load", "source": trial.candidate.source, "entry": trial.candidate.entry, "parameters": encode(trial.parameters),
            "format": self.task.format, "init_args": encode(self.task.init_args), "device": self.place,
            "seed": self._construction_seed,
        }, self.limits.load)  # fmt: skip
        if "error" in answer:
            kinds = answer["error"].get("kinds") or () if isinstance(answer["error"], dict) else ()
            if "InterpreterUnsupported" in kinds:
                raise_error(answer["error"], listed=True, where="loading")
            raise Stop(Verdict.DOES_NOT_BUILD, in_words(answer["error"]) if isinstance(answer["error"], dict) else "it does not load")
        if caller.reference.module is None:
            return
        specs, seed = state.describe(caller.reference.module), trial.next_seed()
        if worker.ask({"do": "state", "specs": encode(specs), "seed": seed}, self.limits.load).get("redrawn") is True:
            state.redraw(caller.reference.module, specs, seed, self.place)
        else:
            trial.labels.add("parameters not redrawn")
            caller.reference = load_reference(self.task, device=self.place, seed=self._construction_seed)

    @contextlib.contextmanager
    def _may_refuse(self, trial: Trial, kind: InputSet) -> Iterator[None]:
        try:
            yield
        except Unsupported as refusal:
            trial.unsupported.append(str(refusal))
            trial.labels.add(f"does not support {kind.shape}")

    def _load_reference(self) -> Reference:
        if self._reference is None:
            self._reference = load_reference(self.task, device=self.place, seed=self._construction_seed)
        return self._reference

    def _input_sets(self) -> tuple[InputSet, ...]:
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
        from workbench.judge.shrink import Unshrinkable, shape_sets

        own = InputSet("the task's inputs", self.task.inputs, own_shape=True)
        try:
            found = shape_sets(self.task)
        except Unshrinkable as reason:
            if not self.measured:
                raise Stop(Verdict.NOT_JUDGED, f"shape can't be shrunk: {reason}") from None
            return (own,)
        near = tuple(InputSet(item.name, item.inputs, inputsets.listed(self.task, item.inputs)) for item in found)
        return (own, *near[:2]) if self.measured else near[:3]

    def _others(self, trial: Trial, first: InputSet) -> Iterator[InputSet]:
        """The rest of the sets of differing shape, then variations of the first that it makes sense to try."""
        yield from (kind for kind in self._input_sets() if kind is not first)
        if self.measured and (specs := inputsets.strided(first.specs)):
            yield InputSet(f"{first.name}, strided", specs, first.own_shape)
        for factor in (64.0, 1e-3):
            specs = inputsets.scaled(first.specs, factor)
            if specs and self._stays_finite(specs):
                yield InputSet(f"{first.name}, values ×{factor:g}", specs, first.own_shape)
                break
        if trial.mode == "full" and (specs := inputsets.offset(first.specs, 1000.0)):
            yield InputSet(f"{first.name}, mean 1000", specs, first.own_shape)
        structures: Sequence[inputsets.Structure] = ("sorted", "outliers", "equal") if trial.mode == "full" else ("sorted",)
        smallest = min(self._input_sets(), key=lambda kind: sum(spec.nbytes for spec in kind.specs))
        for structure in structures:
            yield InputSet(f"{smallest.name}, {structure}", smallest.specs, smallest.own_shape, structure)

    def _stays_finite(self, specs: Sequence[Any]) -> bool:
        from workbench.inputs import make_inputs

        with contextlib.suppress(Exception):
            outputs = self._load_reference()(*make_inputs(specs, 1, self.place))
            return all(bool(torch.isfinite(output).all()) for output in outputs if output.is_floating_point())
        return False

    def _allowed(self) -> float:
        """The round-off that the policy grants beyond the outputs' own."""
        tf32_now = self.task.matmul_precision != "highest" and self.task.work.matmul_flops > 0
        if self.task.precision == "half":
            return compare.ROUND_OFF[torch.bfloat16]
        return 2.0**-11 if self.task.precision == "tf32" or tf32_now else 0.0

    def _seeds(self, id: str) -> Any:
        """A source of seeds: from the operating system, or repeatable where a seed was asked for."""
        if self.seed is None:
            return lambda: secrets.randbits(62)
        count = iter(range(1 << 30))
        return lambda: int.from_bytes(hashlib.sha256(f"{self.seed}:{id}:{next(count)}".encode()).digest()[:8], "big") >> 2

    # What it says of the task and of this machine

    def _qualify(self, reference: Reference) -> tuple[str, str]:
        """The canary that passes, and a note for people, both empty for a sound op."""
        seeds = self._seeds("qualify")
        try:
            specs = self._input_sets()[0].specs
        except Stop as stop:
            return "", stop.reason
        if qualify.noisy(reference, specs, seeds(), self.place):
            return "", "the op is random: two runs on the same inputs differ, and candidates can't be compared"
        canary = qualify.degenerate(reference, specs, (seeds(), seeds()), self.place)
        return canary, f"degenerate: {canary} would pass as right, so no verdict means much; give wider inputs" if canary else ""

    def _baselines(self) -> tuple[Baseline, ...]:
        if self.measured:
            return self._clocks().baselines()
        from workbench.explain.roofline import eager_us

        time = eager_us(self.task, self.target)
        eager = Timing(time, time, time, time, time, modelled=True) if time is not None else None
        return (
            Baseline("eager", eager, "" if eager else "its graph could not be traced"),
            Baseline("compile", None, "needs a GPU to be measured"),
        )

    def _clocks(self) -> Clock:
        if self._clock is None:
            self._clock = Clock(
                self.task, self._pool, self._load_reference, self.place, self.limits, self._seeds("clock"), self._construction_seed
            )
        return self._clock

    def _device_in_words(self) -> str:
        if self.device == "cuda":
            return f"gpu: {torch.cuda.get_device_name()}"
        return "host" if self.measured else f"no GPU: interpreter, modelled for {self.target.name}"

    def _environment(self) -> Environment:
        try:
            import triton

            version = triton.__version__
        except ImportError:
            version = ""
        gpu = torch.cuda.get_device_name() if self.device == "cuda" else ""
        return Environment(platform.python_version(), torch.__version__, version, gpu, _driver() if gpu else "", self.tier.name)


def _driver() -> str:
    from pathlib import Path

    with contextlib.suppress(OSError):
        if found := re.search(r"\b\d{3}\.\d+(\.\d+)?\b", Path("/proc/driver/nvidia/version").read_text()):
            return found[0]
    return ""
