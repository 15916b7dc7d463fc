"""KernelBench's own evaluation of one candidate, from a checkout of it, in a process of its own: for comparison with ours."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_SECONDS = 300.0
_SCRIPT = """
import importlib.util, inspect, json, sys, time, types
checkout, reference, candidate, backend = sys.argv[1:]
sys.path[:0] = [checkout, checkout + "/src"]
import torch
# Its package imports clients of language models, which evaluating never calls: where they are not installed, anything will do.
def anything(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *given, **named: None
for name in ("dotenv", "tqdm", "openai", "litellm", "requests"):
    if importlib.util.find_spec(name) is None:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__getattr__ = anything
try:
    from src.eval import eval_kernel_against_ref as evaluate
except ImportError:
    from kernelbench.eval import eval_kernel_against_ref as evaluate
known = inspect.signature(evaluate).parameters
options = {"measure_performance": True, "num_correct_trials": 5, "num_perf_trials": 100, "backend": backend, "precision": torch.bfloat16}
begun = time.perf_counter()
found = evaluate(open(reference).read(), open(candidate).read(), **{name: value for name, value in options.items() if name in known})
print("\\nFOUND " + json.dumps({
    "compiled": bool(found.compiled), "correct": bool(found.correctness), "us": float(found.runtime) * 1e3,
    "seconds": time.perf_counter() - begun,
}))
"""


def evaluate(checkout: Path, kind: str, reference: str, candidate: str, backend: str) -> dict[str, Any]:
    """What KernelBench says: compiled, correct, its time in µs, and the seconds it took without the start of its process.

    Args:
        checkout: where its ``src/eval.py`` lies.
        backend: ``triton`` or ``cuda``, as KernelBench names them.
    """
    with tempfile.TemporaryDirectory() as directory:
        texts = Path(directory, "reference.py"), Path(directory, "candidate.py")
        for path, text in zip(texts, (reference, candidate), strict=True):
            path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-c", _SCRIPT, str(checkout.resolve()), *map(str, texts), backend]
        begun = time.perf_counter()
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return {"kind": kind, "error": f"no answer in {_SECONDS:.0f} s"}
    for line in ran.stdout.splitlines():
        if line.startswith("FOUND "):
            return {"kind": kind, **json.loads(line.removeprefix("FOUND ")), "process_seconds": time.perf_counter() - begun}
    said = (ran.stderr.strip() or ran.stdout.strip() or f"exit status {ran.returncode}").splitlines()[-1]
    return {"kind": kind, "error": said[:200]}
