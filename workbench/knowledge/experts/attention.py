"""Attention in one kernel, whatever is done to its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.knowledge.attention_writer import TAKEN, AttentionWriter, find_attention
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.experts.base import ALGORITHM, Expert, Match
from workbench.knowledge.experts.matmul import PRECISIONS, precisions
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.module import assemble
from workbench.knowledge.program import Program
from workbench.knowledge.scope import Needs
from workbench.target import get_target
from workbench.task import Task

CARD = """\
The scores of attention are as many as queries times keys, and nobody needs them: a program keeps its queries, walks the keys block by
block, and holds scores and result in registers, rescaling what it has summed whenever a larger score appears (online softmax, as
FlashAttention does). So memory sees queries, keys, values and the result, once each. Masks, biases and caps are applied to the scores
where they are; under a causal mask, blocks that nobody sees are not walked, and the longest programs start first. Heads of more than
256 elements don't fit a program's registers: the chain of stages takes those."""

WIDEST = 256


def _fits(task: Task, program: Program) -> Match:
    found = find_attention(program)
    widest = max(program.elements(found.depth), program.elements(found.columns))
    if widest > WIDEST:
        raise UnsupportedError(f"heads of {widest} elements, which one program can't hold")
    queries, keys = program.elements(found.rows), program.elements(found.keys)
    return Match("attention", 3.0, f"attention of {queries} queries to {keys} keys in {found.dtype}: scores stay in registers")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    found = find_attention(program)
    return {"precision": precisions(task)} if found.dtype == "float32" else {}


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    found = find_attention(program)
    launcher = Launcher(task, program, taken=(*TAKEN, "BLOCKS", "NUM_WARPS", "NUM_STAGES"))
    needs = Needs()
    writer = AttentionWriter(task, program, found, choices, launcher, needs)
    kernel = writer.write()
    results = [launcher.returned(output, name) for output, name in zip(program.outputs, writer.outputs, strict=True)]
    title = f"{task.name}: attention whose scores are never written."
    return assemble(task, title, _tune(task, program), [kernel], launcher, results, needs)


def _tune(task: Task, program: Program) -> dict[str, list[Any]]:
    found = find_attention(program)
    widest = max(program.elements(found.depth), program.elements(found.columns))
    small = get_target(task.target).shared_bytes < 100 << 10
    if found.dtype == "float32":
        tiles = [(64, 32), (64, 64), (128, 32)] if widest <= 64 else [(64, 32), (32, 32), (64, 16)]
        return {"BLOCKS": tiles, "NUM_WARPS": [4, 8], "NUM_STAGES": [1, 2]}
    tiles = [(128, 128), (128, 64), (64, 64)] if widest <= 128 else [(128, 64), (64, 64), (64, 32)]
    if small:
        tiles = [(64, 64), (128, 32), (64, 32)]
    return {"BLOCKS": tiles, "NUM_WARPS": [4] if small else [8, 4], "NUM_STAGES": [1, 2] if small else [3, 2]}


ATTENTION = Expert("attention", CARD, _fits, _choices, _write, roles={"precision": ALGORITHM}, reasons=PRECISIONS)
