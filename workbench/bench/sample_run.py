"""A run to look at: the events of a search for rmsnorm, made of the real records, and deterministic.

Used by `bench board`, the browser tests and the page in their harness. With `count` in the thousands it is what the table is measured with.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from workbench import events
from workbench.brief import Brief, Budget, Card, Parent, Proposal, Role
from workbench.candidate import (
    Baseline,
    Candidate,
    Diagnosis,
    Environment,
    Evaluation,
    ModelledTime,
    Resources,
    Speedup,
    Timing,
    Verdict,
    Witness,
)
from workbench.events import Stamped
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

ROWS, COLUMNS = 4096, 8192
FLOOR, EAGER, COMPILE = 31.2, 385.0, 44.6

REFERENCE = """import torch

def rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    variance = x.float().pow(2).mean(-1, keepdim=True)
    return (x.float() * torch.rsqrt(variance + eps)).to(x.dtype) * weight
"""

CELL = (
    REFERENCE
    + """
x = torch.randn(4096, 8192, dtype=torch.bfloat16)
weight = torch.ones(8192, dtype=torch.bfloat16)
y = rmsnorm(x, weight)
"""
)

TASK = Task(
    name="rmsnorm",
    reference=REFERENCE,
    entry="rmsnorm",
    inputs=(
        InputSpec("x", (ROWS, COLUMNS), "bfloat16", (COLUMNS, 1), Values("normal", {"mean": 0.0, "std": 1.0})),
        InputSpec("weight", (COLUMNS,), "bfloat16", (1,), Values("normal", {"mean": 1.0, "std": 0.02}), role="parameter"),
        InputSpec("eps", (), "python", (), Values("scalar", value=1e-6)),
    ),
    outputs=(OutputSpec((ROWS, COLUMNS), "bfloat16", (COLUMNS, 1)),),
    work=Work(bytes=2 * ROWS * COLUMNS * 2 + COLUMNS * 2, flops=4 * ROWS * COLUMNS),
)

ISLANDS = (
    Role("fusion", "One pass over the data, everything in one kernel."),
    Role("tiling", "Block shapes, rows per program, warps."),
    Role("memory", "Wide loads, cache hints, fewer bytes."),
    Role("wild", "What the others would not try."),
)

CARDS = (
    Card("card-7", "a row fits into registers", "read it once, keep it, and write from there", "1.9× on three ops", 0.8),
    Card("card-12", "loads are narrower than 16 bytes", "make the block a multiple of 8 elements a thread", "1.2× on two ops", 0.6),
)

PLANS = {
    "fusion": (
        "Keep the whole row in registers, so that x is read once.",
        "Fuse the scale into the store loop; one kernel for all of it.",
        "Persistent programs that walk over rows, with the weight loaded once.",
    ),
    "tiling": (
        "Two rows per program to give each warp more loads in flight.",
        "Loop over column tiles, accumulate the square in fp32.",
        "Sixteen warps per row; reduce across warps at the end.",
    ),
    "memory": (
        "128-bit loads and an evict-first hint on x, since it is never read again.",
        "Prefetch the next row while the present one is reduced.",
        "Recompute from L2 in the second pass; rows of 16 kB fit.",
    ),
    "wild": (
        "Sum of squares by tensor cores, x times x transposed.",
        "Approximate rsqrt and one Newton step.",
        "Split each row over a cluster of two.",
    ),
}


def source(rng: random.Random, island: str, generation: int) -> str:
    """A variant's module: plausible Triton, different for every draw."""
    warps, rows = rng.choice((4, 8, 16)), rng.choice((1, 1, 2, 4))
    hint = ', eviction_policy="evict_first"' if island == "memory" else ""
    loop = island == "tiling" or rng.random() < 0.3
    head = f'''"""RMSNorm, {"tiled" if loop else "one row per program"}: {island}, generation {generation}."""

import torch
import triton
import triton.language as tl

TUNE = {{"BLOCK": [8192, 4096, 2048], "WARPS": [{warps}, 4, 16]}}


@triton.jit
def rmsnorm_kernel(x_ptr, w_ptr, y_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
'''
    if loop:
        body = f"""    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n, other=0.0{hint}).to(tl.float32)
        acc += x * x
    scale = tl.rsqrt(tl.sum(acc, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < n, other=0.0)
        tl.store(y_ptr + cols, (x * scale).to(tl.bfloat16) * w, mask=cols < n)
"""
    else:
        body = f"""    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + cols, mask=mask, other=0.0{hint}).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + cols, (x * scale).to(tl.bfloat16) * w, mask=mask)
"""
    tail = f"""

def rmsnorm(x, weight, eps=1e-6):
    y = torch.empty_like(x)
    rows, n = x.shape
    rmsnorm_kernel[(rows // {rows},)](x, weight, y, x.stride(0), n, eps, BLOCK=BLOCK, num_warps=WARPS)
    return y
"""
    return head + body + tail


