"""Times the CUDA kernels of long rows at their points, and Inductor's kernels as candidates beside torch.compile. Needs torch and triton.

    python3 tests/gpu/long_rows.py [SECONDS [TITLE …]]

One line a point: ms, share of the floor (a copy's 4.28 TB/s), and the largest error relative to float64 on two rows. A title's beginning
chooses what is timed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "unit" / "knowledge")]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from expert_lab import trace  # noqa: E402

from workbench.build.tune import load_candidate, read_tune  # noqa: E402
from workbench.judge.workers.generated import Watch, seed  # noqa: E402
from workbench.knowledge import experts  # noqa: E402
from workbench.target import detect_target  # noqa: E402

COPY = 4.28e9
"""Bytes that a copy moves in a millisecond, read plus written."""

Points = Sequence[tuple[str, Mapping[str, Any], Sequence[Mapping[str, Any]]]]
BF16 = torch.bfloat16


def softmax(x):
    return torch.softmax(x, 1)


def log_softmax(x):
    return F.log_softmax(x, 1)


def layernorm(x, w, b):
    return F.layer_norm(x, x.shape[1:], w, b)


def rmsnorm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def square_error(x, y):
    return F.mse_loss(x, y)


def transpose_add(x, y):
    return x.t() + y


def cross_entropy(x, t):
    return F.cross_entropy(x, t)


def product(x, w, b):
    return torch.relu(x @ w + b)


def l1(x):
    return x / x.abs().mean(1, keepdim=True)


def running_sum(x):
    return x.cumsum(1)


STREAM, DEFAULT, ONLINE, APART = {"cache": "stream"}, {"cache": "default"}, {"online": "chunk"}, {"online": "off"}
LANES = [{"LANES": 1024}, {"LANES": 512}]
RINGS = [{}, {"WARPS": 8}, {"WARPS": 2}, {"RESIDENT": 32}, {"WARPS": 8, "RESIDENT": 32}, {"STEPS": 2}]
KERNELS: Sequence[tuple[str, Callable[..., Any], list[tuple[int, ...]], torch.dtype, Points]] = (
    ("layer norm, 16 rows of 16 MiB", layernorm, [(16, 64, 256, 256), (64, 256, 256), (64, 256, 256)], torch.float32, (
        ("cuda_split", DEFAULT, [{}, {"LANES": 256}, {"ROUNDS": 4}, {"ROUNDS": 1}, {"FAST": 0}, {"ITEMS": 8}, {"ITEMS": 2}]),
        ("cuda_split", STREAM, [{}]), ("rows", {}, [{}]),
    )),
    ("softmax, 4096 rows of 1.5 MiB", softmax, [(4096, 393216)], torch.float32, (
        ("cuda_team", ONLINE, [{}, {"EACH": 4}, {"EACH": 64}, {"STEPS": 8}]), ("cuda_team", APART, [{}]),
    )),
    ("l1 norm, rows of 256 KiB that begin anywhere", l1, [(8192, 65535)], torch.float32, (
        ("cuda_team", {}, [{}, {"TEAM": 2, "ROOM": 227}, {"ROOM": 227}, {"STEPS": 32}, {"WARPS": 8}, {"EACH": 4}]),
        ("cuda_rows", {}, [{}, {"LANES": 512}]), ("rows", {}, [{}]),
    )),
    ("square error, 512 MiB", square_error, [(8192, 8192), (8192, 8192)], torch.float32, (
        ("cuda_split", STREAM, [{}, {"ITEMS": 4}, {"LANES": 512}]), ("reduction", {}, [{}]),
    )),
    ("softmax, rows of 16 KiB", softmax, [(4096, 8192)], BF16, (
        ("cuda_ring", ONLINE, RINGS), ("cuda_ring", APART, [{}]), ("cuda_rows", {}, [{}]), ("rows", {}, [{}]),
    )),
    ("rms norm, rows of 16 KiB", rmsnorm, [(4096, 8192), (8192,)], BF16, (
        ("cuda_ring", {}, RINGS), ("cuda_rows", {}, [{}]), ("rows", {}, [{}]),
    )),
    ("layer norm, rows of 16 KiB", layernorm, [(4096, 8192), (8192,), (8192,)], BF16, (
        ("cuda_ring", {}, RINGS), ("cuda_rows", {}, [{}]), ("rows", {}, [{}]),
    )),
    ("cross entropy, rows of 64000 bytes", cross_entropy, [(4096, 32000)], BF16, (
        ("cuda_ring", ONLINE, [*RINGS, {"WARPS": 16}]), ("cuda_rows", {}, [{}]), ("cross_entropy", {}, [{}]),
    )),
    ("softmax, rows of 64 KiB", softmax, [(4096, 32768)], BF16, (
        ("cuda_ring", ONLINE, [{}, {"WARPS": 16}, {"STEPS": 8}]),
        ("cuda_rows", {}, LANES), ("cuda_rows", STREAM, [{"LANES": 512}]), ("cuda_team", ONLINE, [{}, {"ROOM": 227}, {"WARPS": 8}]),
        ("rows", {}, [{}]),
    )),
    ("log softmax, rows of 256 KiB", log_softmax, [(1024, 65536)], torch.float32, (
        ("cuda_team", ONLINE, [{}, {"TEAM": 4}, {"TEAM": 4, "ROOM": 113}]), ("cuda_team", APART, [{}]), ("rows", {}, [{}]),
    )),
    ("rms norm, rows of 256 KiB", rmsnorm, [(2048, 131072), (131072,)], BF16, (
        ("cuda_team", {}, [{}, {"EACH": 16}, {"WARPS": 8}, {"STEPS": 8}, {"TEAM": 2, "ROOM": 227}]), ("rows", {}, [{}]),
    )),
    ("running sum, rows of 128 KiB", running_sum, [(8192, 32768)], torch.float32, (
        ("cuda_rows", {}, [{}, {"LANES": 512}, {"LANES": 128}]), ("rows", {}, [{}, {"BLOCK": 4096}]),
    )),
)  # fmt: skip

COMPILED: Sequence[tuple[Callable[..., Any], list[tuple[int, ...]], torch.dtype]] = (
    (softmax, [(4096, 8192)], BF16), (rmsnorm, [(4096, 8192), (8192,)], BF16), (transpose_add, [(8192, 8192)] * 2, torch.float32),
    (cross_entropy, [(4096, 32000)], BF16), (product, [(4096, 2048), (2048, 4096), (4096,)], BF16),
)  # fmt: skip


def operands(op: Callable[..., Any], shapes: Sequence[tuple[int, ...]], dtype: torch.dtype) -> list[torch.Tensor]:
    """Of such sizes, and classes for a cross entropy."""
    arguments = [torch.randn(shape, dtype=dtype, device="cuda") for shape in shapes]
    if op is cross_entropy:
        arguments.append(torch.randint(0, shapes[0][1], (shapes[0][0],), device="cuda"))
    return arguments


def milliseconds(call: Callable[[], Any], times: int = 11) -> float:
    """The median of single calls, each behind a write that empties the L2 and some idle work, so that launches are queued."""
    found = []
    flushed = torch.empty(1 << 28, dtype=torch.int8, device="cuda")
    for number in range(times + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flushed.zero_()
        torch.cuda._sleep(400_000)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if number >= 3:
            found.append(begin.elapsed_time(end))
    return sorted(found)[len(found) // 2]


def error(found: torch.Tensor, op: Callable[..., Any], arguments: Sequence[torch.Tensor]) -> float:
    """The largest relative error; of two rows, where there are rows."""
    exact = [argument.double() if argument.is_floating_point() else argument for argument in arguments]
    if found.dim() == 0:
        return abs(found.item() / op(*exact).item() - 1)
    rows = [0, found.shape[0] - 1]
    want = op(exact[0][rows], *exact[1:])
    return ((found[rows].double() - want).abs() / (want.abs() + 1e-3 * want.abs().max())).max().item()


def kernels(folder: Path) -> Iterator[str]:
    """One line a point of the experts' kernels."""
    chosen = tuple(sys.argv[2:])
    for title, op, shapes, dtype, plans in KERNELS:
        if chosen and not title.startswith(chosen):
            continue
        arguments = operands(op, shapes, dtype)
        shown = [torch.empty_like(argument, device="meta") for argument in arguments]
        task = trace(op, *shown, name=op.__name__, target=detect_target())
        moved = sum(argument.nbytes for argument in arguments) + sum(output.nbytes for output in task.outputs)
        yield f"{title}: floor {moved / COPY:.4f} ms, eager {milliseconds(lambda op=op, given=arguments: op(*given), 3):.4f} ms"
        for expert, choices, points in plans:
            source = experts.write(expert, task, choices)
            default = {name: values[0] for name, values in read_tune(source).items()}
            for point in points:
                what = f"  {expert} {dict(choices)} {dict(point)}:"
                try:
                    made = load_candidate(source, op.__name__, {**default, **point}, directory=folder, name=f"c{time.time_ns()}")
                    off = error(made(*arguments), op, arguments)
                    time_ms = milliseconds(lambda made=made, given=arguments: made(*given))
                    yield f"{what} {time_ms:.4f} ms, {moved / COPY / time_ms:.1%} of the floor, error {off:.0e}"
                except Exception as problem:
                    yield f"{what} {type(problem).__name__}: {str(problem)[:200]}"
        del arguments
        torch.cuda.empty_cache()


