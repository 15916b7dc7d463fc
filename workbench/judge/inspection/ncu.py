"""NVIDIA Nsight Compute's command line: where it is, how it is asked for a few counters, and what its complaints mean for people.

It reads a kernel's counters by running the launch again and again, each time with other counters. The card's clocks are never touched:
``--clock-control none`` is part of every command.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHES = 32
"""Launches of one call whose counters are read at most."""

MEND_PERMISSION = "load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0"
_PARAMETERS = Path("/proc/driver/nvidia/params")
_APART = Path("/opt/nvidia/nsight-compute")
"""Where NVIDIA's packages put it; the toolkit's ``bin/ncu`` is then a script that goes there."""

_COMPLAINTS = (
    (r"ERR_NVGPUCTRPERM", f"the driver keeps hardware counters for root, which no candidate is (ERR_NVGPUCTRPERM): {MEND_PERMISSION}"),
    (
        r"not compatible with Nsight Compute",
        "ncu and the driver don't go together: install the Nsight Compute that belongs to the driver's CUDA version",
    ),
    (
        r"LibraryNotLoaded|Failed to initialize the profiler",
        "the driver's profiling library can't be loaded: install the Nsight Compute of the driver's CUDA version; a container without it, "
        "such as gVisor's, has no counters",
    ),
    (r"failed to connect to the CUDA driver", "ncu finds no driver, perhaps a stub of libcuda: take stubs off LD_LIBRARY_PATH"),
    (r"driver resource was unavailable", "another tool reads the card's counters, as DCGM does: pause it (dcgmi profile --pause)"),
    (r"InterprocessLockFailed|nsight-compute-lock", "ncu can't take its lock file: another one runs; look again when that has ended"),
    (r"unrecogni[sz]ed option|Failed to parse options", "this ncu does not know an option that is needed: install a newer Nsight Compute"),
)  # fmt: skip
_ENDED = re.compile(r"The application returned an error code(?: \((\d+)\))?")
_NONE = re.compile(r"No kernels were profiled")
_ERROR = re.compile(r"^==ERROR==[ \t]*(\S[^\n]*)$", re.MULTILINE)
_UNKNOWN = re.compile(r"^==(?:ERROR|WARNING)==[^\n]*Failed to (?:find|access)[^\n]*metrics?\b[ :]*(?P<which>[^\n]*)$", re.MULTILINE)


@dataclass(frozen=True)
class Tool:
    """An installed ncu. `places` are what it is read from, its own file among them."""

    binary: str
    places: tuple[Path, ...]


def find() -> Tool | None:
    """The tool: on the PATH, in a CUDA toolkit, or where NVIDIA's packages put it; the newest of several there."""
    for path in _candidates():
        if path.is_file() and os.access(path, os.X_OK):
            real = path.resolve()
            return Tool(str(real), (*_installations(real), real))
    return None


def _candidates() -> Iterator[Path]:
    if found := shutil.which("ncu"):
        yield Path(found)
    yield from (Path(home, "bin", "ncu") for home in (os.environ.get("CUDA_HOME") or "/usr/local/cuda", "/usr/local/cuda"))
    for pattern in (f"{_APART}/*/ncu", "/usr/local/NVIDIA-Nsight-Compute*/ncu"):
        base, _, rest = pattern[1:].partition("/")
        yield from sorted(Path("/", base).glob(rest), key=lambda path: [int(part) for part in re.findall(r"\d+", str(path))], reverse=True)


def _installations(binary: Path) -> tuple[Path, ...]:
    """Folders with the tool's libraries: its own, or those that a toolkit's script may go to. Never a folder that holds anything else."""
    if (binary.parent / "target").is_dir():
        return (binary.parent,)
    beside = [binary.parents[1], _APART] if binary.parent.name == "bin" else [_APART]
    found = [place.resolve() for base in beside for place in sorted(base.glob("*")) if (place / "target").is_dir()]
    return tuple(dict.fromkeys(found))


def why_not() -> str:
    """Why no counters can be read here, with the mend; empty if nothing is known to be in the way."""
    if find() is None:
        return "no hardware counters: ncu is not here; install NVIDIA Nsight Compute, which comes with the CUDA toolkit"
    with contextlib.suppress(OSError):
        if re.search(r"RmProfilingAdminOnly:\s*1", _PARAMETERS.read_text()):
            return f"no hardware counters: the driver keeps them for root, which no candidate is; {MEND_PERMISSION}"
    return ""


def command(binary: str, metrics: Sequence[str], report: str) -> tuple[str, ...]:
    """What to put before a process's command, so that its launches between cudaProfilerStart and Stop are counted.

    Args:
        metrics: ncu's names.
        report: the file for all that ncu itself says, as ncu sees it; the process's own output goes where it went.
    """
    return (
        binary, "--target-processes", "application-only", "--profile-from-start", "off", "--launch-count", str(LAUNCHES),
        "--replay-mode", "kernel", "--clock-control", "none", "--cache-control", "all", "--metrics", ",".join(metrics),
        "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "function", "--log-file", report,
    )  # fmt: skip


def complaint(said: str) -> str:
    """What went wrong, in one line, with the mend where it is known; empty if ncu complains of nothing. Takes any text."""
    for pattern, line in _COMPLAINTS:
        if re.search(pattern, said):
            return line
    errors = [" ".join(found.split()) for found in _ERROR.findall(said)]
    own = [line for line in errors if not _ENDED.search(line) and not _NONE.search(line)]
    if own:
        return f"ncu says: {own[0][:200]}"
    if ended := _ENDED.search(said):
        return f"the variant's process failed under ncu (error code {ended[1] or '?'}): see whether it runs without it"
    return "one call of the variant launches no kernel that ncu sees" if _NONE.search(said) else ""


def unknown(said: str, metrics: Sequence[str]) -> tuple[str, ...]:
    """Those of the metrics that ncu can't find on this card. It names them in full, or as a pattern of the part before the first point."""
    listed = " ".join(found["which"] for found in _UNKNOWN.finditer(said)).replace("\\", "")
    words = set(re.findall(r"\w+__\w+(?:\.\w+)*", listed))
    return tuple(name for name in metrics if name in words or name.partition(".")[0] in words)
