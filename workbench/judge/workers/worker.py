"""The worker's side: a closed-in process that runs one candidate and does what it is told.

It holds no reference, no tolerance, no secret and no way to say "right". Everything that it answers is a claim, since the candidate shares
its process; what counts are the bytes it puts into the shared memory, and the judge's own clock.

Commands and answers are JSON lines (see `transport`). Each command is a method of `Driver`; what one raises is answered as an error.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from workbench.build.tune import candidate_line, load_candidate
from workbench.capture.references import flatten, with_changed
from workbench.inputs import make_inputs
from workbench.judge.protocol import exchange, fingerprint, state
from workbench.judge.protocol.form import form, lazy
from workbench.judge.protocol.shared import SharedFile
from workbench.judge.workers import cuda_build
from workbench.judge.workers.arena import Arena, PoisonedEmpty
from workbench.judge.workers.warmup import after_fork, has_gpu, make_context, warm_compilers, warm_device
from workbench.records import decode, encode
from workbench.target import Target, get_target
from workbench.task import InputSpec

_MESSAGE_LIMIT = 600


def main(order: Mapping[str, Any]) -> None:
    """Warms up, then serves commands until the judge closes the line."""
    line = socket.socket(fileno=order["line"])
    warm(order["kind"], order["target"])
    os.set_inheritable(order["line"], False)
    os.set_inheritable(order["shared"], False)
    driver = Driver(order["kind"], SharedFile(order["shared"], order["size"]), get_target(order["target"]))
    with line, line.makefile("rb") as commands:
        for text in commands:
            command = json.loads(text)
            number, name = command.pop("number"), command.pop("do")
            try:
                answer = getattr(driver, f"do_{name}")(**command)
            except BaseException as error:  # whatever a candidate raises, SystemExit too
                answer = {"error": driver.describe(error)}
            sys.stdout.flush()
            line.sendall(json.dumps(answer | {"number": number}).encode() + b"\n")


def warm(kind: str, target: str) -> None:
    """Imports what every candidate needs. May run before a fork, so it must not touch a GPU or start a thread."""
    with contextlib.suppress(ImportError):
        import triton
        import triton.language  # noqa: F401
    warm_compilers(kind, get_target(target))
    if kind == "record":
        from workbench.judge.recording import recorder  # noqa: F401
    if kind == "interpret":
        from workbench.judge.emulation import interpreter
        from workbench.judge.recording import traffic  # noqa: F401

        interpreter.mend(get_target(target))


class Driver:
    """Runs one candidate. `kind` says what for, see `process.Kind`."""

    def __init__(self, kind: str, shared: SharedFile, target: Target) -> None:
        self.kind = kind
        self.target = target
        self.shared = shared
        self.path = Path.cwd() / "candidate.py"
        self.function: Callable[..., Any] | None = None
        self.module: torch.nn.Module | None = None
        self.device = "cpu"
        self._watch: Any = None
        self._inputs: list[Any] = []
        self._kept: list[list[torch.Tensor]] = []
        torch.set_grad_enabled(False)

    # Commands

    def do_wake(self) -> dict[str, Any]:
        """Everything of warming up that runs nothing on a card: the driver, and a context where there is a GPU."""
        if self.kind in ("device", "baseline") and has_gpu():
            after_fork(self.target)
            make_context()
        return {"torch": torch.__version__}

    def do_hello(self, *, pin: int = 0) -> dict[str, Any]:
        """Runs what judging will run, where there is a GPU. `pin` is how much of the shared memory the card shall reach itself."""
        if self.kind in ("device", "baseline") and has_gpu():
            warm_device()
            self.shared.pin(pin)
        return {}

    def do_load(
        self, *, source: str, entry: str, parameters: Mapping[str, Any], format: str, init_args: Sequence[Any], device: str,
        seed: int, changes: Sequence[int] = (),
    ) -> dict[str, Any]:  # fmt: skip
        """Runs the candidate's module; for a model, constructs it. `seed` seeds the constructor as in the judge.

        The inputs at the positions `changes` count as outputs too, after each call.
        """
        self.device = device
        cuda_build.prepare(device)
        made: Any = load_candidate(source, entry, parameters, directory=self.path.parent, name=self.path.stem)
        function = self._construct(made, init_args, seed) if format == "model" else made
        self.function = with_changed(function, changes) if changes else function
        return {}

    def do_load_reference(self, *, task: Mapping[str, Any], device: str, seed: int, compile: bool) -> dict[str, Any]:
        """For a baseline's worker only: the person's own code, eager or through ``torch.compile``."""
        from workbench.capture.references import load_reference
        from workbench.task import Task

        assert self.kind == "baseline", "a candidate's worker never sees the reference"
        full = decode(Task, task)
        torch.set_float32_matmul_precision(full.matmul_precision)
        torch.backends.cudnn.allow_tf32 = full.convolution_tf32
        reference = load_reference(full, device=device, seed=seed)
        self.device = device
        self.module = reference.module
        call = reference.call
        if compile:
            from workbench.judge.workers.generated import Watch

            self._watch = Watch(reference.module)
            call = torch.compile(reference.call, mode="max-autotune-no-cudagraphs", dynamic=False)
        self.function = with_changed(call, reference.changes) if reference.changes else call
        return {}

    def do_generated(self) -> dict[str, Any]:
        """What torch.compile made of the reference, once it has been called."""
        return {"generated": self._watch.told() if self._watch is not None else {}}

    def do_record(
        self, *, source: str, entry: str, parameters: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]], format: str,
        init_args: Sequence[Any],
    ) -> dict[str, Any]:  # fmt: skip
        """Records and compiles the launches at the real shapes."""
        from workbench.judge.recording.recorder import record

        recording = record(
            source, entry, parameters, _specs(inputs), self.target, format=format, init_args=tuple(init_args),
            directory=self.path.parent,
        )  # fmt: skip
        return {"recording": encode(recording)}

    def do_state(self, *, specs: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
        """For a model: loads the drawn parameters, if it has parameters of those names and shapes."""
        if self.module is None:
            return {"redrawn": False, "elements": 0}
        return {"redrawn": state.redraw(self.module, _specs(specs), seed, self.device), "elements": state.elements(self.module)}

    def do_buffers(self, *, buffers: Sequence[Sequence[Any]], offsets: Sequence[int], write: bool) -> dict[str, Any]:
        """For a model: takes buffers' values from the shared memory, or puts them there.

        Args:
            buffers: name, shape and dtype of each.
        """
        held = dict(self.module.named_buffers()) if self.module is not None else {}
        found = []
        for (name, shape, dtype), offset in zip(buffers, offsets, strict=True):
            own = held.get(name)
            if own is None or list(own.shape) != shape or str(own.dtype) != f"torch.{dtype}":
                continue
            found.append(name)
            if write:
                own.copy_(self.shared.read(offset, shape, own.dtype))
            else:
                self.shared.write(offset, own)
        return {"held": found}

    def do_call(
        self, *, inputs: Sequence[Mapping[str, Any]], seed: int, digest: str, poison: str, rewrite: bool, offsets: Sequence[int],
        sizes: Sequence[int], sent: Sequence[int] | None, random_seed: int | None = None,
        shift: int = 0, exchanges: Sequence[Sequence[int]] = (),
    ) -> dict[str, Any]:  # fmt: skip
        """Runs the candidate once and puts its outputs into the shared memory.

        Args:
            digest: hash of the judge's inputs; on a mismatch the answer asks for their bytes.
            poison: what fills uninitialised memory and margins.
            rewrite: put the new content behind the pointers of the last call's inputs.
            offsets, sizes: where each output goes and the bytes it may have.
            sent: where the inputs' bytes lie, -1 for Python values; None to draw them from the seed.
            shift: elements by which the inputs are off their alignment.
            exchanges: elements of the drawn inputs that change places, see `exchange`.
            random_seed: of PyTorch's generators before the call, for an op that draws random numbers.
        """
        assert self.function is not None, "load a candidate first"
        specs = _specs(inputs)
        drawn = make_inputs(specs, seed, self.device) if sent is None else self._received(specs, sent)
        for chosen in exchanges if sent is None else ():
            drawn = exchange.apply(drawn, chosen)
        if fingerprint.of_inputs(drawn) != digest:
            return {"need": "bytes"}
        arena = Arena(poison)
        if rewrite:
            for old, new in zip(self._inputs, drawn, strict=True):
                if isinstance(old, torch.Tensor):
                    _behind_its_back(old, new)
        else:
            self._inputs = [
                arena.place(item, spec.name, shift) if isinstance(item, torch.Tensor) else item
                for spec, item in zip(specs, drawn, strict=True)
            ]  # fmt: skip
        before = [_print_of(item) for item in self._inputs]
        if random_seed is not None:
            torch.manual_seed(random_seed)
        started = time.perf_counter()
        with PoisonedEmpty(arena):
            returned = self.function(*self._inputs)
            outputs = flatten(returned)
        self._synchronize()
        seconds = time.perf_counter() - started
        self._kept.append(list(outputs))
        changed = [spec.name for spec, item, old in zip(specs, self._inputs, before, strict=True) if _print_of(item) != old]
        return {
            "outputs": self._hand_over(outputs, offsets, sizes), "changed": changed, "stray": arena.broken(), "seconds": seconds,
            "aliases": _aliases(outputs, self._inputs, specs), "lazy": lazy(returned), "form": form(returned),
        }  # fmt: skip

    def do_outputs(self, *, call: int, offsets: Sequence[int], sizes: Sequence[int]) -> dict[str, Any]:
        """Hands the outputs of an earlier call over again: a later call must not have changed them."""
        return {"outputs": self._hand_over(self._kept[call], offsets, sizes)}

    def do_forget(self) -> dict[str, Any]:
        """Frees what earlier calls left."""
        self._kept.clear()
        self._inputs = []
        return {}

    def do_traffic(self, *, inputs: Sequence[Mapping[str, Any]], sample: int) -> dict[str, Any]:
        """Interprets a few programs of each launch at the real shapes and counts the bytes they touch."""
        from workbench.judge.recording.traffic import measure
        from workbench.judge.recording.untouched import make_untouched

        assert self.function is not None, "load a candidate first"
        return {"traffic": encode(measure(self.function, make_untouched(_specs(inputs)), sample=sample))}

    def do_coverage(self, *, inputs: Sequence[Mapping[str, Any]], seed: int | None) -> dict[str, Any]:
        """Interprets a few programs of each launch at the real shapes, and tells what they store.

        Args:
            seed: of the inputs' content; None where only the places are asked for.
        """
        from workbench.judge.recording.coverage import measure
        from workbench.judge.recording.untouched import Untouched, make_untouched

        assert self.function is not None, "load a candidate first"
        specs, call = _specs(inputs), with_changed(self.function, ())
        if seed is None:
            with Untouched():
                return measure(call, make_untouched(specs), real=False)
        with PoisonedEmpty(Arena("nan")):
            return measure(call, make_inputs(specs, seed, self.device), real=True)

    def do_time(self, **settings: Any) -> dict[str, Any]:
        """Answers the doorbell until the judge rings for the end."""
        from workbench.judge.timing.stopwatch import answer_doorbell

        assert self.function is not None, "load a candidate first"
        return answer_doorbell(self.function, self.shared, _specs(settings.pop("inputs")), self.device, **settings)

    def do_profile(self, *, inputs: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
        """Which kernels one call runs, and for how long."""
        from workbench.judge.timing.profile import kernels

        assert self.function is not None, "load a candidate first"
        found, busy = kernels(self.function, make_inputs(_specs(inputs), seed, self.device), self.path)
        return {"kernels": found, "busy_us": busy}

    def do_silence(self) -> dict[str, Any]:
        """Before loading: the candidate's own kernels will do nothing."""
        from workbench.judge.workers.silence import silence

        silence()
        return {}

    def do_run(self, *, inputs: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
        """One plain call, its memory as PyTorch hands it out: for tools that watch this process."""
        assert self.function is not None, "load a candidate first"
        outputs = flatten(self.function(*make_inputs(_specs(inputs), seed, self.device)))
        self._synchronize()
        return {"outputs": len(outputs)}

    def do_inspect(self, **order: Any) -> dict[str, Any]:
        """What a person looks at: the compiler's stages, the memory map or a profile."""
        from workbench.judge.workers.inspections import inspect

        return inspect(self, **order)

    # What they share

    def describe(self, error: BaseException) -> dict[str, Any]:
        """An exception as data: its type, its message, and the candidate's own line."""
        if (said := cuda_build.explain(error, self.path)) is not None:
            return said
        number = candidate_line(error, str(self.path))
        text = ""
        if number is not None:
            with contextlib.suppress(OSError, IndexError):
                text = self.path.read_text().splitlines()[number - 1].strip()
        return {
            "type": type(error).__name__, "message": str(error)[:_MESSAGE_LIMIT], "line": number, "text": text,
            "kinds": [kind.__name__ for kind in type(error).__mro__],
            "trace": "".join(traceback.format_exception(error))[-4000:],
        }  # fmt: skip

    def _construct(self, made: Any, init_args: Sequence[Any], seed: int) -> Any:
        torch.manual_seed(seed)
        module = made(*init_args)
        if isinstance(module, torch.nn.Module):
            self.module = module if self.device == "cpu" else module.to(self.device)
            return self.module
        return module

    def _received(self, specs: Sequence[InputSpec], sent: Sequence[int]) -> list[Any]:
        received: list[Any] = []
        for spec, offset in zip(specs, sent, strict=True):
            if not spec.is_tensor:
                received.append(spec.values.value)
                continue
            dtype = getattr(torch, spec.dtype)
            content = self.shared.read(offset, spec.shape, dtype)
            tensor = torch.empty_strided(spec.shape, spec.strides, dtype=dtype, device=self.device)
            if all(stride for stride in spec.strides):
                tensor.copy_(content)
            else:  # expanded: write each element once
                index = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in spec.strides)
                tensor[index].copy_(content[index])
            received.append(tensor)
        return received

    def _hand_over(self, outputs: Sequence[torch.Tensor], offsets: Sequence[int], sizes: Sequence[int]) -> list[dict[str, Any]]:
        claims = []
        for position, output in enumerate(outputs):
            plain = type(output) in (torch.Tensor, torch.nn.Parameter) and output.layout is torch.strided
            claims.append({
                "shape": list(output.shape), "dtype": str(output.dtype).removeprefix("torch."), "plain": plain,
                "strides": list(output.stride()) if plain else [], "device": output.device.type,
            })  # fmt: skip
            if plain and position < len(sizes) and output.numel() * output.element_size() == sizes[position]:
                self.shared.write(offsets[position], output)
        return claims

    def _synchronize(self) -> None:
        if self.device != "cpu":
            torch.cuda.synchronize()


