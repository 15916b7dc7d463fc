"""Judges CUDA candidates on this machine's GPU and prints what came of them: ``python tests/gpu/judge_cuda.py [right …]``.

Needs torch and triton alone, not pytest, so that it runs on a bare GPU node. Exit status 1 if a verdict is not the one deserved.
"""

from __future__ import annotations

import sys
import time

from cuda_cases import CASES, fault, judged


def main() -> int:
    """Runs the named cases, or all; ``full:NAME`` in full mode."""
    from workbench.doctor import _nvrtc

    print(_nvrtc())
    failed = 0
    for word in sys.argv[1:] or CASES:
        mode, _, name = word.rpartition(":")
        begun = time.perf_counter()
        found = judged(name, mode or "quick")
        wrong = fault(name, found)
        failed += bool(wrong)
        print(f"{'BAD' if wrong else 'ok '} {word} {time.perf_counter() - begun:.1f} s: {found.verdict.value}: {found.reason} {wrong}")
        print(f"    {dict(found.stage_ms)} {found.timing} {found.speedup} own {found.own_kernel_share} {found.labels}")
        print(f"    {found.resources} {found.log[-600:]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
