"""NVIDIA's run-time compiler for CUDA C++, called directly: it needs neither a GPU nor a driver.

The library is the one that PyTorch brings, the one of the ``nvidia-cuda-nvrtc`` wheel, or the toolkit's, whichever is found first. It is
called by `ctypes`, as PyTorch does it, so that a machine that has PyTorch alone can build too.

The compiler reads hostile text, so call it in a worker, never in the judge's or the notebook's process.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FILE = "candidate.cu"
"""How the compiler calls the source in its messages."""

TORCH_OPTIONS = (
    "-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
)  # fmt: skip
"""What PyTorch's kernel compiler always adds. Here too, since code that builds must build there."""

MEND = "pip install 'kernel-workbench[cuda]'"


class NvrtcMissingError(Exception):
    """There is no NVRTC on this machine. One line, with the mend."""


class NvrtcError(Exception):
    """The source does not compile. `log` is what the compiler said."""

    def __init__(self, log: str) -> None:
        super().__init__(log.splitlines()[0] if log.strip() else "the compiler gave no reason")
        self.log = log


@dataclass(frozen=True)
class Compiled:
    """What the compiler made: the binary, its PTX, what it said, and the mangled name of each kernel that was asked for."""

    cubin: bytes
    ptx: str
    log: str
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Nvrtc:
    """One NVRTC library. `version` is CUDA's, such as (13, 0)."""

    path: str
    version: tuple[int, int]
    library: ctypes.CDLL

    def compile(self, text: str, names: Sequence[str], arch: int, options: Sequence[str] = (), includes: Sequence[str] = ()) -> Compiled:
        """Compiles `text` for ``sm_<arch>``.

        Args:
            names: kernels, or name expressions such as ``f<4>``.
            options: as for nvcc, behind those that PyTorch adds.
            includes: directories of headers.

        Raises:
            NvrtcError: it does not compile.
        """
        words = [f"--gpu-architecture=sm_{arch}", *(f"-I{place}" for place in includes), *options, *TORCH_OPTIONS]
        program = ctypes.c_void_p()
        self._check(self.library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), FILE.encode(), 0, None, None))
        try:
            for name in names:
                self._check(self.library.nvrtcAddNameExpression(program, name.encode()))
            given = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
            status = self.library.nvrtcCompileProgram(program, len(words), given)
            # Of several parts (the compiler's and the assembler's), each ends in a null byte.
            log = self._bytes(program, "ProgramLog").decode(errors="replace").replace("\0", "\n").rstrip("\n")
            if status != 0:
                raise NvrtcError(log or self._words(status))
            mangled = {}
            for name in names:
                found = ctypes.c_char_p()
                self._check(self.library.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(found)))
                mangled[name] = (found.value or b"").decode()
            ptx = self._bytes(program, "PTX").decode(errors="replace").rstrip("\0")
            return Compiled(self._bytes(program, "CUBIN"), ptx, log, mangled)
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        self._check(getattr(self.library, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw[: size.value]

    def _words(self, status: int) -> str:
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
        said = self.library.nvrtcGetErrorString(status)
        return said.decode() if said else f"NVRTC status {status}"

    def _check(self, status: int) -> None:
        if status != 0:
            raise NvrtcError(self._words(status))


@functools.cache
def find_nvrtc() -> Nvrtc:
    """The NVRTC of this machine.

    Raises:
        NvrtcMissingError: there is none.
    """
    for path in _libraries():
        try:
            library = ctypes.CDLL(path)
            major, minor = ctypes.c_int(), ctypes.c_int()
            if library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0:
                return Nvrtc(path, (major.value, minor.value), library)
        except (OSError, AttributeError):
            continue
    raise NvrtcMissingError(f"no NVRTC here, so CUDA C++ can't be built: {MEND}")


@functools.cache
def include_directories() -> tuple[str, ...]:
    """Where CUDA's headers lie: those that belong to the library that is used, then the toolkit's, then Triton's. Without doubles."""
    places: list[Path] = []
    for root in _roots():
        for below in ("include", "include/cccl"):
            place = root / below
            if place.is_dir() and place not in places:
                places.append(place)
        if (root / "include" / "mma.h").is_file() and (root / "include" / "crt" / "mma.h").is_file():
            break  # a complete set: headers of two versions don't mix
    return tuple(map(str, places))


def driver_version() -> tuple[int, int] | None:
    """The newest CUDA that the driver takes; None without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        number = ctypes.c_int()
        if driver.cuDriverGetVersion(ctypes.byref(number)) != 0 or number.value <= 0:
            return None
    except (OSError, AttributeError):
        return None
    return number.value // 1000, number.value % 1000 // 10


def header_version() -> tuple[int, int] | None:
    """CUDA's version of the headers that are used; None where there are none."""
    for place in include_directories():
        header = Path(place) / "cuda.h"
        if header.is_file() and (match := re.search(r"#define\s+CUDA_VERSION\s+(\d+)", header.read_text(errors="replace"))):
            return int(match[1]) // 1000, int(match[1]) % 1000 // 10
    return None


def mismatch(version: tuple[int, int]) -> tuple[str, str]:
    """What does not fit a compiler of that version, and the mend: driver or headers. Empty where all fits.

    A binary of one major version runs with every driver for it; an older driver takes none.
    """
    driver, headers = driver_version(), header_version()
    own = f"{version[0]}.{version[1]}"
    if driver is not None and driver[0] < version[0]:
        fault = f"the driver is for CUDA {driver[0]}.{driver[1]}, this compiler for {own}: kernels would not load"
        return fault, f"update the driver to one for CUDA {version[0]}, or install PyTorch for CUDA {driver[0]}"
    if headers is None:
        return "CUDA's headers (cuda_bf16.h) are not here", MEND
    if headers[0] != version[0]:
        return f"its headers are of CUDA {headers[0]}.{headers[1]}", f"set CUDA_HOME to a toolkit of CUDA {version[0]}, or {MEND}"
    return "", ""


def has_nvcc() -> bool:
    """Whether C++ extensions can be built here: nvcc and ninja."""
    toolkit = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    nvcc = shutil.which("nvcc") or Path(toolkit, "bin", "nvcc").is_file()
    return bool(nvcc and (shutil.which("ninja") or importlib.util.find_spec("ninja")))


def _libraries() -> Iterator[str]:
    import torch

    version = torch.version.cuda or ""
    majors = [version.split(".")[0]] if version else ["13", "12"]
    if version:  # PyTorch has put its own within reach of the loader
        yield f"libnvrtc.so.{majors[0]}"
    for root in _roots():
        for major in majors:
            for below in ("lib", "lib64"):
                if (path := root / below / f"libnvrtc.so.{major}").is_file():
                    yield str(path)
    for major in majors:
        yield f"libnvrtc.so.{major}"


def _roots() -> Iterator[Path]:
    """Places like a toolkit's root, most trusted first."""
    import torch

    toolkit = Path(os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda")
    if torch.version.cuda:  # PyTorch's own compiler takes the toolkit's headers, so what is built here shall too
        yield toolkit
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        for name in ("cu13", "cuda_nvrtc", "cuda_runtime"):
            if (root := Path(place) / name).is_dir():
                yield root
    yield toolkit
    spec = importlib.util.find_spec("triton")
    if spec is not None and spec.origin:
        yield Path(spec.origin).parent / "backends" / "nvidia"
