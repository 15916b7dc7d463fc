"""Windows over several rows at once: each row of the image is read once for all the results that see it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.knowledge.experts.window import Slide

LONGEST = 96
"""Loads that are unrolled at most."""


def height(slide: Slide) -> int:
    """How many rows of results a program makes; 0 where rows share too little of the image."""
    if slide.rank < 2:
        return 0
    window, place = slide.window, slide.rank - 2
    kernel, stride, dilation = window.kernel[place], window.stride[place], window.dilation[place]
    for rows in (8, 4):
        lines = {row * stride + tap * dilation for row in range(rows) for tap in range(kernel)}
        loads = len(lines) * math.prod(window.kernel) // kernel
        if loads <= LONGEST and len(lines) * 1.5 <= rows * kernel:
            return rows
    return 0


def position(slide: Slide, rows: int, big: bool) -> list[str]:
    """The coordinates of the program's columns and of its first row."""
    cols, down = slide.axes[-1], slide.axes[-2]
    wide = ".to(tl.int64)" if big else ""
    lines = [
        "tile = tl.program_id(0)",
        f"cols = tile % tl.cdiv({cols.size}, COLS) * COLS + tl.arange(0, COLS)",
        f"tile = tile // tl.cdiv({cols.size}, COLS)",
        f"first = tile % tl.cdiv({down.size}, {rows}) * {rows}",
        f"plane = (tile // tl.cdiv({down.size}, {rows})){wide}",
    ]
    return [*lines, *base(slide)]


def base(slide: Slide) -> list[str]:
    """Where the image of the program's plane begins; in a volume, its depth is split off the plane first."""
    depth = ["depth = (plane % OD).to(tl.int32)", "plane = plane // OD"] if slide.rank == 3 else []
    return [*depth, f"base = plane * {' * '.join(slide.sizes) if slide.rank == 2 else '(D * H * W)'}"]


def walk(slide: Slide, rows: int, hint: str) -> list[str]:
    """Loops over the lines of the image that the rows see, each added to every row that sees it."""
    window, op, rank = slide.window, slide.value.op, slide.rank
    down, across = rank - 2, rank - 1
    stride, dilation, kernel = window.stride[down], window.dilation[down], window.kernel[down]
    dtype = "tl.float64" if slide.value.dtype == "float64" else "tl.float32"
    outside = '-float("inf")' if op == "max" else "0.0"
    counted = op == "mean" and not window.divisor
    lines = [f"acc_{row} = tl.full([COLS], {outside}, {dtype})" for row in range(rows)]
    lines += [f"there_{row} = tl.zeros([COLS], tl.float32)" for row in range(rows)] if counted else []
    if op == "weighted":
        lines.append(f"weights = {slide.weight}_ptr + plane % C * {math.prod(window.kernel)}")
    indent, checks = "", []
    if rank == 3:
        lines += [
            f"for i in tl.static_range({window.kernel[0]}):",
            f"    z = {_at('depth', window.stride[0], 'i', window.dilation[0], window.padding[0])}",
        ]
        indent = "    "
        checks += ["(z >= 0)"] if window.padding[0] else []
        checks.append("(z < D)")
    last = (rows - 1) * stride + (kernel - 1) * dilation
    pad = f" - {window.padding[down]}" if window.padding[down] else ""
    checks += ["(y >= 0)"] if pad else []
    checks += ["(y < H)", *(["(x >= 0)"] if window.padding[across] else []), "(x < W)"]
    x = _at("cols", window.stride[across], "j", window.dilation[across], window.padding[across])
    flat = "y * W + x" if rank == 2 else "(z * H + y) * W + x"
    seen = [_sees(row, stride, dilation, kernel) for row in range(rows)]
    lines += [
        f"{indent}for line in tl.static_range({last + 1}):",
        f"{indent}    y = first{f' * {stride}' if stride > 1 else ''} + line{pad}",
    ]
    body = [f"x = {x}", f"inside = {' & '.join(checks)}"]
    body.append(f"seen = tl.load({slide.source.input}_ptr + base + {flat}, mask=inside, other={outside}{hint}).to({dtype})")
    if op == "weighted":
        for row in range(rows):
            tap = f"(line - {row * stride})" if row else "line"
            tap = f"{tap} // {dilation}" if dilation > 1 else tap
            number = f"({'i * ' + str(kernel) + ' + ' if rank == 3 else ''}{tap}) * {window.kernel[across]} + j"
            body += [f"if {seen[row]}:", f"    acc_{row} += seen * tl.load(weights + {number}).to({dtype})"]
        lines += [f"{indent}    for j in tl.static_range({window.kernel[across]}):", *(f"{indent}        {text}" for text in body)]
        return lines
    whole = "tl.maximum(whole, seen, propagate_nan=tl.PropagateNan.ALL)" if op == "max" else "whole + seen"
    lines += [f"{indent}    whole = tl.full([COLS], {outside}, {dtype})"]
    lines += [f"{indent}    count = tl.zeros([COLS], tl.float32)"] if counted else []
    body.append(f"whole = {whole}")
    body += ["count += inside.to(tl.float32)"] if counted else []
    lines += [f"{indent}    for j in tl.static_range({window.kernel[across]}):", *(f"{indent}        {text}" for text in body)]
    for row in range(rows):
        lines.append(f"{indent}    if {seen[row]}:")
        if op == "max":
            lines.append(f"{indent}        acc_{row} = tl.maximum(acc_{row}, whole, propagate_nan=tl.PropagateNan.ALL)")
        else:
            lines.append(f"{indent}        acc_{row} += whole")
            lines += [f"{indent}        there_{row} += count"] if counted else []
    return lines


