"""Writes a convolution's kernels: a matrix product whose right operand is gathered from the image as it is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from workbench.knowledge import convolution_phases as phases
from workbench.knowledge.axes import Dim, UnsupportedError
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.matmul_writer import MatmulWriter, Product, precision_argument, tensors_of
from workbench.knowledge.module import Kernel
from workbench.knowledge.program import Program, Ref, Value, Window
from workbench.knowledge.scope import Needs
from workbench.task import Task

IN, OUT, TAPS = ("D", "H", "W"), ("OD", "OH", "OW"), ("KD", "KH", "KW")
POSITION, TAP, AT = ("depth", "row", "column"), ("tap_d", "tap_h", "tap_w"), ("z", "y", "x")
TAKEN = (
    "phase",
    "place",
    "places",
    "stop",
    "hits",
    "meets",
    "held",
    "hit",
    "image",
    "group",
    "channel",
    "tap",
    "inside",
    "C",
    "G",
    *IN,
    *OUT,
    *TAPS,
    *POSITION,
    *TAP,
    *AT,
)


class Convolution:
    """The one convolution of a program.

    Attributes:
        batch: atoms of the batch and the groups, `channels`: of a group's results, `space`: of their positions.
        image: each sliding dimension of what is convolved; `taken`: its channels' dimension.
    """

    def __init__(self, program: Program) -> None:
        found = program.of_kind("conv")
        others = program.of_kind("reduce", "scan", "dot", "index", "size", "gather", "window")
        if len(found) != 1 or others or any(not isinstance(output.value, Ref) for output in program.outputs):
            raise UnsupportedError("it is not one convolution with elementwise steps behind it")
        self.value: Value = found[0]
        assert self.value.window is not None
        self.window: Window = self.value.window
        self.rank = len(self.window.kernel)
        self.source, self.weight = (program[ref] for ref in self.value.refs)
        if self.source.kind != "load" or self.weight.kind != "load":
            raise UnsupportedError("an operand of the convolution is computed first")
        accesses = {access.input: access for access in program.accesses}
        read, held = accesses[self.source.input], accesses[self.weight.input]
        natural = all(access.order == tuple(range(len(access.order))) for access in (read, held))
        if not natural or len(self.value.over) != self.rank or not 1 <= self.rank <= 3 or len(read.dims) != self.rank + 2:
            raise UnsupportedError("a convolution of a tensor that is stored in another order")
        if read.dtype != held.dtype or read.dtype not in ("float16", "bfloat16", "float32"):
            raise UnsupportedError(f"a convolution of {read.dtype} by {held.dtype}")
        self.dtype = read.dtype
        self.taken, self.image = read.dims[1], read.dims[2:]
        self.taps, self.made = held.dims[2:], held.dims[1]
        self.space: Dim = self.value.over
        lead = self.value.atoms[: -self.rank]
        self.channels: Dim = lead[-1:]
        self.batch: Dim = lead[:-1]
        if any(output.atoms != self.value.atoms for output in program.outputs):
            raise UnsupportedError("a result in another order than the convolution's")

    @property
    def transposed(self) -> bool:
        return self.value.op == "transposed"

    @property
    def has_phases(self) -> bool:
        """Whether results differ in which taps of the window they meet at all: those of a transposed convolution with a stride do."""
        return self.transposed and max(self.window.stride) > 1

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Letters of the image's dimensions, the result's, and the window's, outermost first."""
        return IN[3 - self.rank :], OUT[3 - self.rank :], TAPS[3 - self.rank :]

    def out_size(self, place: int, size: str, captured: int, out: int) -> str:
        """The length of a dimension of the result, as text, from that of the image."""
        window = self.window
        stride, reach = window.stride[place], window.dilation[place] * (window.kernel[place] - 1) + 1
        if self.transposed:
            # What the formula leaves open is the padding of the output, a number of the op.
            more = out - (captured - 1) * stride + 2 * window.padding[place]
            grown = size if stride == 1 else f"({size} - 1) * {stride}"
            shift = more - 2 * window.padding[place] - (1 if stride == 1 else 0)
            return f"{grown} + {shift}" if shift >= 0 else f"{grown} - {-shift}"
        shift = 2 * window.padding[place] - reach
        moved = size if shift == 0 else f"({size} + {shift})" if shift > 0 else f"({size} - {-shift})"
        return f"{moved} + 1" if stride == 1 else f"{moved} // {stride} + 1"