def _specs(data: Sequence[Mapping[str, Any]]) -> tuple[InputSpec, ...]:
    return tuple(decode(InputSpec, item) for item in data)


def _print_of(item: Any) -> int | None:
    return fingerprint.of_tensor(item) if isinstance(item, torch.Tensor) else None


def _behind_its_back(old: torch.Tensor, new: torch.Tensor) -> None:
    """Writes new content into the same memory, through an alias, so that neither pointer nor version counter tell of it."""
    alias = torch.empty(0, dtype=old.dtype, device=old.device)
    index = tuple(slice(0, 1) if stride == 0 and size > 1 else slice(None) for size, stride in zip(old.shape, old.stride(), strict=True))
    alias.set_(old.untyped_storage(), old.storage_offset(), old.shape, old.stride())
    alias[index].copy_(new[index])


def _aliases(outputs: Sequence[torch.Tensor], inputs: Sequence[Any], specs: Sequence[InputSpec]) -> list[str]:
    """Names of the inputs whose memory an output shares."""
    places = {output.untyped_storage().data_ptr() for output in outputs if output.layout is torch.strided and output.numel()}
    return [
        spec.name
        for spec, item in zip(specs, inputs, strict=True)
        if isinstance(item, torch.Tensor) and item.untyped_storage().data_ptr() in places
    ]
