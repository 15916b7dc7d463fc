"""Variants of ten ops, good and bad ones, on which modelled times are held against times measured on an H200.

Run as a script it measures: ``python model_variants.py time FILE`` on a machine with the GPU, or records and models the same variants:
``python model_variants.py record FILE`` and, with TRITON_INTERPRET=1, ``python model_variants.py traffic FILE``.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from triton_families import FAMILIES, HEAD, Family, specs


@dataclasses.dataclass(frozen=True)
class Variant:
    """One candidate: `op` groups those that compute the same."""

    name: str
    op: str
    family: Family
    dtype: str


def variants() -> Iterator[Variant]:
    def made(op: str, name: str, dtype: str, source: str = "", shapes=None, **changes: str) -> Variant:
        family = FAMILIES[op] if op in FAMILIES else OTHERS[op]
        text = source or family.source
        for old, new in changes.get("swap", {}).items():  # type: ignore[union-attr]
            assert old in text, (name, old)
            text = text.replace(old, str(new))
        family = dataclasses.replace(
            family, source=text, real=shapes or family.real, parameters=changes.get("parameters", family.parameters)
        )
        return Variant(f"{op} {name}", GROUPS.get(op, op), family, dtype)

    for warps in (1, 4, 8, 16):
        yield made("softmax_row", f"warps {warps}", "bfloat16", swap={"[4, 8]": f"[{warps}]"})
    for block, warps in ((256, 4), (1024, 4), (4096, 4), (4096, 16)):
        yield made("softmax_loop", f"{block}, {warps}", "bfloat16", swap={"else 1024)": f"else {block}, num_warps={warps})"})
    for warps in (2, 8, 32):
        yield made("rmsnorm", f"warps {warps}", "bfloat16", swap={"num_warps=8": f"num_warps={warps}"})
    for block, warps in ((64, 1), (256, 4), (1024, 4), (4096, 4), (16384, 4), (16384, 16)):
        yield made("gelu_mul_libdevice", f"{block}, {warps}", "bfloat16", swap={"else 2048)": f"else {block}, num_warps={warps})"})
    yield made("gelu_mul_libdevice", "strided", "bfloat16", swap={
        "i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)": "i = tl.program_id(0) + tl.arange(0, BLOCK) * tl.num_programs(0)",
    })  # fmt: skip
    for block in (64, 1024):
        yield made("gelu_mul_sigmoid", f"{block}", "bfloat16", swap={"256": block})
    square = ((2048, 2048), (2048, 2048), (2048,))
    for bm, bn, bk, warps, stages in (
        (16, 16, 16, 1, 2), (32, 32, 32, 4, 2), (64, 64, 32, 4, 1), (64, 64, 32, 4, 3), (128, 64, 32, 4, 3), (128, 128, 32, 4, 3),
        (128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (256, 128, 64, 8, 1),
    ):  # fmt: skip
        tile = {
            "BM=BM, BN=BN, BK=BK": f"BM={bm}, BN={bn}, BK={bk}",
            "num_warps=4": f"num_warps={warps}",
            "num_stages=3": f"num_stages={stages}",
        }
        yield made("linear_relu", f"{bm}x{bn}x{bk} w{warps} s{stages}", "bfloat16", shapes=square, swap=tile)
    for bm, bn, precision in ((32, 32, "ieee"), (64, 64, "ieee"), (128, 64, "tf32"), (64, 64, "tf32x3")):
        tile = {"BM=BM, BN=BN": f"BM={bm}, BN={bn}", '"ieee"': f'"{precision}"'}
        yield made("linear_relu", f"fp32 {bm}x{bn} {precision}", "float32", shapes=square, swap=tile)
    for block, warps in ((512, 4), (4096, 8), (32768, 16)):
        yield made(
            "cross_entropy", f"{block}, {warps}", "bfloat16", swap={"else 4096": f"else {block}", "num_warps=8": f"num_warps={warps}"}
        )
    for block, warps in ((512, 4), (4096, 4), (8192, 8)):
        yield made("cumsum_scan", f"{block}, {warps}", "float32", swap={"else 4096)": f"else {block}, num_warps={warps})"})
    for block, warps in ((16, 1), (32, 4), (64, 4), (128, 8)):
        yield made(
            "transpose_add",
            f"{block}",
            "float32",
            swap={", B=32)": f", B={block}, num_warps={warps})", "N, 32)": f"N, {block})", "M, 32)": f"M, {block})"},
        )
    for pieces in (1, 4, 16):
        yield made(
            "two_launches",
            f"{pieces}",
            "float32",
            swap={"pieces = 4": f"pieces = {pieces}", "n, 64)": "n, 4096)", "BLOCK=64)": "BLOCK=4096)"},
        )
    for split in (1, 4, 16):
        yield made("split_k", f"{split}", "bfloat16", swap={", 4)]": f", {split})]", "SPLIT=4": f"SPLIT={split}"})
    for block in (256, 4096):
        yield made("sum_all", f"{block}", "float32", swap={"1024": block})
    for warps in (4, 8):
        yield made("welford_layernorm", f"{warps}", "bfloat16", swap={"(x.shape[1]))": f"(x.shape[1]), num_warps={warps})"})
    yield made("torch_softmax", "composed", "bfloat16")


GROUPS = {
    "softmax_row": "softmax", "softmax_loop": "softmax", "torch_softmax": "softmax", "gelu_mul_libdevice": "gelu·y",
    "gelu_mul_sigmoid": "gelu·y",
}  # fmt: skip
OTHERS = {
    "sum_all": Family(
        HEAD
        + '''
@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))

def sum_all(x):
    out = torch.zeros((), device=x.device)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
''',
        "sum_all", lambda x: x.sum(), ((100,),), ((8192, 8192),),
    ),
    "torch_softmax": Family(
        HEAD
        + '''
def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
''',
        "softmax", lambda x: x.softmax(-1), ((3, 130),), ((4096, 8192),),
    ),
}  # fmt: skip


def time_all(path: Path) -> None:
    """Median µs of each on the GPU, with a cold L2."""
    import torch
    import triton

    from workbench.build.tune import load_candidate
    from workbench.inputs import make_inputs

    directory = Path(tempfile.mkdtemp())
    times = {}
    for number, variant in enumerate(variants()):
        try:
            launcher = load_candidate(
                variant.family.source, variant.family.entry, variant.family.parameters, directory=directory, name=f"v{number}"
            )
            inputs = make_inputs(specs(variant.family, variant.dtype, variant.family.real), 0, "cuda")
            launcher(*inputs)
            times[variant.name] = 1e3 * triton.testing.do_bench(lambda: launcher(*inputs), warmup=20, rep=60, quantiles=[0.5])  # noqa: B023
        except Exception as error:
            times[variant.name] = None
            print(variant.name, type(error).__name__, str(error)[:200])
        torch.cuda.empty_cache()
    path.write_text(json.dumps(times, indent=1))


def _candidate(variant: Variant) -> tuple:
    return variant.family.source, variant.family.entry, variant.family.parameters


def record_all(path: Path) -> None:
    from workbench.judge.recording.recorder import record
    from workbench.records import encode
    from workbench.target import TARGETS

    found = {}
    for variant in variants():
        inputs = specs(variant.family, variant.dtype, variant.family.real)
        recording = record(
            variant.family.source,
            variant.family.entry,
            variant.family.parameters,
            inputs,
            TARGETS["cuda:90"],
            directory=Path(tempfile.mkdtemp()),
        )
        found[variant.name] = encode(recording)
        if recording.error is not None:
            print(variant.name, recording.error)
    path.write_text(json.dumps(found))


def measure_all(path: Path) -> None:
    from workbench.build.tune import load_candidate
    from workbench.judge.emulation.interpreter import mend
    from workbench.judge.recording.traffic import measure
    from workbench.judge.recording.untouched import make_untouched
    from workbench.records import encode

    mend()
    found = {}
    for number, variant in enumerate(variants()):
        launcher = load_candidate(
            variant.family.source, variant.family.entry, variant.family.parameters, directory=Path(tempfile.mkdtemp()), name=f"v{number}"
        )
        traffic = measure(launcher, make_untouched(specs(variant.family, variant.dtype, variant.family.real)))
        found[variant.name] = encode(traffic)
        print(variant.name, f"{traffic.seconds:.2f} s", traffic.error, flush=True)
    path.write_text(json.dumps(found))


if __name__ == "__main__":
    {"time": time_all, "record": record_all, "traffic": measure_all}[sys.argv[1]](Path(sys.argv[2]))
