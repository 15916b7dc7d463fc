"""Convolutions of any rank, stride, padding, dilation and groups, forward and transposed, with everything elementwise behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from workbench.knowledge.convolution_writer import TAKEN, Convolution, ConvolutionWriter
from workbench.knowledge.experts.base import ALGORITHM, FUSION, TRAFFIC, Expert, Match
from workbench.knowledge.experts.matmul import PRECISIONS, WAYS, float32_choices, split_values
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.module import assemble
from workbench.knowledge.program import Program
from workbench.knowledge.scope import Needs
from workbench.target import get_target
from workbench.task import Task

CARD = """\
A convolution is a matrix product of the weights (channels by taps of the window) with a matrix of what each window sees. That matrix is
never written: a program gathers its tile of it from the image, which the caches hold, and multiplies it on tensor cores. Positions run
along the image's rows, so that neighbouring threads read neighbouring elements; weights are small and stay in the L2. Bias, activation
and scale follow in registers. PyTorch's own float32 convolutions use TF32 unless they are told not to, and then so may these; else they
keep float32's digits, by operands in several parts. Where a transposed convolution has a stride, a program takes results that
meet the same taps, and multiplies no others."""


def _fits(task: Task, program: Program) -> Match:
    found = Convolution(program)
    kind = "a transposed convolution" if found.transposed else "a convolution"
    return Match("convolution", 2.0, f"{kind} by {'×'.join(map(str, found.window.kernel))} in {found.dtype}: a product without its matrix")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    found = Convolution(program)
    space: dict[str, tuple[Any, ...]] = {"split": ("none",)}
    inner = _inner(program, found)
    processors = get_target(task.target).multiprocessors
    if _programs(program, found, 128, 128) * 2 <= processors and inner >= 512:
        space["split"] = ("splitk", "none")
    if found.dtype == "float32":
        space |= float32_choices(task)
    return space | {"order": ("plain",) if found.has_phases else ("plain", "grouped"), "edges": ("mask",)}


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    found = Convolution(program)
    letters = {dim: f"{letter.lower()}_in" for dim, letter in zip(found.image, found.names[0], strict=True)}
    letters |= {dim: letter.lower() for dim, letter in zip(found.taps, found.names[2], strict=True)}
    names = ("TILE", "GROUP", "SPLIT", "NUM_WARPS", "NUM_STAGES", "BLOCK_M", "BLOCK_N", "BLOCK_K", *TAKEN)
    launcher = Launcher(task, program, taken=names, preferred=letters)
    needs = Needs()
    writer = ConvolutionWriter(task, program, found, choices, launcher, needs)
    kernels = writer.write()
    results = [launcher.returned(output, name) for output, name in zip(program.outputs, writer.outputs, strict=True)]
    title = f"{task.name}: a convolution as a product whose right operand is gathered, with everything that follows in its epilogue."
    return assemble(task, title, _tune(task, program, found, choices), kernels, launcher, results, needs)


def _tune(task: Task, program: Program, found: Convolution, choices: Mapping[str, Any]) -> dict[str, list[Any]]:
    small = get_target(task.target).shared_bytes < 100 << 10
    rows, columns = program.elements(found.channels), program.elements(found.space)
    down = next((size for size in (16, 32, 64) if rows <= size), 128)
    deep = 16 if choices.get("precision") == "ieee" else 32
    wide = [size for size in (128, 256, 64) if size <= max(64, 2 * columns)]
    if small or down == 128 or choices.get("precision") == "ieee":
        wide = [size for size in wide if size <= 128]
    tiles = [(down, size, deep) for size in wide] + ([(64, 128, deep)] if down == 128 else [(down, wide[0], 2 * deep)])
    warps = 8 if down >= 64 or choices.get("residents") == "one" else 4
    if choices.get("residents") == "two" and choices.get("precision") != "ieee":
        # What is gathered takes registers for its addresses, and its parts take more: by what the compiler reports, these leave room.
        first = (down, 64, 16 if down >= 64 and choices.get("precision") != "tf32" else deep)
        tiles = [first, *(tile for tile in [(down, 64, deep), *tiles] if tile != first)]
    tune: dict[str, list[Any]] = {"TILE": list(dict.fromkeys(tiles))}
    tune["NUM_WARPS"] = [warps, 12 - warps]
    tune["NUM_STAGES"] = [2, 1] if small else [3, 2, 4]
    if choices["order"] == "grouped":
        tune["GROUP"] = [8, 4, 16]
    if choices["split"] == "splitk":
        at_once = 2 if choices.get("residents") == "two" else 1
        tune["SPLIT"] = split_values(task, _programs(program, found, down, tiles[0][1]) // at_once, _inner(program, found), deep)
    return tune


def _inner(program: Program, found: Convolution) -> int:
    return program.elements(found.taken) // found.value.groups * math.prod(found.window.kernel)


def _programs(program: Program, found: Convolution, rows: int, columns: int) -> int:
    tiles = -(-program.elements(found.channels) // rows) * -(-program.elements(found.space) // columns)
    return tiles * program.elements(found.batch)


CONVOLUTION = Expert(
    "convolution", CARD, _fits, _choices, _write,
    roles={"split": ALGORITHM, **WAYS, "order": TRAFFIC, "edges": FUSION},
    reasons={
        ("split", "none"): "each tile walks all channels and taps, in one launch",
        ("split", "splitk"): "several programs share a tile's channels and taps, which fills the card when tiles are few",
        ("order", "grouped"): "tiles run in groups of a few rows, so that what they gather meets in L2",
        ("order", "plain"): "all positions of some channels, then the next channels: the weights stay in the L1",
        ("edges", "mask"): "what lies outside of the image is masked instead of padded",
        **PRECISIONS,
    },
)  # fmt: skip
