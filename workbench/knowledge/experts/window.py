"""Pooling and depthwise convolution: windows that slide over an image, with everything elementwise that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.emit import Expr
from workbench.knowledge.experts import window_walk
from workbench.knowledge.experts.base import TILES, TRAFFIC, Expert, Match
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.layout import Layout, LoopAxis, group_atoms
from workbench.knowledge.module import Kernel, assemble, kernel_name
from workbench.knowledge.program import Program, Ref, Value, Window
from workbench.knowledge.scope import Names, Needs, Scope
from workbench.task import Task

CARD = """\
Neighbouring windows see almost the same elements. A program takes a tile of neighbouring results of one plane and loads the image once
for each element of the window, shifted: memory sees each element once, the repeats come from the L1. The window is unrolled, so that its
offsets are constants, and what lies outside of the image is masked instead of padded, which would copy the whole tensor. Activation,
scale and bias follow in registers."""

_IN, _OUT = ("D", "H", "W"), ("OD", "OH", "OW")
_TAKEN = {
    "tile",
    "plane",
    "depth",
    "rows",
    "cols",
    "mask",
    "acc",
    "seen",
    "base",
    "at",
    "z",
    "y",
    "x",
    "inside",
    "first",
    "line",
    "whole",
    "count",
    "weight",
    "P",
    "ROWS",
    "COLS",
}


class Slide:
    """The one window of a program, and how its dimensions are walked.

    Attributes:
        sizes: letters of the image's sliding dimensions, outermost first, and `outs` of the result's.
    """

    def __init__(self, program: Program) -> None:
        found = program.of_kind("window")
        if (
            len(found) != 1
            or any(not isinstance(output.value, Ref) for output in program.outputs)
            or program.of_kind("reduce", "scan", "dot", "index", "size", "gather", "conv")
        ):
            raise UnsupportedError("it is not one window with elementwise steps behind it")
        self.value: Value = found[0]
        assert self.value.window is not None
        self.window: Window = self.value.window
        self.rank = len(self.window.kernel)
        self.source = program[self.value.refs[0]]
        self.weight = program[self.value.refs[1]].input if len(self.value.refs) > 1 else ""
        if any(program[ref].kind != "load" for ref in self.value.refs):
            raise UnsupportedError("a window over something that is computed first")
        access = next(access for access in program.accesses if access.input == self.source.input)
        self.lead = tuple(atom for dim in access.dims[: len(access.dims) - self.rank] for atom in dim)
        self.image = access.dims[len(access.dims) - self.rank :]
        self.channel = access.dims[1] if len(access.dims) > 1 else ()
        if len(self.value.over) != self.rank or self.rank > 3 or self.value.atoms[: len(self.lead)] != self.lead:
            raise UnsupportedError("a window whose dimensions are cut in parts")
        if any(output.atoms != self.value.atoms for output in program.outputs):
            raise UnsupportedError("a result in another order than the window's")
        self.sizes, self.outs = _IN[3 - self.rank :], _OUT[3 - self.rank :]
        others = [value for value in program.needed([o.value.id for o in program.outputs], stop={self.value.id}) if value.kind == "load"]
        self.tensors = [*(value.atoms for value in others), *(output.atoms for output in program.outputs)]

    @property
    def axes(self) -> tuple[LoopAxis, ...]:
        """Planes, depth, rows and columns, as far as there are; without rows of an image the planes are the rows of a tile."""
        atoms, planes = self.value.over, group_atoms(self.lead, self.tensors)
        cols = LoopAxis("cols", self.outs[-1], (atoms[-1:],))
        if self.rank == 1:
            return (LoopAxis("rows", "P", planes), cols)
        rows = LoopAxis("rows", self.outs[-2], (atoms[-2:-1],))
        plane = LoopAxis("plane", "P", planes)
        return (plane, LoopAxis("depth", "OD", (atoms[:1],)), rows, cols) if self.rank == 3 else (plane, rows, cols)


def _fits(task: Task, program: Program) -> Match:
    slide = Slide(program)
    what = {"max": "largest", "mean": "mean", "weighted": "weighted sum"}[slide.value.op]
    return Match("window", 2.0, f"the {what} of windows of {'×'.join(map(str, slide.window.kernel))}: each element is read once")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    slide = Slide(program)
    first = ("walk",) if window_walk.height(slide) else ("fold",) if window_walk.folds(slide) else ()
    return {"tile": (*first, "wide", "square"), "cache": ("default", "stream")}


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    slide = Slide(program)
    launcher = Launcher(task, program, taken=(*_TAKEN, *_IN, *_OUT, "C", "NUM_WARPS"), preferred=_letters(slide))
    for place, (atom, out) in enumerate(zip(slide.value.over, slide.outs, strict=True)):
        launcher.define(atom, out.lower(), _out_size(slide.window, place, launcher.size(slide.image[place])))
    outputs = [launcher.allocate(output, "out") for output in program.outputs]
    kernel = Kernel(kernel_name(task), "Each program computes a tile of ROWS by COLS results of one plane.", grid="")
    needs = Needs()
    layout = Layout(slide.axes)
    scope = Scope(
        program, layout, Names(_TAKEN | set(_IN) | set(_OUT)), needs, mask=lambda deps: _mask(slide, deps), pads={},
        env={slide.value.id: Expr("acc")},
    )  # fmt: skip
    scope.compute([output.value.id for output in program.outputs if isinstance(output.value, Ref)])
    big = max(program.elements(slide.value.atoms), program.elements(slide.source.atoms)) >= 2**31
    end = [*scope.lines]
    for output, name in zip(program.outputs, outputs, strict=True):
        text = scope.operand(output.value, output.dtype).text
        end.append(f"tl.store({name}_ptr + {layout.offset(output.atoms)}, {text}, mask=mask)")
    parts = [list(layout.part_lines(axis, slide.tensors)) for axis in slide.axes]
    height = window_walk.height(slide) if choices["tile"] == "walk" else 1 if choices["tile"] == "fold" else 0
    if height:
        hint = ', eviction_policy="evict_first"' if choices["cache"] == "stream" else ""
        if choices["tile"] == "walk":
            kernel.doc = f"Each program computes {height} rows of COLS results of one plane, and reads each line of the image once for all."
            walked = window_walk.walk(slide, height, hint)
        else:
            kernel.doc = "Each program computes COLS results of one row, and reads what their windows see as it lies in memory."
            walked = window_walk.fold(slide, hint)
        outer = [line for lines in parts[:-2] for line in lines]
        kernel.body = [*window_walk.position(slide, height, big), *outer, *parts[-1], *walked]
        for row in range(height):
            kernel.body += window_walk.finish(slide, row, [*parts[-2], *end])
    else:
        kernel.body = [
            *_position(slide, big),
            *(line for lines in parts for line in lines),
            *_walk(slide, choices),
            "mask = (rows < " + slide.axes[-2].size + f") & (cols < {slide.outs[-1]})",
            *end,
        ]
    inputs = dict.fromkeys(value.input for value in program.of_kind("load"))
    kernel.parameters = [(f"{name}_ptr", name) for name in (*inputs, *outputs)]
    kernel.parameters += [(value.input, value.input) for value in program.of_kind("scalar")]
    planes = launcher.size(slide.lead) if slide.lead else "1"
    if slide.rank == 1:
        kernel.parameters.append(("P", planes))
    lead = slide.axes[0]
    if lead.is_split:
        kernel.constants += [(lead.group_size(place), launcher.size(group)) for place, group in enumerate(lead.groups)]
    if slide.value.op == "weighted":
        kernel.constants.append(("C", launcher.size(slide.channel)))
    kernel.parameters += [(size, launcher.size(dim)) for size, dim in zip(slide.sizes, slide.image, strict=True)]
    kernel.parameters += [(out, launcher.size((atom,))) for out, atom in zip(slide.outs, slide.value.over, strict=True)]
    kernel.constants += [("COLS", "COLS")] if height else [("ROWS", "ROWS"), ("COLS", "COLS")]
    rows = planes if slide.rank == 1 else launcher.size(slide.value.over[-2:-1])
    kernel.grid = f"triton.cdiv({launcher.size(slide.value.over[-1:])}, COLS) * triton.cdiv({rows}, {height or 'ROWS'})"
    if slide.rank > 1:
        kernel.grid += f" * {planes}" if " " not in planes else f" * ({planes})"
    if slide.rank == 3:
        kernel.grid += f" * {launcher.size(slide.value.over[:1])}"
    kernel.grid = f"({kernel.grid},)"
    kernel.options["num_warps"] = "NUM_WARPS"
    if not big:
        largest = f"max({slide.source.input}.numel(), {outputs[0]}.numel())"
        launcher.lines += [f"if {largest} >= 2**31:", f'    raise ValueError("{task.entry}: written for fewer than 2**31 elements")']
    launcher.lines += kernel.launch()
    results = [launcher.returned(output, name) for output, name in zip(program.outputs, outputs, strict=True)]
    return assemble(
        task,
        f"{task.name}: windows in registers, one read of the image.",
        _tune(slide, program, choices),
        [kernel],
        launcher,
        results,
        needs,
    )


def _letters(slide: Slide) -> dict[tuple[int, ...], str]:
    return {dim: f"{letter.lower()}_in" for dim, letter in zip(slide.image, slide.sizes, strict=True)}


def _out_size(window: Window, place: int, size: str) -> str:
    """How many windows fit, as text."""
    reach = window.dilation[place] * (window.kernel[place] - 1) + 1 - 2 * window.padding[place]
    fit = size if reach == 0 else f"({size} - {reach})" if reach > 0 else f"({size} + {-reach})"
    return f"{fit} + 1" if window.stride[place] == 1 else f"{fit} // {window.stride[place]} + 1"


def _position(slide: Slide, big: bool) -> list[str]:
    """The coordinates of the program's tile."""
    cols, rows = slide.axes[-1], slide.axes[-2]
    wide = ".to(tl.int64)" if big else ""
    lines = [
        "tile = tl.program_id(0)",
        f"cols = (tile % tl.cdiv({cols.size}, COLS) * COLS + tl.arange(0, COLS))[None, :]",
    ]
    if slide.rank == 1:
        return [
            *lines,
            f"rows = (tile // tl.cdiv({cols.size}, COLS){wide} * ROWS + tl.arange(0, ROWS))[:, None]",
            f"base = rows * {slide.sizes[-1]}",
        ]
    lines += [
        f"tile = tile // tl.cdiv({cols.size}, COLS)",
        f"rows = (tile % tl.cdiv({rows.size}, ROWS) * ROWS + tl.arange(0, ROWS))[:, None]",
        f"plane = (tile // tl.cdiv({rows.size}, ROWS)){wide}",
    ]
    return [*lines, *window_walk.base(slide)]