FAILURES: tuple[tuple[Verdict, str, str], ...] = (
    (Verdict.WRONG, "3.1 % of the elements are out of bounds on input set normal", ""),
    (
        Verdict.DOES_NOT_BUILD,
        "the compiler refuses it: rsqrt expects fp32, got bf16",
        "error: 'tt.call' op operand type mismatch\n  at candidate.py:19:12\n    scale = tl.rsqrt(total / n + eps)\n            ^\n"
        "triton.compiler.errors.CompilationError: expected operand of type f32, got bf16",
    ),
    (
        Verdict.CRASHED,
        "the launcher raised: BLOCK 8192 exceeds shared memory (Required: 262144, limit: 232448)",
        "OutOfResources: out of resource: shared memory",
    ),
    (Verdict.LOWER_PRECISION, "right with the round-off of float16; the task keeps bfloat16 with fp32 accumulation", ""),
    (Verdict.NOT_JUDGED, "the interpreter has no clusters: it could not be run here", ""),
    (Verdict.REFUSED, "it writes into the reference's output buffer", ""),
)


def run_events(count: int = 44, *, measured: bool = False, seed: int = 24, ended: bool = False, hopeless: bool = False) -> list[Stamped]:
    """The events of a run with `count` variants; in a hopeless one none is right."""
    made = _events(random.Random(seed), count, measured, ended, hopeless)
    return [Stamped("20261130-rmsnorm-7f3a", number, 1_796_000_000.0 + 2.1 * number, event) for number, event in enumerate(made, 1)]