class ConvolutionWriter(MatmulWriter):
    """Rows are a group's channels, columns the positions of one sample, and the inner dimension its channels' taps."""

    def __init__(
        self, task: Task, program: Program, found: Convolution, choices: Mapping[str, Any], launcher: Launcher, needs: Needs
    ) -> None:  # fmt: skip
        self.found = found
        inner = (*found.taken, *(atom for dim in found.taps for atom in dim))
        product = Product(found.value, found.weight, found.source, found.batch, found.channels, found.space, inner, found.dtype)
        for place, atom in enumerate(found.space):
            image = found.image[place]
            size = found.out_size(place, launcher.size(image), program.elements(image), program.sizes[atom])
            launcher.define(atom, found.names[1][place].lower(), size)
        super().__init__(task, program, product, choices, launcher, needs)
        self.taken_names = TAKEN
        self.places = ""

    @property
    def tensors(self) -> list[Dim]:
        operands = {self.found.source.atoms, self.found.weight.atoms}
        return [atoms for atoms in tensors_of(self.program) if atoms not in operands]

    def write(self) -> list[Kernel]:
        found = self.found
        if found.transposed:
            groups, taps = found.value.groups, self.launcher.size(tuple(atom for dim in found.taps for atom in dim))
            channels = self.launcher.size(found.made)
            name = found.weight.input
            self.launcher.lines.append(
                f"{name} = {name}.view({groups}, -1, {channels}, {taps}).transpose(1, 2).contiguous()  # small: as the kernel reads it"
            )
        if found.has_phases:
            places = [f"triton.cdiv({self.launcher.size((atom,))}, {s})" for atom, s in zip(found.space, found.window.stride, strict=True)]
            self.places = self.launcher.names.new("places")
            self.launcher.lines.append(f"{self.places} = {' * '.join(places)}  # of one phase")
        return super().write()

    def _tile_position(self) -> list[str]:
        if not self.found.has_phases:
            return super()._tile_position()
        return [*phases.position(self.found, self.wide, self.batched), *self._parts()]

    def _tiles(self) -> str:
        if not self.found.has_phases:
            return super()._tiles()
        phases_of_all = math.prod(self.found.window.stride)
        return f"triton.cdiv({self._size('rows')}, BLOCK_M) * triton.cdiv({self.places}, BLOCK_N) * {phases_of_all}"

    def _product_loop(self, start: str, step: str) -> list[str]:
        if self.found.has_phases:
            self.stop = "stop"
            return phases.product_loop(self.found, self.choices.get("precision", ""), start, step, self.batched)
        found, window = self.found, self.found.window
        ins, outs, taps = found.names
        rank = found.rank
        position, tap, at = POSITION[3 - rank :], TAP[3 - rank :], AT[3 - rank :]
        image = " * ".join(ins)
        lines = ["acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)"]
        for place in range(rank):
            inner = outs[place + 1 :]
            text = "cols" if not inner else f"cols // {inner[0]}" if len(inner) == 1 else f"cols // ({' * '.join(inner)})"
            lines.append(f"{position[place]} = {text}" + (f" % {outs[place]}" if place else ""))
        lines.append(f"image = {found.source.input}_ptr + {'batch' if self.batched else '0'} * (C * {image})")
        if found.value.groups > 1:
            lines.append(f"group = batch % {found.value.groups}")
        weights = f"{found.weight.input}_ptr + {'group * (M * K) + ' if found.value.groups > 1 else ''}rows * K + k_across"
        checks = ["(k_down < K)", "(cols < N)"]
        walk = []
        for place in range(rank):
            stride, pad, dilation = window.stride[place], window.padding[place], window.dilation[place]
            shift = tap[place] if dilation == 1 else f"{tap[place]} * {dilation}"
            if found.transposed:
                walk.append(f"{at[place]} = {position[place]}{f' + {pad}' if pad else ''} - {shift}")
                checks.append(f"({at[place]} >= 0)")
                checks.append(f"({at[place]} < {ins[place]})")
            else:
                across = position[place] if stride == 1 else f"{position[place]} * {stride}"
                walk.append(f"{at[place]} = {across} + {shift}{f' - {pad}' if pad else ''}")
                if pad:
                    checks += [f"({at[place]} >= 0)", f"({at[place]} < {ins[place]})"]
        size = " * ".join(taps)
        cut = [f"channel = k_down // ({size})", f"tap = k_down % ({size})"]
        for place in range(rank):
            inner = taps[place + 1 :]
            text = "tap" if not inner else f"tap // {inner[0]}" if len(inner) == 1 else f"tap // ({' * '.join(inner)})"
            cut.append(f"{tap[place]} = {text}" + (f" % {taps[place]}" if place and rank > 1 else ""))
        flat = {1: "x", 2: "y * W + x", 3: "(z * H + y) * W + x"}[rank]
        precision = precision_argument(self.choices.get("precision"))
        lines += [
            f"for k in tl.range({start}, {self.stop}, {step}):",
            "    k_across = k + tl.arange(0, BLOCK_K)[None, :]",
            "    k_down = k + tl.arange(0, BLOCK_K)[:, None]",
            f"    left = tl.load({weights}, mask=(rows < M) & (k_across < K), other=0.0)",
            "    # Each row of this tile is one channel at one place of the window, over the tile's positions.",
            *(f"    {line}" for line in (*cut, *walk)),
            f"    inside = {' & '.join(checks)}",
            f"    right = tl.load(image + channel * ({image}) + {flat}, mask=inside, other=0.0)",
            f"    acc = tl.dot(left, right, acc{precision})",
        ]
        return lines

    def _empty_tiles(self) -> list[str]:
        return []

    def _sizes_used(self) -> list[tuple[str, str]]:
        ins, outs, _ = self.found.names
        size = self.launcher.size
        images = list(zip(ins, (size(dim) for dim in self.found.image), strict=True))
        # The outermost length is not needed to cut positions in parts, but to know which there are.
        whole = 0 if self.found.has_phases else 1
        return [*images, *zip(outs[whole:], (size((atom,)) for atom in self.found.space[whole:]), strict=True)]

    def _constants_used(self) -> list[tuple[str, str]]:
        taps = zip(self.found.names[2], (self.launcher.size(dim) for dim in self.found.taps), strict=True)
        channels = self.launcher.size(self.found.taken)
        groups = self.found.value.groups
        return [("C", f"{channels} // {groups}" if groups > 1 else channels), *taps]

    def _size(self, axis: str) -> str:
        if axis == "inner":
            channels = self.launcher.size(self.found.taken)
            taps = " * ".join(self.launcher.size(dim) for dim in self.found.taps)
            groups = self.found.value.groups
            return f"{channels} // {groups} * {taps}" if groups > 1 else f"{channels} * {taps}"
        return super()._size(axis)
