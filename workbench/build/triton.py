"""Compiles one Triton launch for a target with the real compiler. No GPU and no driver are needed.

What a driver would tell about the kernel is read from what the compiler made: registers and stack from the cubin, or from the metadata in
AMD's assembly.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.errors import CompilationError

from workbench.build.cubin import read_usage
from workbench.build.occupancy import occupancy
from workbench.candidate import Resources
from workbench.target import Target

TEXTS = ("ttir", "ttgir", "llir", "ptx", "amdgcn")
"""The stages that are text, in the compiler's order."""


class BuildError(Exception):
    """The kernel does not build for the target.

    Attributes:
        message: one line, without the line's number.
        line: in the candidate's file; None where the compiler names none.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.message = message
        self.line = line


@dataclass(frozen=True)
class Built:
    """A kernel compiled for one target.

    Attributes:
        resources: of one launch; the caller knows how often it is launched.
        artifacts: text of each stage: ttir, ttgir, llir, and ptx or amdgcn.
        binary: the cubin or hsaco.
        blocks: programs that are resident on one multiprocessor.
        vectors: how many global loads and stores the code has, by the bytes that one thread moves in each.
        dots: operand dtype, asked precision and shape (M, N, K) of each ``tt.dot``.
    """

    resources: Resources
    artifacts: Mapping[str, str]
    binary: bytes
    blocks: int
    vectors: Mapping[int, int] = field(default_factory=dict)
    dots: tuple[Dot, ...] = ()


@dataclass(frozen=True)
class Dot:
    """One matrix product in Triton's IR. `precision` is ``tf32``, ``tf32x3``, ``ieee`` …, and says something for float32 operands only."""

    dtype: str
    precision: str
    shape: tuple[int, ...]

    @property
    def effective(self) -> str:
        """What it computes with: the asked precision of a float32 product, else the operand dtype."""
        return self.precision if self.dtype == "float32" else self.dtype


def gpu_target(target: Target) -> GPUTarget:
    """Triton's name for a target."""
    return GPUTarget(target.backend, target.arch, target.warp_size)


def compile_launch(
    kernel: Any,
    signature: Mapping[str, str],
    constexprs: Mapping[Any, Any],
    attrs: Mapping[Any, Any],
    options: Mapping[str, Any],
    target: Target,
    *,
    grid: Sequence[int] = (1,),
) -> Built:
    """Compiles a ``@triton.jit`` function for one specialisation.

    Args:
        kernel: the `JITFunction`.
        signature: type of each parameter in Triton's spelling, ``constexpr`` for constants.
        constexprs: their values, by name or by path.
        attrs: divisibility of the arguments, by path, as Triton's own binder makes it.
        options: such as ``num_warps`` and ``num_stages``.
        target: what to build for.
        grid: programs of the launch, for the waves.

    Raises:
        BuildError: with one line for the person, and the candidate's own line where the compiler names it.
    """
    source = ASTSource(kernel, dict(signature), dict(constexprs), dict(attrs))
    try:
        with _early_check(target, kernel.__name__):
            compiled = triton.compile(source, target=gpu_target(target), options=dict(options))
    except BuildError:
        raise
    except CompilationError as error:
        raise _front_end_error(error, kernel) from None
    except Exception as error:
        raise BuildError(_assembler_says(str(error)) or _one_line(str(error)) or type(error).__name__) from None
    return _describe(kernel.__name__, compiled, target, tuple(int(size) for size in grid))


_ALLOCATION = re.compile(r"ttg\.local_alloc[^\n]*-> !ttg\.memdesc<((?:\d+x)+)(?:f|bf|i)(\d+)")


