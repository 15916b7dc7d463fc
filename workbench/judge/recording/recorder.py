"""Runs a launcher at the real shapes on untouched memory, and records its launches instead of running them.

Each launch is specialised as Triton's own binder does it, and each distinct specialisation is compiled for the target. No GPU, no
interpreter: with ``TRITON_INTERPRET`` nothing could be compiled.

What a launcher decides from tensor values is decided on garbage, unless the tensors are small (`untouched.SMALL`) or integers. Launches
from other threads, and kernels that are neither Triton's nor ATen's, are not seen.
"""

from __future__ import annotations

import contextlib
import re
import time
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import triton
from torch.utils._pytree import tree_leaves
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from workbench.build.cuda import CudaBuildError
from workbench.build.nvrtc import NvrtcMissingError
from workbench.build.triton import BuildError, Built, compile_launch
from workbench.build.tune import candidate_line, load_candidate
from workbench.judge.emulation.pretend import Pretend
from workbench.judge.recording.cuda_recorder import CudaRecorder, JudgedElsewhereError
from workbench.judge.recording.launches import DotUse, ErrorKind, RecordedLaunch, Recording, RecordingError, launch_key
from workbench.judge.recording.untouched import Untouched, make_untouched
from workbench.target import Target
from workbench.task import ITEM_BYTES, InputSpec, OutputSpec

UNSUPPORTED = (NotImplementedError, ValueError, TypeError, AssertionError)
"""What a launcher raises to say "not for this shape"."""


def record(
    source: str,
    entry: str,
    parameters: Mapping[str, Any],
    task_inputs: Sequence[InputSpec],
    target: Target,
    *,
    format: str = "function",
    init_args: Sequence[Any] = (),
    directory: Path,
    artifacts: bool = False,
) -> Recording:
    """Loads the candidate, calls its launcher once at the real shapes, and compiles what it launches.

    Args:
        source: the candidate's module; it is written into `directory`.
        entry: the function, or the class where `format` is ``"model"``.
        parameters: the point of its tunable space.
        task_inputs: the Task's arguments.
        target: what to compile for.
        format: ``"function"`` or ``"model"``.
        init_args: of a model.
        directory: where the module's file may be written.
        artifacts: keep the text of the compiler's stages in the record.

    Never raises for the candidate's faults: they are the recording's `error`.
    """
    recorder = _Recorder(target, artifacts)
    cuda = CudaRecorder(target, source, dict(parameters), recorder.launches, artifacts)
    untouched = Untouched()
    stage: dict[str, float] = {}
    path = str(Path(directory) / "candidate.py")
    started = time.perf_counter()
    result: Any = None
    error: RecordingError | None = None
    with warnings.catch_warnings(), Pretend(target), cuda.installed(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            made = load_candidate(source, entry, parameters, directory=Path(directory))
        except Exception as raised:
            return Recording(error=_load_error(raised, path), stage_ms={"load": _ms(started)})
        stage["load"] = _ms(started)
        started = time.perf_counter()
        with untouched, recorder.installed():
            try:
                if format == "model":
                    made = made(*init_args)  # type: ignore[operator]
                arguments = make_untouched(task_inputs)
                untouched._calls.clear()  # what the constructor did is not part of a call
                recorder.launches.clear()
                result = made(*arguments)  # type: ignore[operator]
            except BuildError as raised:
                error = RecordingError("build", raised.message, raised.line)
            except (CudaBuildError, NvrtcMissingError, JudgedElsewhereError) as raised:
                error = _cuda_error(raised)
            except Exception as raised:
                kind: ErrorKind = "unsupported" if isinstance(raised, UNSUPPORTED) else "raised"
                error = RecordingError(kind, _message(raised), candidate_line(raised, path))
    spent = recorder.build_ms + cuda.build_ms
    stage["launch"] = _ms(started) - spent
    stage["build"] = spent
    tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)] if error is None else []
    return Recording(
        launches=tuple(recorder.launches.values()),
        library=untouched.calls,
        outputs=tuple(OutputSpec(tuple(t.shape), str(t.dtype).removeprefix("torch."), tuple(t.stride())) for t in tensors),
        labels=untouched.labels,
        stage_ms=stage,
        error=error or _odd_result(tensors, result),
    )


