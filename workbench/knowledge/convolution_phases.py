"""Transposed convolutions with a stride: results of one phase meet the same taps, so a program takes those of one phase and no other taps.

Of a window of 3 by 3 moved by 2, a result meets 1, 2 or 4 taps; all others would multiply the zeros that lie between the elements.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from workbench.knowledge.matmul_writer import precision_argument

if TYPE_CHECKING:
    from workbench.knowledge.convolution_writer import Convolution

_LETTERS = "dhw"
_POSITION, _AT = ("depth", "row", "column"), ("z", "y", "x")


def position(found: Convolution, wide: str, batched: bool) -> list[str]:
    """The coordinates of a tile: its channels, its phase, and the places of that phase, as positions in the result."""
    strides, rank = found.window.stride, found.rank
    outs, letters, names = found.names[1], _LETTERS[3 - rank :], _POSITION[3 - rank :]
    total = math.prod(strides)
    lines = ["# Neighbouring programs take the phases of the same places: together they write whole lines.", "tile = tl.program_id(0)"]
    lines += [f"phase = tile % {total}", f"tile = tile // {total}"]
    lines += [f"places_{letter} = tl.cdiv({out}, {stride})" for letter, out, stride in zip(letters, outs, strides, strict=True)]
    lines += [
        f"places = {' * '.join(f'places_{letter}' for letter in letters)}",
        "tile_m = tile // tl.cdiv(places, BLOCK_N)",
        "tile_n = tile % tl.cdiv(places, BLOCK_N)",
        f"rows = (tile_m{wide} * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]",
        "place = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]",
    ]
    checks = ["(place < places)"]
    for number in range(rank):
        later = math.prod(strides[number + 1 :])
        phase = f"phase // {later} % {strides[number]}" if later > 1 else f"phase % {strides[number]}"
        inner = " * ".join(f"places_{letter}" for letter in letters[number + 1 :])
        text = f"place // ({inner})" if inner else "place"
        text += f" % places_{letters[number]}" if number else ""
        lines.append(f"phase_{letters[number]} = {phase if strides[number] > 1 else '0'}")
        lines.append(f"{names[number]} = {text} * {strides[number]} + phase_{letters[number]}")
        checks.append(f"({names[number]} < {outs[number]})")
    flat = {1: "column", 2: "row * OW + column", 3: "(depth * OH + row) * OW + column"}[rank]
    lines.append(f"cols = tl.where({' & '.join(checks)}, {flat}, N)")
    return [*lines, f"batch = tl.program_id(1){wide}"] if batched else lines


def product_loop(found: Convolution, precision: str, start: str, step: str, batched: bool) -> list[str]:
    """The loop over the channels and the taps that this phase meets."""
    window, rank = found.window, found.rank
    ins, _, taps = found.names
    letters, names, at = _LETTERS[3 - rank :], _POSITION[3 - rank :], _AT[3 - rank :]
    lines = ["acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)"]
    strides = []
    for number, letter in enumerate(letters):
        kernel, stride, dilation = window.kernel[number], window.stride[number], window.dilation[number]
        apart = stride // math.gcd(stride, dilation)
        strides.append(apart)
        if stride == 1:
            lines += [f"first_{letter} = 0", f"meets_{letter} = {kernel}"]
            continue
        shift = window.padding[number] + stride * kernel * dilation  # a multiple more, so that nothing is negative
        several = min(apart, kernel)
        lines += [
            f"first_{letter} = {kernel}",
            f"for tap in tl.static_range({several}):",
            f"    hit = (phase_{letter} + {shift} - ({several - 1} - tap) * {dilation}) % {stride} == 0",
            f"    first_{letter} = tl.where(hit, {several - 1} - tap, first_{letter})",
            f"meets_{letter} = ({kernel + apart - 1} - first_{letter}) // {apart}",
        ]
    image = " * ".join(ins)
    lines += [
        f"hits = {' * '.join(f'meets_{letter}' for letter in letters)}",
        "stop = C * hits",
        f"image = {found.source.input}_ptr + {'batch' if batched else '0'} * (C * {image})",
    ]
    groups = found.value.groups
    lines += [f"group = batch % {groups}"] if groups > 1 else []

    def tap(number: int, k: str) -> str:
        inner = " * ".join(f"meets_{letter}" for letter in letters[number + 1 :])
        text = f"{k} % hits" + (f" // ({inner})" if inner else "") + (f" % meets_{letters[number]}" if number else "")
        times = f" * {strides[number]}" if strides[number] > 1 else ""
        return f"first_{letters[number]} + {text}{times}"

    across = [f"tap_{letter} = {tap(number, 'k_across')}" for number, letter in enumerate(letters)]
    flat = f"tap_{letters[0]}"
    for number in range(1, rank):
        flat = f"{flat if number == 1 else f'({flat})'} * {taps[number]} + tap_{letters[number]}"
    size = " * ".join(taps)
    held = f"{'group * (M * K) + ' if groups > 1 else ''}rows * K + k_across // hits * ({size}) + {flat}"
    down, checks = [], ["(k_down < stop)", "(cols < N)"]
    for number in range(rank):
        stride, pad, dilation = window.stride[number], window.padding[number], window.dilation[number]
        moved = f"{names[number]}{f' + {pad}' if pad else ''} - ({tap(number, 'k_down')}){f' * {dilation}' if dilation > 1 else ''}"
        down.append(f"{at[number]} = ({moved}) // {stride}" if stride > 1 else f"{at[number]} = {moved}")
        checks += [f"({at[number]} >= 0)", f"({at[number]} < {ins[number]})"]
    place = {1: "x", 2: "y * W + x", 3: "(z * H + y) * W + x"}[rank]
    suffix = precision_argument(precision)
    return [
        *lines,
        f"for k in tl.range({start}, stop, {step}):",
        "    k_across = k + tl.arange(0, BLOCK_K)[None, :]",
        "    k_down = k + tl.arange(0, BLOCK_K)[:, None]",
        *(f"    {line}" for line in across),
        f"    held = {held}",
        f"    left = tl.load({found.weight.input}_ptr + held, mask=(rows < M) & (k_across < stop), other=0.0)",
        "    # These divide without a rest: only taps that meet an element are here.",
        *(f"    {line}" for line in down),
        f"    inside = {' & '.join(checks)}",
        f"    right = tl.load(image + k_down // hits * ({image}) + {place}, mask=inside, other=0.0)",
        f"    acc = tl.dot(left, right, acc{suffix})",
    ]