def compiled(folder: Path) -> Iterator[str]:
    """Inductor's kernels as candidates: their time beside torch.compile's, and what can't be turned."""
    from torch._inductor import compile_fx

    plain = compile_fx.compile_fx
    for op, shapes, dtype in COMPILED:
        arguments = operands(op, shapes, dtype)
        compile_fx.compile_fx = plain
        torch._dynamo.reset()
        watch = Watch(None)
        with torch.no_grad():
            call = torch.compile(op, mode="max-autotune-no-cudagraphs", dynamic=False)
            want = call(*arguments)
            told = watch.told()
            shown = [torch.empty_like(argument, device="meta") for argument in arguments]
            source, why = seed(trace(op, *shown, name=op.__name__, target=detect_target()), told)
            if not source:
                yield f"{op.__name__}: no seed: {why}"
                continue
            made = load_candidate(source, op.__name__, {}, directory=folder, name=f"c{time.time_ns()}")
            off = (made(*arguments).double() - want.double()).abs().max().item()
            one, other = (milliseconds(lambda run=run, given=arguments: run(*given)) * 1e3 for run in (call, made))
            yield f"{op.__name__}: torch.compile {one:.1f} µs, as a candidate {other:.1f} µs, they differ by {off:.0e}; {told['configs']}"


def main() -> None:
    """Prints lines until all is measured, or the seconds are over."""
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 600.0)
    with tempfile.TemporaryDirectory() as folder:
        for part in (kernels,) if sys.argv[2:] else (kernels, compiled):
            for line in part(Path(folder)):
                print(line, flush=True)
                if time.monotonic() > end:
                    return


if __name__ == "__main__":
    main()
