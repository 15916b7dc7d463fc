"""Stands in for PyTorch's run-time compiler: CUDA C++ is compiled for the target, and its launches are recorded instead of run.

A launch is held against the compiled kernel as the driver would do it, and more strictly in one thing: an argument whose size differs from
the parameter's is an error here, where the driver reads what lies behind it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import torch

from workbench.build.cuda import CudaKernel, CudaModule, build
from workbench.build.cuda_source import CudaSource, read_cuda, uses_extension
from workbench.build.occupancy import occupancy
from workbench.candidate import Resources
from workbench.judge.recording.launches import DotUse, RecordedLaunch, launch_key
from workbench.target import Target

_STATIC_LIMIT = 48 << 10


class LaunchError(RuntimeError):
    """The launch could not have worked on the target."""


class JudgedElsewhereError(Exception):
    """It can't be built on this machine, for a reason that says nothing against it."""


@dataclass
class CudaRecorder:
    """Records the launches of one candidate's CUDA kernels into `launches`, as the recorder of Triton's does.

    Attributes:
        source: the candidate's module, for the lines of the compiler's messages.
        build_ms: time that the compilations took.
    """

    target: Target
    source: str
    parameters: dict[str, Any]
    launches: dict[tuple[Any, ...], RecordedLaunch]
    artifacts: bool = False
    build_ms: float = 0.0
    _built: dict[tuple[Any, ...], CudaModule] = field(default_factory=dict)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Puts the recorder in the place of the compiler."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(torch.cuda, "_compile_kernel", self.compile))
            if uses_extension(self.source):
                from torch.utils import cpp_extension

                for name in ("load_inline", "load"):
                    stack.enter_context(mock.patch.object(cpp_extension, name, _extension))
            yield

    def compile(
        self, kernel_source: str, kernel_name: str, compute_capability: str | None = None, cuda_include_dirs: Sequence[str] | None = None,
        nvcc_options: Sequence[str] | None = None, **rest: Any,
    ) -> RecordedKernel:  # fmt: skip
        """In the place of ``torch.cuda._compile_kernel``."""
        started = time.perf_counter()
        options = [option for option in nvcc_options or () if not option.startswith(("-arch", "--gpu-architecture"))]
        key = (kernel_source, kernel_name, tuple(options), tuple(cuda_include_dirs or ()))
        spent = 0.0
        try:
            if key not in self._built:
                place = self._place(kernel_source)
                self._built[key] = build(kernel_source, (kernel_name,), self.target, options, cuda_include_dirs or (), place=place)
        finally:
            spent = (time.perf_counter() - started) * 1e3
            self.build_ms += spent
        return RecordedKernel(self, self._built[key], self._built[key].kernels[0], kernel_source, spent)

    def _place(self, text: str) -> CudaSource | None:
        with contextlib.suppress(ValueError):
            found = read_cuda(self.source, self.parameters)
            return found if found.text == text else None
        return None


