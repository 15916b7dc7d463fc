"""Compiles CUDA C++ for a target. No GPU and no driver are needed.

The compiler and what it is told are those that PyTorch's own kernel compiler uses on a GPU, so that what builds here builds there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.build import nvrtc, ptx
from workbench.build.cubin import read_parameters, read_usage
from workbench.build.cuda_cache import CudaCache, Entry
from workbench.build.cuda_errors import first_error, mapped_log
from workbench.build.cuda_source import CudaSource, read_cuda
from workbench.target import Target

PREFIX = "CUDA C++: "
"""How the reason of every failed build begins."""
_FUNCTION = re.compile(r"(?:Compiling entry function|Function properties for) '?([\w$]+)'?")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_STATIC = re.compile(r"(\d+) bytes smem")


class CudaBuildError(Exception):
    """The source does not build for the target.

    Attributes:
        message: one line, without the line's number.
        line: of the candidate's module; None where the compiler names none.
        log: what the compiler said, with the module's lines.
    """

    def __init__(self, message: str, line: int | None = None, log: str = "") -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.message = message
        self.line = line
        self.log = log


@dataclass(frozen=True)
class CudaKernel:
    """One kernel as it was compiled.

    Attributes:
        name: as ``KERNELS`` has it; `symbol`: its mangled name.
        registers: per thread; `spill_bytes`: stored and loaded again, per thread; `stack_bytes`: local arrays and spills.
        shared_bytes: static shared memory of a block.
        parameters: bytes of each; None where they can't be read.
        vectors: global loads and stores by the bytes that one thread moves.
        products: operand types of its matrix instructions.
        most_threads: of a block, as ``__launch_bounds__`` promises; 0 where nothing is promised.
    """

    name: str
    symbol: str
    registers: int
    spill_bytes: int = 0
    stack_bytes: int = 0
    shared_bytes: int = 0
    parameters: tuple[int, ...] | None = None
    vectors: Mapping[int, int] = field(default_factory=dict)
    products: tuple[str, ...] = ()
    most_threads: int = 0


@dataclass(frozen=True)
class CudaModule:
    """A CUDA source compiled for one target. Its machine code is had by `sass.disassemble` of `cubin`, which takes a second."""

    kernels: tuple[CudaKernel, ...]
    cubin: bytes
    ptx: str
    log: str
    toolchain: str

    def kernel(self, name: str) -> CudaKernel:
        """The kernel of that name."""
        return next(kernel for kernel in self.kernels if kernel.name == name)


def toolchain() -> str:
    """The compiler in words, such as ``NVRTC 13.0``.

    Raises:
        NvrtcMissingError: there is none here.
    """
    major, minor = nvrtc.find_nvrtc().version
    return f"NVRTC {major}.{minor}"


def build_candidate(
    source: str, target: Target, parameters: Mapping[str, Any] | None = None, *, directory: Path | None = None
) -> CudaModule:
    """Every kernel of a candidate's module, with the names of ``TUNE`` as macros.

    Args:
        source: the module; it is read, never run.
        parameters: a point of its tunable space; defaults for the rest.
        directory: a cache of what was built, keyed by source, options, target and compiler. Only for who trusts all that write there.

    Raises:
        CudaBuildError: it does not build.
        NvrtcMissingError: there is no compiler here.
    """
    try:
        found = read_cuda(source, parameters)
    except ValueError as error:
        match = re.fullmatch(r"line (\d+): (.*)", str(error))
        raise CudaBuildError(PREFIX + (match[2] if match else str(error)), int(match[1]) if match else None) from None
    options = [f"-D{name}={value}" for name, value in found.macros.items()]
    return build(found.text, found.kernels, target, options, place=found, directory=directory)


def build(
    text: str, kernels: Sequence[str], target: Target, options: Sequence[str] = (), includes: Sequence[str] = (), *,
    place: CudaSource | None = None, directory: Path | None = None,
) -> CudaModule:  # fmt: skip
    """Compiles a CUDA text.

    Args:
        kernels: names, or name expressions of templates.
        options: for the compiler, such as ``-DBLOCK=256``.
        includes: directories beyond those of CUDA's own headers.
        place: where the text stands in the candidate's module, for the lines of messages.
        directory: see `build_candidate`.

    Raises:
        CudaBuildError: it does not build.
        NvrtcMissingError: there is no compiler here.
    """
    if target.backend != "cuda":
        raise CudaBuildError(f"{PREFIX}it is built for NVIDIA's GPUs only, not for {target.name}")
    compiler = nvrtc.find_nvrtc()
    cache = CudaCache(directory) if directory is not None else None
    key = CudaCache.key(text, kernels, options, includes, target.name, toolchain())
    entry = cache.read(key) if cache is not None else None
    if entry is None:
        entry = _compile(compiler, text, kernels, target, options, includes, place)
        if cache is not None:
            cache.write(key, entry)
    texts = ptx.entries(entry.ptx)
    described = tuple(_describe(name, entry, texts) for name in kernels)
    return CudaModule(described, entry.cubin, entry.ptx, _mapped(entry.log, place), toolchain())


def _compile(
    compiler: nvrtc.Nvrtc, text: str, kernels: Sequence[str], target: Target, options: Sequence[str], includes: Sequence[str],
    place: CudaSource | None,
) -> Entry:  # fmt: skip
    assert isinstance(target.arch, int)
    try:
        made = compiler.compile(
            text, kernels, target.arch, ["--ptxas-options=-v", *options], [*nvrtc.include_directories(), *includes]
        )  # fmt: skip
    except nvrtc.NvrtcError as error:
        message = first_error(error.log)
        line = message.line if place is None or message.line is None else place.module_line(message.line)
        raise CudaBuildError(f"{PREFIX}{message}", line, _mapped(error.log, place)) from None
    return Entry(made.cubin, made.ptx, made.log, made.names)


def _describe(name: str, entry: Entry, texts: Mapping[str, str]) -> CudaKernel:
    symbol = entry.names[name]
    usage = _usage(entry.log).get(symbol, {})
    registers, stack = read_usage(entry.cubin, symbol)
    text = texts.get(symbol, "")
    return CudaKernel(
        name=name, symbol=symbol, registers=usage.get("registers", registers), spill_bytes=usage.get("spills", 0), stack_bytes=stack,
        shared_bytes=usage.get("shared", 0), parameters=read_parameters(entry.cubin, symbol), vectors=ptx.vectors(text),
        products=ptx.products(text), most_threads=ptx.most_threads(text),
    )  # fmt: skip


def _usage(log: str) -> dict[str, dict[str, int]]:
    """What the assembler said of each kernel, by its mangled name."""
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in log.splitlines():
        if match := _FUNCTION.search(line):
            current = found.setdefault(match[1], {})
        elif match := _SPILLS.search(line):
            current["spills"] = int(match[2]) + int(match[3])
        elif match := _USED.search(line):
            current["registers"] = int(match[1])
            static = _STATIC.search(line)
            current["shared"] = int(static[1]) if static else 0
    return found


def _mapped(log: str, place: CudaSource | None) -> str:
    """Warnings and errors; what the assembler says of resources is in the record."""
    told = "\n".join(line for line in log.splitlines() if not (line.startswith("ptxas info") or _SPILLS.search(line)))
    return mapped_log(told, place.module_line if place is not None else lambda line: line)
