"""What this machine can do, one line each, with the mend where something is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["ok", "limited", "missing"]


@dataclass(frozen=True)
class Check:
    """One thing looked at. `mend` is what to do about it; empty where nothing is wrong."""

    name: str
    state: State
    found: str
    mend: str = ""


def examine() -> Iterator[Check]:
    """Every check in turn, yielded as soon as it is made. A check that breaks is itself a finding, never an exception."""
    for check in (_python, _triton, _gpu, _nvrtc, _sandbox, _profiler, _front_end, _store):
        try:
            yield check()
        except Exception as error:
            yield Check(check.__name__.strip("_"), "missing", f"could not be examined: {type(error).__name__}: {error}")


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _python() -> Check:
    here = f"Python {platform.python_version()}, torch {_version('torch') or 'absent'}, on {platform.system()} {platform.machine()}"
    if not _version("torch"):
        return Check("python", "missing", here, "pip install torch")
    return Check("python", "ok", here)


def _triton() -> Check:
    if sys.platform != "linux":
        mend = "judge on a Linux machine; notebook, board and stored runs work here"
        return Check("triton", "missing", "Triton exists on Linux only", mend)
    if not _version("triton"):
        return Check("triton", "missing", "Triton is not installed", "pip install triton")
    from workbench.target import TARGETS

    return Check("triton", "ok", f"Triton {_version('triton')}, compiles for {', '.join(TARGETS)}")


def _gpu() -> Check:
    import torch

    if not torch.cuda.is_available():
        built = "torch is built without CUDA" if torch.version.cuda is None and torch.version.hip is None else "no GPU answers"
        return Check(
            "gpu",
            "limited",
            f"{built}: kernels are checked in Triton's interpreter, and times are modelled",
            "run on a machine with a GPU, or give the run a --target to model for",
        )
    properties = torch.cuda.get_device_properties(0)
    found = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda or torch.version.hip}"
    return Check("gpu", "ok", found)


def _nvrtc() -> Check:
    from workbench.build import nvrtc

    try:
        compiler = nvrtc.find_nvrtc()
    except nvrtc.NvrtcMissingError:
        return Check("cuda c++", "limited", "no NVRTC here: CUDA candidates can't be built", nvrtc.MEND)
    fault, mend = nvrtc.mismatch(compiler.version)
    major, minor = compiler.version
    found = f"NVRTC {major}.{minor}" + (", nvcc for C++ extensions" if nvrtc.has_nvcc() else "")
    return Check("cuda c++", "limited" if fault else "ok", f"{found}: {fault}" if fault else found, mend)


def _sandbox() -> Check:
    from workbench.judge.isolation.sandbox import detect

    tier = detect()
    return Check("sandbox", "limited" if tier.mend else "ok", tier.name, tier.mend)


def _profiler() -> Check:
    params = Path("/proc/driver/nvidia/params")
    if not params.exists():
        return Check("profiler", "limited", "no NVIDIA driver: no hardware counters")
    locked = "RmProfilingAdminOnly: 1" in params.read_text() and os.geteuid() != 0
    if locked:
        return Check("profiler", "limited", "hardware counters are for root only here", "ask for NVreg_RestrictProfilingToAdminUsers=0")
    return Check("profiler", "ok", "hardware counters are readable")


def _front_end() -> Check:
    versions = {name: _version(name) for name in ("jupyterlab", "notebook", "ipykernel", "anywidget")}
    if not versions["anywidget"] or not versions["ipykernel"]:
        return Check("notebook", "missing", "a bare node: command line only", "pip install kernel-workbench")
    board = Path(__file__).parent / "board" / "static" / "board.js"
    found = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    if not board.exists():
        return Check("notebook", "limited", f"{found}; the board's module is not built", "python hatch_build.py, from the source tree")
    if versions["jupyterlab"] and not _has_extension():
        mend = "python hatch_build.py --install, from the source tree; or install a wheel"
        return Check("notebook", "limited", f"{found}; without the JupyterLab extension, which adds comfort", mend)
    return Check("notebook", "ok", found)


def _has_extension() -> bool:
    """Whether a JupyterLab that this Python starts finds the extension."""
    from jupyter_core.paths import jupyter_path

    return any((Path(place) / "kernel-workbench" / "package.json").is_file() for place in jupyter_path("labextensions"))


def _store() -> Check:
    if not _version("sqlalchemy"):
        return Check("store", "limited", "no SQLAlchemy: runs are not kept", "pip install sqlalchemy")
    from workbench.store import default_location

    return Check("store", "ok", f"runs are kept in {default_location()}")


def report(write: Callable[[str], object]) -> bool:
    """Writes one line a check; True where nothing is missing."""
    sound = True
    for check in examine():
        mark = {"ok": "✓", "limited": "–", "missing": "✗"}[check.state]
        write(f"{mark} {check.name:<10} {check.found}" + (f"  →  {check.mend}" if check.mend else ""))
        sound = sound and check.state != "missing"
    return sound