@contextlib.contextmanager
def _early_check(target: Target, name: str) -> Iterator[None]:
    """Stops the compiler before its slow stages where one buffer alone is more shared memory than a program can have.

    Such kernels take LLVM and the assembler tens of seconds, and are refused at the end.
    """

    def check(module: Any) -> None:
        for shape, bits in _ALLOCATION.findall(str(module)):
            size = math.prod(int(extent) for extent in shape.rstrip("x").split("x")) * int(bits) // 8
            if size > target.block_shared_bytes:
                raise _too_much_shared(name, size, target)

    def hook(backend: Any = None, stages: Any = None, *rest: Any) -> Any:
        if stages is None:  # the compiler asks what to add to the cache's key
            return "", ""
        ttgir = stages["ttgir"]

        def checked(source: Any, metadata: Any) -> Any:
            module = ttgir(source, metadata)
            check(module)
            return module

        stages["ttgir"] = checked
        return None

    before = triton.knobs.runtime.add_stages_inspection_hook
    triton.knobs.runtime.add_stages_inspection_hook = before or hook
    try:
        yield
    finally:
        triton.knobs.runtime.add_stages_inspection_hook = before


def _too_much_shared(name: str, size: int, target: Target) -> BuildError:
    return BuildError(
        f"out of resources: {name} needs {size} bytes of shared memory a program, {target.gpu} has {target.block_shared_bytes}; "
        "reduce block sizes or num_stages"
    )


def _describe(name: str, compiled: Any, target: Target, grid: tuple[int, ...]) -> Built:
    metadata = compiled.metadata
    artifacts = {stage: str(compiled.asm[stage]) for stage in TEXTS if stage in compiled.asm}
    warps = int(getattr(metadata, "total_num_warps", 0) or metadata.num_warps)
    shared = int(metadata.shared)
    if shared > target.block_shared_bytes:
        raise _too_much_shared(name, shared, target)
    if target.backend == "cuda":
        binary = bytes(compiled.asm["cubin"])
        registers, stack = read_usage(binary, getattr(metadata, "name", name))
        vectors = _ptx_vectors(artifacts["ptx"])
        tensor_cores = re.search(r"\b(?:wgmma|mma|tcgen05)\.", artifacts["ptx"]) is not None
    else:
        binary = bytes(compiled.asm["hsaco"])
        text = artifacts["amdgcn"]
        registers = _amd_figure(text, "vgpr_count")  # on CDNA 2 and 3 this counts the accumulation registers too
        stack = _amd_figure(text, "private_segment_fixed_size")
        vectors = _amd_vectors(text)
        tensor_cores = "v_mfma" in text or "v_wmma" in text
    fits = occupancy(target, warps, registers, shared)
    if fits.blocks == 0:
        raise BuildError(f"out of resources: a program of {name} with {warps} warps does not fit on a multiprocessor ({fits.limited_by})")
    dots = _dots(artifacts["ttir"])
    return Built(
        resources=Resources(
            kernel=name,
            grid=grid,
            warps=warps,
            stages=int(getattr(metadata, "num_stages", 1)),
            registers=registers,
            spill_bytes=stack,
            shared_bytes=shared,
            occupancy=fits.occupancy,
            limited_by=fits.limited_by,
            waves=math.prod(grid) / (fits.blocks * target.multiprocessors),
            vector_bytes=max(vectors, default=0),
            tensor_cores=tensor_cores,
            dot_precision=_lowest(dots),
        ),
        artifacts=artifacts,
        binary=binary,
        blocks=fits.blocks,
        vectors=vectors,
        dots=dots,
    )


def _lowest(dots: Sequence[Dot]) -> str:
    order = ("float64", "ieee", "tf32x3", "bf16x6", "bf16x3", "tf32", "float16", "bfloat16")
    names = [dot.effective for dot in dots]
    return max(names, key=lambda name: order.index(name) if name in order else len(order), default="")


_ELEMENTS = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8",
    "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip
_DOT = re.compile(r"tt\.dot [^\n]*? : tensor<((?:\d+x)+)(\w+)[^>]*> \* tensor<((?:\d+x)+)(\w+)")
_SCALED = re.compile(r"tt\.dot_scaled [^\n]*?lhs = (\w+) rhs = (\w+)")