def _walk(slide: Slide, choices: Mapping[str, Any]) -> list[str]:
    """The unrolled loops over the window's elements."""
    window, op, rank = slide.window, slide.value.op, slide.rank
    coordinates = ("depth", "rows", "cols")[3 - rank :]
    names = ("z", "y", "x")[3 - rank :]
    dtype = "tl.float64" if slide.value.dtype == "float64" else "tl.float32"
    outside = '-float("inf")' if op == "max" else "0.0"
    lines = [f"acc = tl.full([ROWS, COLS], {outside}, {dtype})"]
    counted = op == "mean" and not window.divisor
    lines += ["there = tl.zeros([ROWS, COLS], tl.float32)"] if counted else []
    if op == "weighted":
        lines.append(f"weights = {slide.weight}_ptr + {'rows' if rank == 1 else 'plane'} % C * {math.prod(window.kernel)}")
    indent = ""
    checks: list[str] = []
    for place, (name, coordinate) in enumerate(zip(names, coordinates, strict=True)):
        step = _affine(coordinate, window.stride[place], f"{'ijk'[place]}", window.dilation[place], -window.padding[place])
        lines.append(f"{indent}for {'ijk'[place]} in tl.static_range({window.kernel[place]}):")
        indent += "    "
        lines.append(f"{indent}{name} = {step}")
        if window.padding[place]:
            checks.append(f"({name} >= 0)")
        checks.append(f"({name} < {slide.sizes[place]})")
    if rank == 1:
        checks.append("(rows < P)")
    flat = {1: "x", 2: "y * W + x", 3: "(z * H + y) * W + x"}[rank]
    hint = ', eviction_policy="evict_first"' if choices["cache"] == "stream" else ""
    lines += [
        f"{indent}inside = {' & '.join(checks)}",
        f"{indent}seen = tl.load({slide.source.input}_ptr + base + {flat}, mask=inside, other={outside}{hint}).to({dtype})",
    ]
    if op == "max":
        lines.append(f"{indent}acc = tl.maximum(acc, seen, propagate_nan=tl.PropagateNan.ALL)")
    elif op == "mean":
        lines.append(f"{indent}acc += seen")
        lines += [f"{indent}there += inside.to(tl.float32)"] if counted else []
    else:
        number = "i"
        for place in range(1, rank):
            number = f"{number if place == 1 else f'({number})'} * {window.kernel[place]} + {'ijk'[place]}"
        mask = ", mask=rows < P, other=0.0" if rank == 1 else ""
        lines.append(f"{indent}acc += seen * tl.load(weights + {number}{mask}).to({dtype})")
    if op == "mean":
        lines.append("acc = acc / there" if counted else f"acc = acc / {float(window.divisor)}")
    return lines


