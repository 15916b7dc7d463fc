"""What a launcher did: the records of its launches, of the library calls between them, and of the memory traffic they cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.candidate import Resources
from workbench.task import OutputSpec

ErrorKind = Literal["build", "raised", "unsupported", "elsewhere"]


@dataclass(frozen=True)
class RecordedLaunch:
    """One kernel specialisation at one grid, and how often the launcher launches it.

    Attributes:
        key: equal for the same launch in the recorder and in the interpreter, see `launch_key`.
        kernel: its name.
        grid: programs per axis, always three.
        count: launches in one call.
        arguments: Triton's type of each parameter, with ``:16`` where divisible by 16 and ``=1`` where it is a constant 1.
        constexprs: values of the constants, as text where JSON has no such thing.
        resources: of the kernel compiled for the target; `launches` in it equals `count`.
        blocks: programs resident on one multiprocessor.
        vectors: static count of global loads and stores by the bytes that one thread moves (keys are decimal text).
        dots: operand type, effective precision and shape of each matrix product in Triton's IR.
        build_ms: time of the compilation; 0 where an earlier launch had the same specialisation.
        artifacts: text of the compiler's stages, where they were asked for, and ``binary`` in hexadecimal digits.
    """

    key: str
    kernel: str
    grid: tuple[int, ...]
    count: int = 1
    arguments: Mapping[str, str] = field(default_factory=dict)
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    resources: Resources = Resources(kernel="", grid=())
    blocks: int = 1
    vectors: Mapping[str, int] = field(default_factory=dict)
    dots: tuple[DotUse, ...] = ()
    build_ms: float = 0.0
    artifacts: Mapping[str, str] = field(default_factory=dict)

    @property
    def programs(self) -> int:
        total = 1
        for size in self.grid:
            total *= size
        return total


@dataclass(frozen=True)
class DotUse:
    """One ``tt.dot`` of a kernel: operand dtype, what it computes with, and (M, N, K)."""

    dtype: str
    precision: str
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class LibraryCall:
    """An ATen call of the launcher that would be a kernel on the GPU: computing, copying or filling."""

    op: str
    kind: Literal["compute", "copy", "fill"]
    bytes: int
    flops: int = 0
    dtype: str = ""
    count: int = 1


@dataclass(frozen=True)
class Recording:
    """What one call of the launcher at the real shapes did, or why it could not be recorded.

    Attributes:
        launches: in order of their first appearance.
        library: ATen calls, in order of their first appearance, equal ones counted together.
        outputs: of what the launcher returned, flattened.
        labels: facts worth showing, such as ``calls torch.mm``.
        stage_ms: ``load``, ``launch`` (without the building in it) and ``build``.
        error: None where all went well.
    """

    launches: tuple[RecordedLaunch, ...] = ()
    library: tuple[LibraryCall, ...] = ()
    outputs: tuple[OutputSpec, ...] = ()
    labels: tuple[str, ...] = ()
    stage_ms: Mapping[str, float] = field(default_factory=dict)
    error: RecordingError | None = None

    @property
    def resources(self) -> tuple[Resources, ...]:
        return tuple(launch.resources for launch in self.launches)


@dataclass(frozen=True)
class RecordingError:
    """Why a launcher could not be recorded.

    `kind` is ``build`` (the module or a kernel does not build), ``raised`` (the launcher raised), ``unsupported`` (it raised what means
    "not for this shape": NotImplementedError, ValueError, TypeError or AssertionError) or ``elsewhere`` (this machine can't build it).
    `line` is in the candidate's file.
    """

    kind: ErrorKind
    message: str
    line: int | None = None
    log: str = ""


@dataclass(frozen=True)
class LaunchTraffic:
    """Memory traffic and arithmetic of one launch, scaled from the programs that were interpreted to the whole grid.

    Attributes:
        unique_bytes: distinct bytes of device memory, in sectors of 32 bytes, that the grid touches.
        read_bytes, write_bytes: the two parts of `unique_bytes`; a tensor that is read and written counts in both.
        program_bytes: distinct bytes that one program touches, on average. What the grid's programs touch together beyond `unique_bytes` is
            shared between programs; what they request beyond that, each reads again itself.
        requested_bytes: bytes that the multiprocessors ask the L2 for.
        flops: floating-point operations outside matrix products.
        dot_flops: those of matrix products, by operand dtype.
        steps: loads, or groups of them, that one program has to wait for one after another, on average: those of a loop's rounds, and
            those before and after a reduction.
        by_argument: `unique_bytes` of each tensor argument.
        sampled: programs that were interpreted, of `programs`.
        note: how the figures were degraded, where they were.
    """

    key: str
    kernel: str
    grid: tuple[int, ...]
    count: int = 1
    programs: int = 1
    sampled: int = 0
    unique_bytes: float = 0.0
    read_bytes: float = 0.0
    write_bytes: float = 0.0
    program_bytes: float = 0.0
    requested_bytes: float = 0.0
    atomics: float = 0.0
    flops: float = 0.0
    dot_flops: Mapping[str, float] = field(default_factory=dict)
    steps: float = 0.0
    by_argument: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Traffic:
    """Traffic of every distinct launch of one call; `error` says why it could not be measured (then `launches` may be partial)."""

    launches: tuple[LaunchTraffic, ...] = ()
    seconds: float = 0.0
    error: str = ""


def launch_key(kernel: str, grid: Sequence[int], arguments: Mapping[str, Any], constexprs: Mapping[str, Any]) -> str:
    """Names a launch by its kernel, grid, tensor arguments and constants, but not by its plain numbers: recorder and interpreter agree."""
    tensors = []
    for name, value in arguments.items():
        shape = getattr(value, "shape", None)
        if shape is not None and hasattr(value, "dtype"):
            tensors.append(f"{name}:{value.dtype}{tuple(shape)}")
    constants = [f"{name}={_constant(value)}" for name, value in constexprs.items()]
    return f"{kernel}[{'x'.join(map(str, grid))}]({', '.join(tensors)}; {', '.join(constants)})"


def _constant(value: Any) -> str:
    value = getattr(value, "value", value)
    return str(value) if value is None or isinstance(value, (bool, int, float, str)) else getattr(value, "__name__", type(value).__name__)
