"""CUDA C++ in a worker with a GPU: where extensions are built, and what their compilers say as data.

There PyTorch compiles: by NVRTC at the first launch, or by nvcc when the module runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from workbench.build.cuda_errors import first_error, mapped_log
from workbench.build.cuda_source import read_cuda

_NVRTC = "Kernel compilation failed"
_EXTENSION = "Error building extension"
_QUOTED = re.compile(r"error: [^\n]*\n(?P<line>[^\n]+)\n\s*\^")


def prepare(device: str) -> None:
    """Extensions are built for this worker's GPU alone, and in its own directory (see `sandbox`), which goes with it."""
    if device == "cpu" or "TORCH_CUDA_ARCH_LIST" in os.environ:
        return
    import torch

    if torch.cuda.is_available() and torch.version.cuda:
        major, minor = torch.cuda.get_device_capability()
        # 9.0 knows no wgmma and TMA, which 9.0a does; PyTorch's run-time compiler is told plain sm_90, and so are extensions.
        os.environ["TORCH_CUDA_ARCH_LIST"] = f"{major}.{minor}"
        os.environ.setdefault("MAX_JOBS", str(max(1, min(8, (os.cpu_count() or 2) // 2))))


def explain(error: BaseException, path: Path) -> dict[str, Any] | None:
    """What a compiler said, in the form of `Driver.describe`; None where the error is another one.

    Args:
        path: the candidate's file.
    """
    text = str(error)
    if _NVRTC not in text and _EXTENSION not in text:
        return None
    try:
        source = path.read_text()
    except OSError:
        source = ""
    log = text.split("\n", 1)[1] if "\n" in text else text
    found = first_error(log)
    line = None
    place = None
    if _NVRTC in text:
        with contextlib.suppress(ValueError):
            place = read_cuda(source)
    if place is not None:
        line = place.module_line(found.line) if found.line is not None else None
    else:
        line = _line_of(log, source)
    lines = source.splitlines()
    told = mapped_log(log, place.module_line if place is not None else lambda number: number)
    sys.stdout.write(f"{told}\n")  # the judge keeps the end of it beside the verdict
    return {
        "type": "CUDA C++", "message": str(found), "line": line,
        "text": lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else "", "kinds": ["NVRTCError"],
        "trace": told,
    }  # fmt: skip


def _line_of(log: str, source: str) -> int | None:
    """The module's line that the compiler quotes, if only one line is like it."""
    match = _QUOTED.search(log)
    if match is None:
        return None
    quoted = match["line"].strip()
    found = [number for number, line in enumerate(source.splitlines(), 1) if line.strip() == quoted]
    return found[0] if len(found) == 1 else None
