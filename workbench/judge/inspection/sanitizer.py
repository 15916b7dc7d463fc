"""compute-sanitizer around a candidate, before it is accepted: reads and writes outside of memory, uninitialised memory, races.

The tool runs a fresh sandboxed worker, with PyTorch's caching of memory off, so that each tensor ends where it ends, and plain calls on
small inputs. A finding in a kernel of the candidate's own refuses it, with the tool's words; one in a library's kernel is a label. Where
the tool is not found or does not run, that is a label too.
"""

from __future__ import annotations

import os
import re
import shutil
import site
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from workbench.candidate import Candidate
from workbench.judge.context import Context
from workbench.judge.correctness.inputsets import InputSet
from workbench.judge.inspection.sanitized import Sanitized
from workbench.judge.isolation.process import Worker, WorkerLost
from workbench.judge.timing.profile import own_names
from workbench.records import encode

TOOLS = ("memcheck", "initcheck", "racecheck")
SECONDS = 90.0
"""For each tool, the start of a worker included: a watched one is many times slower."""

_MOST_BYTES = 64 << 20
_FOUND = re.compile(r"^=+ (?P<what>(?:Invalid|Uninitialized|Error: Race|Warning: Race|Error:|Misaligned|Out-of-range)[^\n]*)", re.MULTILINE)
_AT = re.compile(r"^=+\s+at (?P<kernel>.+?)(?:\+0x[0-9a-f]+|\(.*)?(?: in .*)?$", re.MULTILINE)
_INLINE = re.compile(r"\bat (?P<kernel>\w+)\+0x")
_SUMMARY = re.compile(r"^=+ (?:ERROR SUMMARY|RACECHECK SUMMARY): (?P<count>\d+)", re.MULTILINE)


def find() -> str | None:
    """The tool: on the PATH, in a CUDA toolkit, or in NVIDIA's wheel ``nvidia-cuda-sanitizer-api``."""
    if found := shutil.which("compute-sanitizer"):
        return found
    places = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin"), Path("/usr/local/cuda/bin")]
    for root in (*site.getsitepackages(), *sys.path):
        places += [place.parent for place in Path(root, "nvidia").glob("*/**/compute-sanitizer") if place.is_file()]
    for place in places:
        path = place / "compute-sanitizer"
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None


def sanitize(context: Context, candidate: Candidate, parameters: dict[str, object]) -> Sanitized:
    """Runs every tool, each in a process of its own."""
    if context.device != "cuda":
        return Sanitized(notes=("not sanitized: it takes a GPU",))
    binary = find()
    if binary is None:
        return Sanitized(notes=("not sanitized: compute-sanitizer is not here (CUDA toolkit, or pip install nvidia-cuda-sanitizer-api)",))
    own, ran, notes = own_names(candidate.source), [], []
    for tool in TOOLS:
        try:
            said = _watched(context, candidate, parameters, binary, tool)
        except (WorkerLost, OSError, RuntimeError) as error:
            notes.append(f"not sanitized by {tool}: {error}"[:200])
            continue
        ran.append(tool)
        finding, kernel = read(said)
        if finding and kernel in own:
            return Sanitized(tuple(ran), f"{tool}: {finding} in {kernel}", tuple(notes))
        if finding:
            notes.append(f"{tool}: {finding} in {kernel or 'no kernel of its own'}"[:200])
    return Sanitized(tuple(ran), "", tuple(notes))


def read(said: str) -> tuple[str, str]:
    """The first finding in a tool's report, and the kernel that it is in; both empty if there is none."""
    found = _FOUND.search(said)
    if found is None:
        return "", ""
    at = _INLINE.search(found["what"]) or _AT.search(said, found.end())
    kernel = re.sub(r"^void\s+|[(<].*$", "", at["kernel"]).strip() if at else ""
    return " ".join(found["what"].split())[:160], kernel


def _watched(context: Context, candidate: Candidate, parameters: dict[str, object], binary: str, tool: str) -> str:
    """What a tool said of one process that loaded the candidate and called it on small inputs."""
    deadline = time.monotonic() + SECONDS
    task = context.task

    def left() -> float:
        return max(1.0, deadline - time.monotonic())

    worker = Worker(
        "device", context.tier, target=task.target, shared_bytes=1 << 20, memory_cap=32 << 30, home=context.pool.home,
        wrapper=(binary, "--tool", tool, "--print-limit", "5", "--target-processes", "application-only"),
        variables={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    )  # fmt: skip
    try:
        worker.start()
        worker.wait_ready(left())
        message = {
            "do": "load", "source": candidate.source, "entry": candidate.entry, "parameters": encode(parameters), "format": task.format,
            "init_args": encode(task.init_args), "device": context.place, "seed": 1,
        }  # fmt: skip
        answers = [worker.ask(message, left())]
        answers += [worker.ask({"do": "run", "inputs": encode(kind.specs), "seed": 7}, left()) for kind in _small(context.input_sets())]
        if all("error" in answer for answer in answers[1:]) or "error" in answers[0]:
            raise RuntimeError("it does not run under the tool")
        said = worker.finish(left())
    finally:
        worker.close()
    if _SUMMARY.search(said) is None:
        raise RuntimeError("the tool gave no summary")
    return said


def _small(sets: Sequence[InputSet]) -> list[InputSet]:
    """Those of few bytes, the smallest two at least."""
    ordered = sorted(sets, key=lambda kind: sum(spec.nbytes for spec in kind.specs))
    return [kind for place, kind in enumerate(ordered) if place < 2 or sum(spec.nbytes for spec in kind.specs) <= _MOST_BYTES]