@dataclass
class RecordedKernel:
    """What the launcher gets in the place of a compiled kernel."""

    recorder: CudaRecorder
    module: CudaModule
    built: CudaKernel
    text: str
    build_ms: float
    _most_shared: int = 0

    def set_shared_memory_config(self, shared_mem_bytes: int) -> None:
        """As PyTorch's: announces how much shared memory launches will ask for."""
        most = self.recorder.target.block_shared_bytes
        if shared_mem_bytes >= _STATIC_LIMIT and shared_mem_bytes > most:
            raise LaunchError(
                f"{self.built.name} asks for {shared_mem_bytes} bytes of shared memory, {self.recorder.target.gpu} has {most} a block"
            )
        self._most_shared = shared_mem_bytes

    def __call__(
        self, grid: Sequence[int] = (1, 1, 1), block: Sequence[int] = (1, 1, 1), args: Sequence[Any] | None = None, shared_mem: int = 0,
        stream: Any = None,
    ) -> None:  # fmt: skip
        target, built = self.recorder.target, self.built
        sizes, threads = _three(grid, "grid", built.name), _three(block, "block", built.name)
        self._check_count(len(args or ()))
        arguments = [self._argument(position, value) for position, value in enumerate(args or ())]
        count = math.prod(threads)
        if count > 1024:
            raise LaunchError(f"{built.name} is launched with {count} threads a block; 1024 are possible")
        if built.most_threads and count > built.most_threads:
            raise LaunchError(
                f"{built.name} is launched with {count} threads a block; its __launch_bounds__ promise {built.most_threads} at most"
            )
        if sizes[1] > 65535 or sizes[2] > 65535 or sizes[0] > 2**31 - 1:
            raise LaunchError(f"{built.name}'s grid {'×'.join(map(str, sizes))} is too large: 65535 on the second and third axis")
        if shared_mem >= _STATIC_LIMIT and shared_mem > self._most_shared:
            raise LaunchError(
                f"{built.name} is launched with {shared_mem} bytes of shared memory: call its set_shared_memory_config({shared_mem}) before"
            )
        warps, shared = -(-count // target.warp_size), built.shared_bytes + shared_mem
        fits = occupancy(target, warps, built.registers, shared)
        if fits.blocks == 0:
            raise LaunchError(
                f"too many resources requested for launch: a block of {built.name} with {count} threads of {built.registers} registers and "
                f"{shared} bytes of shared memory does not fit on a multiprocessor ({fits.limited_by})"
            )
        resources = Resources(
            kernel=built.name, grid=sizes, warps=warps, registers=built.registers, spill_bytes=built.spill_bytes, shared_bytes=shared,
            occupancy=fits.occupancy, limited_by=fits.limited_by, waves=math.prod(sizes) / (fits.blocks * target.multiprocessors),
            vector_bytes=max(built.vectors, default=0), tensor_cores=bool(built.products), dot_precision=_precision(built),
            backend="cuda",
        )  # fmt: skip
        named = {str(position): value for position, value in enumerate(args or ())}
        self._note(RecordedLaunch(
            key=launch_key(built.name, sizes, named, {}), kernel=built.name, grid=sizes,
            arguments={str(position): spelled for position, spelled in enumerate(arguments)},
            options={"threads": threads, "dynamic_shared": shared_mem}, resources=resources, blocks=fits.blocks,
            vectors={str(size): count for size, count in built.vectors.items()},
            dots=tuple(DotUse(dtype, dtype) for dtype in built.products), build_ms=self.build_ms,
            artifacts={"cuda": self.text, "ptx": self.module.ptx, "binary": self.module.cubin.hex()} if self.recorder.artifacts else {},
        ))  # fmt: skip
        self.build_ms = 0.0

    def _note(self, launch: RecordedLaunch) -> None:
        identity = (id(self.module), launch.key, str(launch.options))
        before = self.recorder.launches.get(identity)
        if before is None:
            self.recorder.launches[identity] = launch
            return
        count = before.count + 1
        self.recorder.launches[identity] = replace(before, count=count, resources=replace(before.resources, launches=count))

    def _argument(self, position: int, value: Any) -> str:
        size = self._size(position)
        if isinstance(value, torch.Tensor):
            self._check(position, "a tensor, which arrives as a pointer", 8, size, (8,))
            dtype = str(value.dtype).removeprefix("torch.")
            return f"*{dtype}:16" if value.data_ptr() % 16 == 0 else f"*{dtype}"
        if isinstance(value, int):
            if not -(2**31) <= value < 2**32:
                raise LaunchError(
                    f"argument {position} of {self.built.name} is {value}: an int arrives with 32 bits; pass tensors as they are"
                )
            self._check(position, "a Python int, which arrives as a 32-bit int", 4, size, (1, 2, 4))
            return "i32"
        if isinstance(value, float):
            self._check(position, "a Python float, which arrives as a double", 8, size, (8,))
            return "fp64"
        raise TypeError(f"argument {position} of {self.built.name} is of {type(value)}: only tensors, ints and floats can be passed")

    def _size(self, position: int) -> int | None:
        sizes = self.built.parameters
        return sizes[position] if sizes is not None and position < len(sizes) else None

    def _check(self, position: int, what: str, given: int, size: int | None, fitting: Sequence[int]) -> None:
        if size is not None and size not in fitting:
            raise LaunchError(
                f"argument {position} of {self.built.name} is {what} ({given} bytes), where the kernel's parameter has {size} bytes"
            )

    def _check_count(self, given: int) -> None:
        if self.built.parameters is not None and given != len(self.built.parameters):
            raise LaunchError(f"{self.built.name} has {len(self.built.parameters)} parameters and is launched with {given} arguments")


def _three(sizes: Sequence[int], what: str, name: str) -> tuple[int, int, int]:
    found = tuple(int(size) for size in sizes)
    if len(found) != 3:
        raise LaunchError(f"{name}'s {what} must have three sizes, such as ({found[0] if found else 1}, 1, 1)")
    if any(size < 1 for size in found):
        raise LaunchError(f"{name}'s {what} is {'×'.join(map(str, found))}: each size is at least 1")
    return found[0], found[1], found[2]


def _precision(kernel: CudaKernel) -> str:
    return "tf32" if "tf32" in kernel.products else next(iter(kernel.products), "")


def _extension(*args: Any, **kwargs: Any) -> Any:
    raise JudgedElsewhereError("a C++ extension is built by nvcc when the module runs: it is judged on a machine with a GPU and nvcc")