def _events(rng: random.Random, count: int, measured: bool, ended: bool, hopeless: bool) -> Iterator[events.Event]:
    environment = Environment(
        python="3.11.9",
        torch="2.13.0",
        triton="3.7.1",
        gpu="NVIDIA H200" if measured else "",
        sandbox="bubblewrap",
        driver="580.82" if measured else "",
    )
    cap = count if ended else max(60, count + 16)
    yield events.RunStarted(
        TASK, Budget(evaluations=cap, seconds=max(1800.0, 3.0 * count)), 0, ("experts", "llm:qwen"), cell="c0", cell_source=CELL
    )
    yield events.StateChanged("preparing")
    baselines = (
        Baseline("eager", timing(rng, EAGER, measured)),
        Baseline("compile", timing(rng, COMPILE, measured))
        if measured
        else Baseline("compile", None, "torch.compile needs a GPU to be timed"),
    )
    device = "gpu: NVIDIA H200" if measured else "no GPU: interpreter, modelled for cuda:90"
    yield events.Prepared(FLOOR, baselines, device, environment)
    yield events.StateChanged("running", "auto")
    best: float | None = None
    judged_before: dict[str, tuple[Candidate, Evaluation, Diagnosis]] = {}
    lineage: dict[str, list[str]] = {role.name: [] for role in ISLANDS}
    for number in range(1, count + 1):
        role = ISLANDS[number % 4 if number > 3 else 0]
        parents = tuple(rng.sample(lineage[role.name][-4:], 1)) if lineage[role.name] and rng.random() < 0.85 else ()
        candidate = Candidate(
            id=f"k{number}",
            backend="triton",
            source=source(rng, role.name, number),
            entry="rmsnorm",
            parents=parents,
            island=role.name,
            proposer="experts" if rng.random() < 0.6 else "llm:qwen",
            plan=rng.choice(PLANS[role.name]),
            brief=f"b{number}",
            recipe={"expert": "rows", "passes": rng.choice(("row", "loop")), "rows": rng.choice((1, 2))} if number % 3 else {},
            cites=("rows", "card-7") if number % 3 == 0 else ("rows",),
        )
        directive = "Widen the loads to 16 bytes: each thread reads 4." if parents else "Start from the expert's one-pass row kernel."
        brief = Brief(
            f"b{number}",
            "step" if parents else "seed",
            candidate.id,
            role,
            TASK,
            directive=directive,
            cards=CARDS,
            experts=("rows", "tile"),
            parents=tuple(Parent(*judged_before[one]) for one in parents),
            hints=("keep the whole row in registers",) if number > 12 else (),
            left=Budget(evaluations=count + 16 - number, seconds=1800.0 - 2.1 * number),
            seed=number,
            expert={} if parents else {"expert": "rows"},
        )
        yield events.Asked(brief)
        yield events.Proposed(Proposal(f"b{number}", candidate))
        if number == count and not ended:
            return
        floor_now = FLOOR * (1.06 + 6.0 * 0.9 ** min(number, 40) * rng.uniform(0.3, 1.0) + rng.expovariate(3.0))
        for point in range(1 if rng.random() < 0.6 else 3):
            evaluation = judged(rng, candidate, point, floor_now * (1 + 0.06 * point), measured, environment, hopeless)
            yield events.Evaluated(f"b{number}", evaluation, diagnosis(evaluation))
            if evaluation.time_us is not None:
                judged_before.setdefault(candidate.id, (candidate, evaluation, diagnosis(evaluation)))
                if candidate.id not in lineage[role.name]:
                    lineage[role.name].append(candidate.id)
                if best is None or evaluation.time_us < best:
                    best = evaluation.time_us
                    yield events.BestChanged(candidate.id, evaluation.id, best)
            else:
                break
        yield events.Spent(
            Budget(evaluations=number, seconds=2.1 * number, gpu_seconds=0.4 * number if measured else 0.0, tokens=1900 * number, money=0.0)
        )
        if number == 12:
            yield events.Acted("hint", "keep the whole row in registers")
        if number == 20:
            yield events.Acted("ban", "split reductions over several programs")
            yield events.Migrated("k9", "fusion", "wild")
    if ended:
        yield events.StateChanged("ended", f"{cap} evaluations are used up")
        yield events.Ended(f"{cap} evaluations are used up", "" if hopeless else "k1")


def judged(
    rng: random.Random, candidate: Candidate, point: int, time_us: float, measured: bool, environment: Environment, hopeless: bool
) -> Evaluation:
    """What the judge says: mostly right, sometimes each of the failures."""
    by = "gpu" if measured else "interpreter (4×130, 4×64)"
    evaluation = Evaluation(
        id=f"{candidate.id}.{point}",
        candidate=candidate.id,
        task=TASK.id,
        verdict=Verdict.RIGHT,
        judged_by=by,
        parameters={"BLOCK": (8192, 4096, 2048)[point % 3], "WARPS": 8},
        input_sets=("normal", "large", "zeros", "neighbour shape"),
        matched=1.0,
        error_ratio=rng.uniform(0.2, 0.8),
        environment=environment,
        stage_ms={"record": 412.0, "compile": 220.0, "compare": 640.0, "traffic": 90.0},
        reason="within bounds on 4 input sets",
    )
    if rng.random() < (1.0 if hopeless else 0.34 if candidate.island == "wild" else 0.2):
        verdict, reason, log = rng.choice(FAILURES)
        if verdict is Verdict.LOWER_PRECISION:
            return replace(evaluation, verdict=verdict, reason=reason, timing=timing(rng, time_us, measured), error_ratio=3.4, matched=0.71)
        witness = None
        if verdict is Verdict.WRONG:
            witness = Witness(1187, "normal", 0, (17, 8190), 0.734375, 0.71484375, 0.0039, "last tile of dim 1")
        ran = verdict is Verdict.WRONG
        return replace(
            evaluation,
            verdict=verdict,
            reason=reason,
            log=log,
            witness=witness,
            matched=0.969 if ran else None,
            error_ratio=4.98 if ran else None,
        )
    taken = timing(rng, time_us, measured)
    base = EAGER if not measured else COMPILE
    return replace(
        evaluation,
        timing=taken,
        resources=(resources(rng),),
        speedup=Speedup(base / taken.median_us, base / taken.high_us, base / taken.low_us, "compile") if measured else None,
        modelled=None if measured else modelled(taken.median_us),
        own_kernel_share=1.0 if measured else None,
        hot=timing(rng, time_us * 0.82, measured) if measured else None,
        labels=("autotuned by hand",) if rng.random() < 0.15 else (),
    )