def _dots(ttir: str) -> tuple[Dot, ...]:
    found = []
    for match in _DOT.finditer(ttir):
        asked = re.search(r"inputPrecision = (\w+)", match[0])
        left, right = ([int(size) for size in shape.rstrip("x").split("x")] for shape in (match[1], match[3]))
        shape = (left[-2], right[-1], left[-1])
        found.append(Dot(_ELEMENTS.get(match[2], match[2]), asked[1] if asked else "ieee", shape))
    found += [Dot(match[1], "scaled", ()) for match in _SCALED.finditer(ttir)]
    return tuple(found)


_PTX_ACCESS = re.compile(r"\b(?:ld|st)(?:\.(?!global|v\d)[\w:]+)*\.global(?:\.(?!v\d)[\w:]+)*?(?:\.v(\d))?\.[bfsu](\d+)\b")
_PTX_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global[^;]*?\],\s*\[[^\]]*\],\s*(0x[0-9a-fA-F]+|\d+)")


def _ptx_vectors(ptx: str) -> dict[int, int]:
    counts: dict[int, int] = {}
    for match in _PTX_ACCESS.finditer(ptx):
        size = int(match[1] or 1) * int(match[2]) // 8
        counts[size] = counts.get(size, 0) + 1
    for match in _PTX_COPY.finditer(ptx):
        size = int(match[1], 0)
        counts[size] = counts.get(size, 0) + 1
    if bulk := len(re.findall(r"\bcp\.async\.bulk", ptx)):
        # The tensor memory accelerator moves whole tiles: as good as the widest access.
        counts[16] = counts.get(16, 0) + bulk
    return dict(sorted(counts.items()))


_AMD_ACCESS = re.compile(r"\b(?:global|buffer|flat)_(?:load|store)_(?:[iu]?(byte|short)|dword(?:x(\d))?|b(\d+)|lds_dword(?:x(\d))?)\w*")


def _amd_vectors(text: str) -> dict[int, int]:
    counts: dict[int, int] = {}
    for match in _AMD_ACCESS.finditer(text):
        if match[1]:
            size = {"byte": 1, "short": 2}[match[1]]
        else:
            size = int(match[3]) // 8 if match[3] else 4 * int(match[2] or match[4] or 1)
        counts[size] = counts.get(size, 0) + 1
    return dict(sorted(counts.items()))


def _amd_figure(text: str, name: str) -> int:
    match = re.search(rf"\.{name}:\s+(\d+)", text)
    return int(match[1]) if match else 0


def _front_end_error(error: CompilationError, kernel: Any) -> BuildError:
    # Each function that is inlined wraps the error of the one below: the innermost in the candidate's file is where it went wrong.
    line: int | None = None
    cause: BaseException | None = error
    message = ""
    while cause is not None:
        if isinstance(cause, CompilationError):
            line = _absolute_line(cause, kernel) or line
            message = cause.error_message or message
        elif str(cause):
            message = str(cause)
        cause = cause.__cause__
    return BuildError(_one_line(message) or type(error).__name__, line)


def _absolute_line(error: CompilationError, kernel: Any) -> int | None:
    """The error counts lines from its function's ``def``; this finds that ``def`` in the candidate's file."""
    relative = getattr(error.node, "lineno", None)
    if relative is None or not error.src:
        return None
    file = inspect.getsourcefile(kernel.fn)
    head = error.src.lstrip().splitlines()[0].strip()
    if file is None or not Path(file).is_file():
        return None
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    return next((number + relative - 1 for number, line in enumerate(lines, 1) if line.strip() == head), None)


def _assembler_says(text: str) -> str:
    """The first complaint of ptxas, without the temporary files and the command line that it comes with."""
    _, _, told = text.partition("stderr:")
    match = re.search(r"(?:fatal|error)\s*:\s*([^\n;]+)", told)
    return f"ptxas: {match[1].strip()}" if match else ""


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines()]
    return "; ".join(line for line in lines if line)[:600]