def folds(slide: Slide) -> bool:
    """Whether neighbouring windows lie so far apart that their elements are better read side by side than window by window."""
    window = slide.window
    return slide.rank > 1 and slide.value.op == "mean" and window.stride[-1] >= 4 and window.kernel[-1] >= 4 and window.dilation[-1] == 1


def fold(slide: Slide, hint: str) -> list[str]:
    """Each lane adds one column of the window, so that a warp reads whole stretches of a line; lanes are added at the end."""
    window, rank = slide.window, slide.rank
    dtype = "tl.float64" if slide.value.dtype == "float64" else "tl.float32"
    wide = 1 << (window.kernel[-1] - 1).bit_length()
    pad = f" - {window.padding[-1]}" if window.padding[-1] else ""
    counted = not window.divisor
    lines = [
        f"lanes = tl.arange(0, {wide})[None, :]",
        f"x = cols[:, None] * {window.stride[-1]} + lanes{pad}",
        f"acc = tl.zeros([COLS, {wide}], {dtype})",
        *([f"there = tl.zeros([COLS, {wide}], tl.float32)"] if counted else []),
    ]
    indent = ""
    checks = [f"(lanes < {window.kernel[-1]})", *(["(x >= 0)"] if pad else []), "(x < W)"]
    for place in range(rank - 1):
        name, coordinate, tap = ("zyx"[3 - rank :][place], ("depth", "first")[3 - rank :][place], "ij"[place])
        lines.append(f"{indent}for {tap} in tl.static_range({window.kernel[place]}):")
        indent += "    "
        lines.append(f"{indent}{name} = {_at(coordinate, window.stride[place], tap, window.dilation[place], window.padding[place])}")
        checks += [f"({name} >= 0)"] if window.padding[place] else []
        checks.append(f"({name} < {slide.sizes[place]})")
    flat = "y * W + x" if rank == 2 else "(z * H + y) * W + x"
    lines += [
        f"{indent}inside = {' & '.join(checks)}",
        f"{indent}acc += tl.load({slide.source.input}_ptr + base + {flat}, mask=inside, other=0.0{hint}).to({dtype})",
        *([f"{indent}there += inside.to(tl.float32)"] if counted else []),
        "acc_0 = tl.sum(acc, axis=1)",
        *(["there_0 = tl.sum(there, axis=1)"] if counted else []),
    ]
    return lines


def finish(slide: Slide, row: int, epilogue: Sequence[str]) -> list[str]:
    """One row's results, from its sum to its store."""
    value = f"acc_{row}"
    if slide.value.op == "mean":
        value = f"acc_{row} / {float(slide.window.divisor)}" if slide.window.divisor else f"acc_{row} / there_{row}"
    down = slide.axes[-2].size
    place = f"first + {row}" if row else "first"
    return [f"rows = {place}", f"mask = (rows < {down}) & (cols < {slide.outs[-1]})", f"acc = {value}", *epilogue]


def _sees(row: int, stride: int, dilation: int, kernel: int) -> str:
    """The condition under which a row of results sees a line, which is known when the kernel is compiled."""
    begin, end = row * stride, row * stride + (kernel - 1) * dilation
    text = f"line >= {begin} and line <= {end}" if begin else f"line <= {end}"
    return text if dilation == 1 else f"{text} and {f'(line - {begin})' if begin else 'line'} % {dilation} == 0"


def _at(coordinate: str, stride: int, tap: str, dilation: int, pad: int) -> str:
    text = coordinate if stride == 1 else f"{coordinate} * {stride}"
    text += f" + {tap}" if dilation == 1 else f" + {tap} * {dilation}"
    return text + (f" - {pad}" if pad else "")