def timing(rng: random.Random, time_us: float, measured: bool) -> Timing:
    """A time with a spread as a GPU gives it, or a modelled one without."""
    if not measured:
        return Timing(time_us, time_us, time_us, time_us, time_us, modelled=True)
    spread = time_us * rng.uniform(0.002, 0.012)
    return Timing(time_us, time_us - spread, time_us + spread, time_us - 2 * spread, time_us + 4 * spread, calls=400, blocks=8)


def modelled(time_us: float) -> ModelledTime:
    """Where a modelled time comes from, for a kernel that memory limits."""
    bytes_least = TASK.work.bytes
    return ModelledTime(
        time_us,
        bytes_least * 1.04,
        bytes_least * 1.9,
        TASK.work.flops * 1.2,
        time_us * 0.86,
        time_us * 0.61,
        time_us * 0.11,
        2.0,
        1,
        "memory",
    )


def resources(rng: random.Random) -> Resources:
    """What a kernel takes of the card; one in five spills."""
    registers = rng.choice((40, 64, 96, 168, 255))
    return Resources(
        "rmsnorm_kernel",
        (ROWS,),
        1,
        8,
        1,
        registers,
        48 if registers == 255 else 0,
        1024,
        min(1.0, 64 / registers),
        "registers",
        3.9,
        rng.choice((4, 8, 16)),
    )


def diagnosis(evaluation: Evaluation) -> Diagnosis:
    """Why, in the words that the explaining room uses."""
    if evaluation.verdict is Verdict.WRONG:
        return Diagnosis(
            evaluation.id,
            "mismatch",
            "The last tile of dim 1 is wrong: its loads are not masked.",
            "Mask the loads and the store with cols < n.",
            ("first bad index [17, 8190]", "8190 // BLOCK is the last tile"),
        )
    if evaluation.verdict is Verdict.DOES_NOT_BUILD:
        return Diagnosis(
            evaluation.id, "build", "rsqrt gets bf16; Triton has it for fp32 only.", "Accumulate in fp32 and convert after rsqrt."
        )
    if evaluation.verdict is Verdict.LOWER_PRECISION:
        return Diagnosis(evaluation.id, "precision", "It adds up in float16.", "Accumulate in float32 and convert at the store.")
    if evaluation.verdict in (Verdict.NOT_JUDGED, Verdict.REFUSED):
        return Diagnosis(evaluation.id, "refused", evaluation.reason, "Do without it.")
    if evaluation.time_us is None:
        return Diagnosis(evaluation.id, "launch", evaluation.reason, "Take a smaller block.")
    headroom = evaluation.time_us / FLOOR
    if headroom < 1.1:
        return Diagnosis(evaluation.id, "floor", "Nothing is left to gain: it runs at the floor.", "Accept it.", headroom=headroom)
    return Diagnosis(
        evaluation.id,
        "memory",
        "Device memory limits it, and a thread's loads are 4 bytes wide.",
        "Widen the loads to 16 bytes.",
        ("modelled memory time is 86 % of the total", "vector width 4 bytes of 16", "occupancy 38 %, limited by registers"),
        headroom,
    )