def _cuda_error(raised: CudaBuildError | NvrtcMissingError | JudgedElsewhereError) -> RecordingError:
    if isinstance(raised, CudaBuildError):
        return RecordingError("build", raised.message, raised.line, raised.log)
    return RecordingError("elsewhere", str(raised))


def _load_error(raised: Exception, path: str) -> RecordingError:
    if isinstance(raised, (CudaBuildError, NvrtcMissingError, JudgedElsewhereError)):
        return _cuda_error(raised)
    if match := re.fullmatch(r"line (\d+): (.*)", str(raised)):  # said by `build.tune`
        return RecordingError("build", match[2], int(match[1]))
    return RecordingError("build", _message(raised), candidate_line(raised, path))


def _odd_result(tensors: Sequence[torch.Tensor], result: Any) -> RecordingError | None:
    if not tensors:
        return RecordingError("raised", f"the launcher returned no tensor, but {type(result).__name__}")
    odd = next((tensor.dtype for tensor in tensors if str(tensor.dtype).removeprefix("torch.") not in ITEM_BYTES), None)
    return RecordingError("unsupported", f"the launcher returned a tensor of {odd}") if odd is not None else None


@dataclass
class _Recorder:
    target: Target
    artifacts: bool
    launches: dict[tuple[Any, ...], RecordedLaunch] = field(default_factory=dict)
    built: dict[str, Built] = field(default_factory=dict)
    build_ms: float = 0.0

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Puts the recorder in the place of every kernel's launch."""
        runs = JITFunction.run, Autotuner.run
        recorder = self

        def run(kernel: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            return recorder.launch(kernel, args, kwargs, grid, warmup)

        JITFunction.run = run
        Autotuner.run = _first_valid_config
        try:
            yield
        finally:
            JITFunction.run, Autotuner.run = runs

    def launch(self, kernel: JITFunction, args: Sequence[Any], kwargs: dict[str, Any], grid: Any, warmup: bool) -> Any:
        # These steps are those of JITFunction.run, as far as they need no device.
        kwargs["debug"] = kwargs.get("debug", kernel.debug) or triton.knobs.runtime.debug
        instrumentation = getattr(triton.knobs.compilation, "instrumentation_mode", None)
        if instrumentation is not None:
            kwargs["instrumentation_mode"] = instrumentation
        for hook in kernel.pre_run_hooks:
            hook(*args, **kwargs)
        *_, backend, binder = kernel.device_caches[0]
        bound, specialization, options = binder(*args, **kwargs)
        options, signature, constexprs, attrs = kernel._pack_args(backend, kwargs, bound, specialization, options)
        shape = () if warmup else _grid(grid, bound)
        key = f"{kernel.cache_key}{specialization}{options}{[str(value) for value in constexprs.values()]}"
        built, spent = self._build(key, kernel, signature, constexprs, attrs, options, shape or (1, 1, 1))
        if not warmup and 0 not in shape:
            self._note(key, kernel, bound, signature, specialization, options, shape, built, spent)
        return CompiledShim(built)

    def _build(
        self, key: str, kernel: JITFunction, signature: Any, constexprs: Any, attrs: Any, options: Any, grid: tuple[int, ...]
    ) -> tuple[Built, float]:
        if key in self.built:
            return self.built[key], 0.0
        started = time.perf_counter()
        try:
            with torch._C.DisableTorchFunction():
                built = compile_launch(kernel, signature, constexprs, attrs, options.__dict__, self.target, grid=grid)
        finally:
            spent = _ms(started)
            self.build_ms += spent
        self.built[key] = built
        return built, spent

    def _note(
        self,
        key: str,
        kernel: JITFunction,
        bound: Mapping[str, Any],
        signature: Mapping[str, str],
        specialization: Sequence[Any],
        options: Any,
        grid: tuple[int, ...],
        built: Built,
        spent: float,
    ) -> None:
        constants = {
            name: value for name, value in bound.items() if signature[name] == "constexpr" and kernel.params[_at(kernel, name)].is_constexpr
        }
        arguments = {name: value for name, value in bound.items() if name not in constants}
        name = launch_key(kernel.__name__, grid, arguments, constants)
        identity = (key, name)
        before = self.launches.get(identity)
        if before is not None:
            count = before.count + 1
            self.launches[identity] = replace(before, count=count, resources=replace(before.resources, launches=count))
            return
        programs = grid[0] * grid[1] * grid[2]
        resources = replace(built.resources, grid=grid, waves=programs / (built.blocks * self.target.multiprocessors))
        self.launches[identity] = RecordedLaunch(
            key=name,
            kernel=kernel.__name__,
            grid=grid,
            arguments={name: _spelled(item) for name, item in zip(bound, specialization, strict=True) if name in arguments},
            constexprs={name: _plain(value) for name, value in constants.items()},
            options={"num_warps": options.num_warps, "num_stages": options.num_stages, "num_ctas": getattr(options, "num_ctas", 1)},
            resources=resources,
            blocks=built.blocks,
            vectors={str(size): count for size, count in built.vectors.items()},
            dots=tuple(DotUse(dot.dtype, dot.effective, dot.shape) for dot in built.dots),
            build_ms=spent,
            artifacts={**built.artifacts, "binary": built.binary.hex()} if self.artifacts else {},
        )


def _first_valid_config(tuner: Autotuner, *args: Any, **kwargs: Any) -> Any:
    """In place of timing: the first configuration that builds for the target."""
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    try:
        configs = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
        for position, config in enumerate(configs):
            full = {**tuner.nargs, **kwargs, **config.all_kwargs()}
            if len(configs) > 1:
                tuner.pre_hook(full, reset_only=True)
            if config.pre_hook is not None:
                config.pre_hook(full)
            try:
                result = tuner.fn.run(*args, **kwargs, **config.all_kwargs())
            except BuildError as error:
                # Triton skips what exceeds the card's resources; any other fault of the build is the candidate's.
                if not error.message.startswith("out of resources") or position == len(configs) - 1:
                    raise
                continue
            tuner.best_config = config
            return result
    finally:
        tuner.nargs = None
    return None


class CompiledShim:
    """What ``kernel[grid](…)`` and ``kernel.warmup(…)`` return: launchers ask it for registers and shared memory."""

    def __init__(self, built: Built) -> None:
        resources = built.resources
        self.n_regs = resources.registers
        self.n_spills = resources.spill_bytes // 4
        self.n_max_threads = 1024
        self.asm = {**built.artifacts}
        self.metadata = types.SimpleNamespace(
            shared=resources.shared_bytes, num_warps=resources.warps, num_stages=resources.stages, num_ctas=1, name=resources.kernel
        )

    def _init_handles(self) -> None: ...

    def result(self) -> CompiledShim:
        return self

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        raise NotImplementedError("launching a kernel that was compiled by warmup() can't be recorded; launch it as kernel[grid](…)")


def _grid(grid: Any, bound: Mapping[str, Any]) -> tuple[int, ...]:
    if callable(grid):
        grid = grid(bound)
    if isinstance(grid, (int, torch.Tensor)):
        grid = (grid,)
    sizes = tuple(int(size) for size in grid)
    if len(sizes) > 3:
        raise ValueError(f"a grid has at most 3 axes, this one has {len(sizes)}")
    return sizes + (1,) * (3 - len(sizes))


def _at(kernel: JITFunction, name: str) -> int:
    return next(position for position, parameter in enumerate(kernel.params) if parameter.name == name)


def _spelled(specialised: tuple[Any, Any]) -> str:
    kind, value = specialised
    if kind == "constexpr":
        return f"={value}"
    return f"{kind}:16" if isinstance(value, str) and "D" in value else str(kind)


def _plain(value: Any) -> Any:
    value = getattr(value, "value", value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return getattr(value, "__name__", None) or str(value)


def _message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg}"
    text = " ".join(str(error).split())[:600]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _ms(started: float) -> float:
    return (time.perf_counter() - started) * 1e3
