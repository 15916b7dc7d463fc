"""Inspects variants of one task: what the compiler made of them, what memory they touch, where their time goes.

Works in a process of its own, like the judge, with workers like the judge's: candidate code runs in them alone. Nothing is judged here.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from workbench.candidate import Candidate
from workbench.errors import MisuseError
from workbench.explain import trace
from workbench.explain.inspection import WHATS, CompilerReport, MemoryReport, Timeline, TraceReport
from workbench.judge.correctness.checks import in_words, shared_bytes
from workbench.judge.inspection import counting, ncu, traces
from workbench.judge.isolation import sandbox, watchdog
from workbench.judge.isolation.pool import Nursery, Pool
from workbench.judge.isolation.process import Kind, Worker, WorkerLost
from workbench.judge.protocol import gpu
from workbench.judge.protocol.claims import checked
from workbench.judge.recording.launches import Recording, Traffic
from workbench.judge.timing.profile import own_names
from workbench.judge.trial import Limits
from workbench.records import encode
from workbench.target import TARGETS, get_target
from workbench.task import InputSpec, Task

_GARBLED = "its process sent what no worker sends, so there is nothing to show"
_GPU_SECONDS = 120.0
_NO_GPU = "hardware counters need an NVIDIA GPU, and ncu (NVIDIA Nsight Compute)"
_BUSY = "the GPU is being used by a judge: try again when the run is paused"


class Nothing(Exception):
    """Why there is nothing to show, in one line with the mend."""


class Inspector:
    """Answers `inspect` for one task, one at a time.

    Args:
        task: what the variants compute.
        device: ``auto``, ``cuda`` or ``cpu``: whether traces are measured.
        tier: how workers are closed in; the best that works here by default.
        limits: seconds that a worker may take for one answer.
        nursery: shared by what runs in one process, so that what they fork from is imported once.
    """

    def __init__(
        self, task: Task, *, device: str = "auto", tier: sandbox.Tier | None = None, limits: Limits | None = None,
        nursery: Nursery | None = None,
    ) -> None:  # fmt: skip
        self.task = task
        self.place = "cuda" if device in ("auto", "cuda") and torch.cuda.is_available() else "cpu"
        self._limits = limits or Limits()
        self._tier = tier or sandbox.detect()
        self._nursery, self._own_nursery = nursery or Nursery(self._tier), nursery is None
        self._pools: dict[str, Pool] = {}
        self._cancelled = threading.Event()
        self._counted: Worker | None = None
        self._seed = secrets.randbits(31)

    def inspect(self, candidate: Candidate, parameters: Mapping[str, Any], what: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """One of the records of `explain.inspection` as JSON data, or ``{"error": line}``. Raises for no candidate."""
        self._cancelled.clear()
        try:
            if what not in WHATS:
                raise MisuseError(f"inspect: there is no {what!r}, choose one of {', '.join(WHATS)}")
            looks: dict[str, Callable[..., Any]] = {"compiler": self._compiler, "memory": self._memory, "trace": self._trace}
            made = looks[what](candidate, dict(parameters), **options)
            return made if isinstance(made, dict) else dict(encode(made))
        except (Nothing, MisuseError, counting.NotCounted) as reason:
            return {"error": str(reason)}
        except TypeError as error:
            if "keyword argument" not in str(error):
                raise
            return {"error": f"inspect: {what} has no such option ({', '.join(options)})"}
        except WorkerLost as lost:
            return {"error": "cancelled" if self._cancelled.is_set() else _lost(lost, what)}

    def cancel(self) -> None:
        """From any thread: ends what runs now; its answer is the error "cancelled"."""
        self._cancelled.set()
        for pool in list(self._pools.values()):
            pool.cancel()
        if (worker := self._counted) is not None:
            worker.cancel()

    def close(self) -> None:
        """Ends all workers."""
        for pool in self._pools.values():
            pool.close()
        if self._own_nursery:
            self._nursery.close()

    # ---- the three inspections

    def _compiler(self, candidate: Candidate, parameters: dict[str, Any], *, target: str = "") -> CompilerReport:
        name = get_target(target or self.task.target).name
        with self._worker("record", name) as worker:
            answer = self._ask(worker, {
                "do": "inspect", "what": "compiler", "source": candidate.source, "entry": candidate.entry, "parameters": encode(parameters),
                "inputs": encode(self.task.inputs), "format": self.task.format, "init_args": encode(self.task.init_args),
            }, self._limits.build)  # fmt: skip
        report = _read(CompilerReport, answer)
        # What is known here is not left to the worker's word.
        return CompilerReport(
            name, TARGETS[name].gpu, tuple(TARGETS), candidate.source, report.launches, report.library, report.notes
        )  # fmt: skip

    def _memory(self, candidate: Candidate, parameters: dict[str, Any], *, shapes: str = "small") -> MemoryReport:
        if shapes not in ("small", "real"):
            raise MisuseError(f"inspect: there are no shapes {shapes!r}, choose small or real")
        self._only_triton(candidate, "memory is watched in Triton's interpreter")
        notes: list[str] = []
        sets = self._small_sets(notes) if shapes == "small" else ()
        with self._worker("interpret", self.task.target) as worker:
            self._load(worker, candidate, parameters)
            for specs in sets:
                answer = self._ask(worker, self._memory_order("small", specs), self._limits.traffic, refusing=True)
                if "report" in answer:
                    return self._noted(_read(MemoryReport, answer), notes)
                notes.append(f"the launcher refuses {_shapes(specs)}")
            if shapes == "small":
                notes.append("so these are a few programs at the real shapes")
            answer = self._ask(worker, self._memory_order("real", self.task.inputs), self._limits.traffic)
        return self._noted(_read(MemoryReport, answer), notes)

    def _trace(self, candidate: Candidate, parameters: dict[str, Any], *, counters: bool | str = False) -> dict[str, Any]:
        if str(counters).lower() not in ("true", "false"):
            raise MisuseError(f"inspect: counters can't be {counters!r}, choose true or false")
        if str(counters).lower() == "true":
            return dict(encode(self._counters(candidate, parameters)))
        if self.place == "cuda":
            return self._measured_trace(candidate, parameters)
        self._only_triton(candidate, "without a GPU a time is modelled from Triton's compiler and interpreter")
        recording, traffic = self._recorded(candidate, parameters)
        events, why = self._reference_on_host()
        host = trace.timeline("reference", "host", trace.slices_of_events(events, (), device=False), note=why)
        target = get_target(self.task.target)
        timelines = (
            traces.modelled_variant(recording, traffic, target), traces.modelled_reference(self.task, target), host
        )  # fmt: skip
        notes = [f"modelled for {target.gpu}: no GPU is here to measure on", "host times are this machine's own, of one call"]
        if traffic.error:
            notes.append(f"modelled from a part: {traffic.error}")
        return self._traced(False, timelines, {"reference": events}, notes, _NO_GPU)

    def _measured_trace(self, candidate: Candidate, parameters: dict[str, Any]) -> dict[str, Any]:
        own = own_names(candidate.source)
        with contextlib.ExitStack() as workers:
            with gpu.lock(gpu.uuid(), _GPU_SECONDS, shared=True):  # what starts makes the card busy
                variant = workers.enter_context(self._worker("device", self.task.target))
                self._load(variant, candidate, parameters)
                reference = workers.enter_context(self._worker("baseline", self.task.target))
                self._load_reference(reference)
            with gpu.lock(gpu.uuid(), _GPU_SECONDS) as held:
                if not held:
                    raise Nothing(_BUSY)
                events = {
                    name: _events(self._ask(worker, self._trace_order(), self._limits.call))
                    for name, worker in (("variant", variant), ("reference", reference))
                }
        timelines = tuple(
            trace.timeline(name, "measured", trace.slices_of_events(found, own if name == "variant" else (), device=True))
            for name, found in events.items()
        )
        notes = ["one warm call each, profiled: the judge's times are of calls with a cold cache, without a profiler"]
        return self._traced(True, timelines, events, notes, ncu.why_not())

    def _counters(self, candidate: Candidate, parameters: dict[str, Any]) -> TraceReport:
        """The counters alone: a process under ncu starts and runs many times slower, and the plain trace must not wait for it."""
        if self.place != "cuda":
            raise Nothing(_NO_GPU)
        tool = ncu.find()
        if tool is None:
            raise Nothing(ncu.why_not())
        orders = (
            self._load_order(candidate, parameters, self.place),
            {"do": "inspect", "what": "counters", "inputs": encode(self.task.inputs), "seed": self._seed},
        )
        found = counting.counted(
            tool, self._behind, orders, capability=torch.cuda.get_device_capability()[0], least_bytes=float(self.task.work.bytes),
            card=self._card,
        )  # fmt: skip
        return TraceReport(True, (), metrics=found.metrics, metrics_note=found.note)

    @contextlib.contextmanager
    def _behind(self, wrapper: Sequence[str], readable: Sequence[Path]) -> Iterator[Worker]:
        """A worker for a tool to start. It is no pool's, so that cancelling has to know of it."""
        worker = Worker(
            "device", self._tier, target=self.task.target, shared_bytes=1 << 20, memory_cap=watchdog.default_cap(),
            home=self._pool(self.task.target).home, wrapper=wrapper, readable=readable,
        )  # fmt: skip
        self._counted = worker
        try:
            if self._cancelled.is_set():
                raise Nothing("cancelled")
            yield worker
        finally:
            self._counted = None
            worker.close()

    @contextlib.contextmanager
    def _card(self, shared: bool) -> Iterator[None]:
        with gpu.lock(gpu.uuid(), _GPU_SECONDS, shared=shared) as held:
            if not held:
                raise Nothing(_BUSY)
            yield

    def _traced(
        self, measured: bool, timelines: tuple[Timeline, ...], events: Mapping[str, Any], notes: list[str], counters: str
    ) -> dict[str, Any]:  # fmt: skip
        report = TraceReport(measured, timelines, metrics_note=counters, notes=tuple(notes))
        return {**encode(report), "chrome": trace.chrome(timelines, events)}

    # ---- what they need

    @contextlib.contextmanager
    def _worker(self, kind: Kind, target: str) -> Iterator[Worker]:
        pool = self._pool(target)
        worker = pool.take(kind)
        try:
            if self._cancelled.is_set():
                raise Nothing("cancelled")
            yield worker
        finally:
            pool.discard(worker)

    def _pool(self, target: str) -> Pool:
        if target not in self._pools:
            sizes = [spec.nbytes for spec in self.task.inputs] + [output.nbytes for output in self.task.outputs]
            self._pools[target] = Pool(self._tier, (), target=target, shared_bytes=shared_bytes(sizes), nursery=self._nursery)
        return self._pools[target]

    def _ask(self, worker: Worker, message: Mapping[str, Any], seconds: float, *, refusing: bool = False) -> dict[str, Any]:
        answer = worker.ask(message, seconds)
        if "error" in answer and not refusing:
            said = answer["error"]
            raise Nothing(f"the variant fails when it runs: {in_words(said)}" if isinstance(said, dict) else _GARBLED)
        if "none" in answer:
            raise Nothing(str(answer["none"])[:600])
        return answer

    def _load(self, worker: Worker, candidate: Candidate, parameters: dict[str, Any]) -> None:
        self._ask(worker, self._load_order(candidate, parameters, self.place if worker.kind == "device" else "cpu"), self._limits.load)

    def _load_order(self, candidate: Candidate, parameters: dict[str, Any], device: str) -> dict[str, Any]:
        return {
            "do": "load", "source": candidate.source, "entry": candidate.entry, "parameters": encode(parameters),
            "format": self.task.format, "init_args": encode(self.task.init_args), "seed": self._seed, "device": device,
        }  # fmt: skip

    def _recorded(self, candidate: Candidate, parameters: dict[str, Any]) -> tuple[Recording, Traffic]:
        with self._worker("record", self.task.target) as worker:
            answer = self._ask(worker, {
                "do": "record", "source": candidate.source, "entry": candidate.entry, "parameters": encode(parameters),
                "inputs": encode(self.task.inputs), "format": self.task.format, "init_args": encode(self.task.init_args),
            }, self._limits.build)  # fmt: skip
        recording = _read(Recording, {"report": answer.get("recording")})
        if recording.error is not None:
            raise Nothing(f"it does not build: {recording.error.message}")
        with self._worker("interpret", self.task.target) as worker:
            self._load(worker, candidate, parameters)
            answer = self._ask(worker, {"do": "traffic", "inputs": encode(self.task.inputs), "sample": 16}, self._limits.traffic)
        return recording, _read(Traffic, {"report": answer.get("traffic")})

    def _reference_on_host(self) -> tuple[list[dict[str, Any]], str]:
        """What the host takes for it, or why that is not known: it may take minutes here, and then the model stands alone."""
        try:
            return self._reference_events(), ""
        except Nothing as reason:
            return [], f"no host time: {reason}"
        except WorkerLost as lost:
            if self._cancelled.is_set():
                raise
            return [], f"no host time: {'it takes too long on this machine' if lost.kind == 'timeout' else lost.detail}"

    def _reference_events(self) -> list[dict[str, Any]]:
        with self._worker("baseline", self.task.target) as worker:
            self._load_reference(worker)
            return _events(self._ask(worker, self._trace_order(), self._limits.call))

    def _load_reference(self, worker: Worker) -> None:
        self._ask(worker, {
            "do": "load_reference", "task": encode(self.task), "device": self.place, "seed": self._seed, "compile": False,
        }, self._limits.load)  # fmt: skip

    def _trace_order(self) -> dict[str, Any]:
        return {"do": "inspect", "what": "trace", "inputs": encode(self.task.inputs), "seed": self._seed}

    def _memory_order(self, shapes: str, specs: tuple[InputSpec, ...]) -> dict[str, Any]:
        return {"do": "inspect", "what": "memory", "inputs": encode(specs), "shapes": shapes, "seed": self._seed}

    def _small_sets(self, notes: list[str]) -> tuple[tuple[InputSpec, ...], ...]:
        from workbench.judge.emulation.shrink import Unshrinkable, shape_sets

        try:
            return tuple(tuple(found.inputs) for found in shape_sets(self.task))
        except Unshrinkable as reason:
            notes.append(f"the shapes can't be shrunk: {reason}")
            return ()

    def _noted(self, report: MemoryReport, notes: list[str]) -> MemoryReport:
        return MemoryReport(report.shapes, report.inputs, report.launches, (*notes, *report.notes))

    def _only_triton(self, candidate: Candidate, why: str) -> None:
        if candidate.backend != "triton":
            raise Nothing(f"{why}: a CUDA C++ variant shows its compiler's stages, and on a GPU its trace")


def _read(kind: type[Any], answer: Mapping[str, Any]) -> Any:
    try:
        return checked(kind, answer["report"])
    except (ValueError, KeyError):
        raise Nothing(_GARBLED) from None


def _events(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    try:
        return traces.checked_events(answer["events"])
    except (ValueError, KeyError):
        raise Nothing(_GARBLED) from None


def _shapes(specs: tuple[InputSpec, ...]) -> str:
    return ", ".join("×".join(map(str, spec.shape)) for spec in specs if spec.is_tensor)


def _lost(lost: WorkerLost, what: str) -> str:
    if lost.kind == "timeout":
        return f"no answer in time: the variant takes too long for {what}"
    return f"the variant's process was lost: {lost.detail}"