def _affine(coordinate: str, stride: int, tap: str, dilation: int, shift: int) -> str:
    text = coordinate if stride == 1 else f"{coordinate} * {stride}"
    text += f" + {tap}" if dilation == 1 else f" + {tap} * {dilation}"
    return text + (f" - {-shift}" if shift else "")


def _mask(slide: Slide, deps: frozenset[int]) -> str:
    across, down = bool(deps & set(slide.axes[-1].atoms)), bool(deps & set(slide.axes[-2].atoms))
    return "mask" if across and down else f"cols < {slide.outs[-1]}" if across else f"rows < {slide.axes[-2].size}" if down else ""


def _tune(slide: Slide, program: Program, choices: Mapping[str, Any]) -> dict[str, list[int]]:
    columns = max(16, 1 << (program.elements(slide.value.over[-1:]) - 1).bit_length())
    if choices["tile"] == "fold":
        return {"COLS": [64, 32, 128], "NUM_WARPS": [4, 8, 2]}
    if choices["tile"] == "walk":
        # Small enough for the lines of all programs on a multiprocessor to stay in its L1.
        best = min(columns, 128)
        return {"COLS": list(dict.fromkeys([best, min(columns, 2 * best), max(32, best // 2)])), "NUM_WARPS": [4, 2, 8]}
    if choices["tile"] == "wide":
        best = min(columns, 256 if slide.rank > 1 else 1024)
        # Every thread of four warps has a result or two of its own.
        rows = [1, 2, 4] if best >= 256 else [2, 4, 1] if best >= 128 else [4, 8, 2]
    else:
        best = min(columns, 64)
        rows = [8, 16, 4]
    return {"COLS": list(dict.fromkeys([best, max(16, best // 2), min(columns, best * 2)])), "ROWS": rows, "NUM_WARPS": [4, 8, 2]}


WINDOW = Expert(
    "window", CARD, _fits, _choices, _write,
    roles={"tile": TILES, "cache": TRAFFIC},
    reasons={
        ("tile", "walk"): "several rows of results a program, so that each line of the image is loaded once for all that see it",
        ("tile", "fold"): "each lane adds one column of its window, so that a warp reads whole stretches of a line",
        ("tile", "wide"): "tiles along the rows of the image: the widest accesses",
        ("tile", "square"): "tiles of several rows: windows of neighbouring rows share what they load",
        ("cache", "stream"): "the image is marked to leave the cache first",
        ("cache", "default"): "no cache hints",
    },
)  # fmt: skip
