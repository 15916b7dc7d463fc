"""Judges a handful of candidates on this machine's GPU and prints what came of them: ``python tests/gpu/judge_smoke.py [softmax …]``.

Needs torch and triton alone, not pytest, so that it runs on a bare GPU node. Exit status 1 if a verdict is not the one deserved.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "unit" / "judge")]

from triton_candidates import REFERENCES, RIGHT, WRONG  # noqa: E402

from workbench.candidate import Candidate, Mode, Verdict  # noqa: E402
from workbench.judge.judge import Judge  # noqa: E402
from workbench.target import detect_target  # noqa: E402
from workbench.task import InputSpec, OutputSpec, Task, Values, Work  # noqa: E402


def tensor(name: str, *shape: int, dtype: str = "bfloat16", values: Values | None = None) -> InputSpec:
    """A contiguous input of normal values."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return InputSpec(name, shape, dtype, tuple(reversed(strides)), values or Values("normal", {"mean": 0.0, "std": 1.0}))


SHAPES = {
    "softmax": ((tensor("x", 4096, 8192),), OutputSpec((4096, 8192), "bfloat16"), 0),
    "rmsnorm": ((tensor("x", 4096, 8192), tensor("w", 8192)), OutputSpec((4096, 8192), "bfloat16"), 0),
    "gated": ((tensor("x", 4096, 8192), tensor("y", 4096, 8192)), OutputSpec((4096, 8192), "bfloat16"), 0),
    "linear": ((tensor("x", 2048, 2048), tensor("w", 2048, 2048), tensor("b", 2048)), OutputSpec((2048, 2048), "bfloat16"), 2 * 2048**3),
    "loss": (
        (tensor("x", 4096, 32000), tensor("t", 4096, dtype="int64", values=Values("integers", {"lo": 0, "hi": 32000}))),
        OutputSpec((), "bfloat16"),
        0,
    ),
}


def main() -> int:
    """Runs the named ops, or all."""
    failed = 0
    for name in sys.argv[1:] or SHAPES:
        inputs, output, products = SHAPES[name]
        work = Work(sum(spec.nbytes for spec in inputs) + output.nbytes, products, products, "bfloat16" if products else "")
        judge = Judge(Task(name, REFERENCES[name], name, inputs, (output,), work, target=detect_target()))
        begun = time.perf_counter()
        prepared = judge.prepare(None)
        print(f"== {name}: prepared in {time.perf_counter() - begun:.1f} s on {prepared.device}, {prepared.environment.sandbox}")
        print(f"   floor {prepared.floor_us:.1f} µs {prepared.notes}")
        for baseline in prepared.baselines:
            print(f"   {baseline.name}: {baseline.timing or baseline.reason}")
        modes: tuple[tuple[str, str, Mode], ...] = (("right", RIGHT[name], "quick"), ("right", RIGHT[name], "full"))
        wrong: list[tuple[str, str, Mode]] = [(what, source, "quick") for what, (op, source) in WRONG.items() if op == name]
        for number, (what, source, mode) in enumerate((*modes, *wrong)):
            begun = time.perf_counter()
            found = judge.evaluate(Candidate(f"k{number}", "triton", source, name), {}, id=f"k{number}.0", mode=mode)
            good = (found.verdict is Verdict.RIGHT) == (what == "right")
            failed += not good
            took = time.perf_counter() - begun
            print(f"{'ok ' if good else 'BAD'} {what} ({mode}) {took:.1f} s: {found.verdict.value}: {found.reason}")
            print(
                f"    {dict(found.stage_ms)} {found.timing} {found.speedup} own {found.own_kernel_share} {found.labels} {found.log[-400:]}"
            )
        judge.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
