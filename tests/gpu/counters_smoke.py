"""Reads hardware counters of kernels whose traffic is known: ``python tests/gpu/counters_smoke.py [triton cuda two]``.

Needs torch, triton and an ncu, not pytest, so that it runs on a bare GPU node. Exit status 1 if a figure is not the one deserved.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from workbench.candidate import Candidate  # noqa: E402
from workbench.judge.inspection.inspector import Inspector  # noqa: E402
from workbench.target import detect_target  # noqa: E402
from workbench.task import InputSpec, OutputSpec, Task, Values, Work  # noqa: E402

ELEMENTS = 128 << 20
"""Of float32: 512 MiB are read and as many written, ten times what an H200's L2 could keep of the writes."""

BYTES = 4 * ELEMENTS
NEAR = 0.2
REFERENCE = "def double(x):\n    return x * 2\n"
TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def double(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""
TWO = TRITON.replace(
    "    return y\n",
    "    z = torch.empty_like(x)\n    copy_kernel[(triton.cdiv(x.numel(), 1024),)](y, z, x.numel(), BLOCK=1024)\n    return z\n",
)
CUDA = '''import torch

KERNELS = ("double_up",)
CUDA = r"""
extern "C" __global__ void double_up(const float* x, float* y, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
"""
made = {}


def double(x):
    y = torch.empty_like(x)
    if not made:
        made["kernel"] = torch.cuda._compile_kernel(CUDA, "double_up")
    made["kernel"]((-(-x.numel() // 256), 1, 1), (256, 1, 1), [x, y, x.numel()])
    return y
'''
CASES = {"triton": (TRITON, "triton", "copy_kernel", 1), "cuda": (CUDA, "cuda", "double_up", 1), "two": (TWO, "triton", "copy_kernel", 2)}


def counted(name: str) -> dict[str, Any]:
    """The report of a case, or its error."""
    source, backend, _, _ = CASES[name]
    inputs = (InputSpec("x", (ELEMENTS,), "float32", (1,), Values("normal", {"mean": 0.0, "std": 1.0})),)
    task = Task(
        "double", REFERENCE, "double", inputs, (OutputSpec((ELEMENTS,), "float32"),), Work(2 * BYTES, ELEMENTS), target=detect_target()
    )
    inspector = Inspector(task)
    try:
        return inspector.inspect(Candidate("k1", backend, source, "double"), {}, "trace", {"counters": True})
    finally:
        inspector.close()


def fault(name: str, report: dict[str, Any]) -> str:
    """What is wrong with it; empty if nothing is."""
    if "error" in report:
        return str(report["error"])
    _, _, kernel, launches = CASES[name]
    figures = {one["name"]: one["value"] for one in report["metrics"] if one["kernel"] == kernel}
    if figures.get("launches") != launches:
        return f"{kernel} has {figures.get('launches')} launches, not {launches}: {report['metrics']}"
    for traffic in ("DRAM read", "DRAM written"):
        if abs(figures.get(traffic, 0.0) / (launches * BYTES) - 1) > NEAR:
            return f"{traffic}: {figures.get(traffic)} B, where {launches * BYTES} B move"
    shares = {name: figures.get(name, -1.0) for name in ("DRAM throughput", "occupancy", "SM throughput", "L2 hits")}
    if not all(0.0 <= share <= 110.0 for share in shares.values()) or shares["DRAM throughput"] < 30.0:
        return f"no shares of a copy: {shares}"
    sectors = figures.get("load sectors a request", 0.0)
    if not 3.5 <= sectors <= 16.5 or figures.get("time under ncu", 0.0) <= 0.0 or figures.get("registers", 0.0) < 8:
        return f"no figures of a copy: {figures}"
    return ""


def main() -> int:
    """Runs the named cases, or all."""
    failed = 0
    for name in sys.argv[1:] or CASES:
        begun = time.perf_counter()
        report = counted(name)
        wrong = fault(name, report)
        failed += bool(wrong)
        print(f"{'BAD' if wrong else 'ok '} {name} {time.perf_counter() - begun:.1f} s {wrong}")
        for one in report.get("metrics", ()):
            print(f"    {one['kernel'] or 'whole call':24} {one['name']:24} {one['value']:.6g} {one['unit']}")
        print(f"    {report.get('metrics_note', '')}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
