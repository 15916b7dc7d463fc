"""Writes a tiled matrix product's kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.knowledge.axes import Dim
from workbench.knowledge.emit import Expr
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.layout import Layout, LoopAxis, group_atoms
from workbench.knowledge.module import Kernel, kernel_name
from workbench.knowledge.program import Program, Ref, Value
from workbench.knowledge.scope import Names, Needs, Scope
from workbench.task import Task

_TAKEN = (
    "rows", "cols", "batch", "mask", "tile", "tile_m", "tile_n", "in_group", "first", "height", "part", "k", "k_across", "k_down", "left",
    "right", "acc", "M", "N", "K", "B",
)  # fmt: skip


@dataclass(frozen=True)
class Product:
    """A matrix product and its axes: `batch` may be empty."""

    dot: Value
    left: Value
    right: Value
    batch: Dim
    rows: Dim
    columns: Dim
    inner: Dim
    dtype: str


class MatmulWriter:
    """Writes the kernels of one product.

    Attributes:
        outputs: the launcher's names of the results.
    """

    def __init__(
        self, task: Task, program: Program, product: Product, choices: Mapping[str, Any], launcher: Launcher, needs: Needs
    ) -> None:
        self.task, self.program, self.product, self.choices, self.launcher, self.needs = task, program, product, choices, launcher, needs
        tensors = self.tensors
        named = (("batch", "B", product.batch), ("rows", "M", product.rows), ("cols", "N", product.columns))
        self.axes = [LoopAxis(name, size, group_atoms(atoms, tensors)) for name, size, atoms in named if atoms]
        batch = product.batch
        self.layout = Layout(tuple(self.axes))
        self.batched = bool(batch)
        largest = max(program.elements(value.deps) for value in program.values)
        self.wide = ".to(tl.int64)" if largest >= 2**31 else ""
        self.outputs = [launcher.allocate(output, "out") for output in program.outputs]
        self.stop = "K"
        self.taken_names: tuple[str, ...] = ()
        """Names in the kernels that the epilogue must not take."""
        self.is_split = any(axis.is_split for axis in self.axes)

    @property
    def tensors(self) -> list[Dim]:
        """What the kernels walk by the product's axes."""
        return tensors_of(self.program)

    def write(self) -> list[Kernel]:
        """The kernels, with their launches in the launcher."""
        self.launcher.lines.append("BLOCK_M, BLOCK_N, BLOCK_K = TILE")
        if not self.wide:
            largest = (self.product.left.input, self.product.right.input, self.outputs[0])
            self.launcher.lines += [
                f"if max({', '.join(f'{name}.numel()' for name in largest)}) >= 2**31:",
                f'    raise ValueError("{self.task.entry}: written for fewer than 2**31 elements")',
            ]
        kernels = self._split() if self.choices["split"] == "splitk" else [self._whole()]
        for kernel in kernels:
            self.launcher.lines += kernel.launch()
        return kernels

    # -- the kernels --------------------------------------------------------------------------------------------------------------

    def _whole(self) -> Kernel:
        kernel = Kernel(kernel_name(self.task), "Each program computes one tile of the result, and finishes it in registers.", "")
        kernel.body = [*self._tile_position(), *self._empty_tiles(), *self._product_loop("0", "BLOCK_K"), *self._epilogue("acc")]
        kernel.grid = f"({self._tiles()}{', ' + self._size('batch') if self.batched else ''},)".replace(",,", ",")
        self._finish(kernel)
        return kernel

    def _split(self) -> list[Kernel]:
        sizes = [self._size(axis.name) for axis in self.axes]
        memory = self.launcher.temporary("partial", ["SPLIT", *sizes])
        one = Kernel(kernel_name(self.task, "partial"), "Each program computes one tile's share of the inner dimension.", "")
        part = "part = tl.program_id(2)"
        offset = self.layout.offset(tuple(atom for axis in self.axes for atom in axis.atoms))
        volume = " * ".join(axis.size for axis in self.axes)
        one.body = [
            *self._tile_position(), part, *self._product_loop("part * BLOCK_K", "SPLIT * BLOCK_K"),
            f"tl.store({memory}_ptr + part.to(tl.int64) * ({volume}) + {offset}, acc, mask=(rows < M) & (cols < N))",
        ]  # fmt: skip
        batch = self._size("batch") if self.batched else "1"
        one.grid = f"({self._tiles()}, {batch}, SPLIT)"
        self._finish(one, [memory])
        two = Kernel(
            kernel_name(self.task, "finish"), "Each program adds the shares of one tile, always in the same order, and finishes it.", ""
        )
        two.body = [
            *self._tile_position(), "mask = (rows < M) & (cols < N)",
            "acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)",
            "for part in range(SPLIT):",
            f"    acc += tl.load({memory}_ptr + tl.cast(part, tl.int64) * ({volume}) + {offset}, mask=mask, other=0.0)",
            *self._epilogue("acc"),
        ]  # fmt: skip
        two.grid = f"({self._tiles()}, {batch})"
        self._finish(two, [memory])
        return [one, two]

    # -- stretches of code --------------------------------------------------------------------------------------------------------

    def _tile_position(self) -> list[str]:
        lines = ["tile = tl.program_id(0)"]
        if self.choices["order"] == "grouped":
            lines += [
                "# GROUP rows of tiles run column by column: the operands of neighbours meet in L2.",
                "in_group = GROUP * tl.cdiv(N, BLOCK_N)",
                "first = tile // in_group * GROUP",
                "height = tl.minimum(tl.cdiv(M, BLOCK_M) - first, GROUP)",
                "tile_m = first + tile % in_group % height",
                "tile_n = tile % in_group // height",
            ]
        else:
            lines += ["tile_m = tile // tl.cdiv(N, BLOCK_N)", "tile_n = tile % tl.cdiv(N, BLOCK_N)"]
        lines += [
            f"rows = (tile_m{self.wide} * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]",
            f"cols = (tile_n{self.wide} * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]",
        ]
        if self.batched:
            lines.append(f"batch = tl.program_id(1){self.wide}")
        return [*lines, *self._parts()]

    def _parts(self) -> list[str]:
        """Coordinates of the parts of axes that some tensors have in part."""
        layout = self._operand_layout("k", {})
        return [line for axis in self.axes for line in layout.part_lines(axis, self.tensors)]

    def _empty_tiles(self) -> list[str]:
        """Where only a triangle of the result is kept: tiles outside of it are not multiplied."""
        bounds = {_triangle_of(self.program, output.value, self.product) for output in self.program.outputs}
        if len(bounds) != 1 or None in bounds:
            return []
        ((op, diagonal),) = bounds  # type: ignore[misc]
        self.stop = "stop"
        least, most = "tile_n * BLOCK_N - (tile_m * BLOCK_M + BLOCK_M - 1)", "tile_n * BLOCK_N + BLOCK_N - 1 - tile_m * BLOCK_M"
        outside = f"{least} > {diagonal}" if op == "le" else f"{most} < {diagonal}"
        return ["# A tile outside of the triangle is zero, whatever is multiplied.", f"stop = tl.where({outside}, 0, K)"]

    def _product_loop(self, start: str, step: str) -> list[str]:
        product, wrap = self.product, self.choices["edges"] == "wrap"
        lines = ["acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)"]
        names = {"rows": "rows", "cols": "cols"}
        if wrap:
            names = {"rows": "safe_rows", "cols": "safe_cols"}
            lines += ["# Past the edges indices wrap around: the loads need no mask there, and what they give is never stored.",
                      "safe_rows = rows % M", "safe_cols = cols % N"]  # fmt: skip
        left = self._operand_layout("k_across", names).offset(product.left.atoms)
        right = self._operand_layout("k_down", names).offset(product.right.atoms)
        left_mask = "k_across < K" if wrap or not product.rows else "(rows < M) & (k_across < K)"
        right_mask = "k_down < K" if wrap or not product.columns else "(k_down < K) & (cols < N)"
        lines += [
            f"for k in tl.range({start}, {self.stop}, {step}):",
            "    k_across = k + tl.arange(0, BLOCK_K)[None, :]",
            "    k_down = k + tl.arange(0, BLOCK_K)[:, None]",
        ]
        return [*lines, *(f"    {line}" for line in self._step(left, right, left_mask, right_mask))]

    def _step(self, left: str, right: str, left_mask: str, right_mask: str) -> list[str]:
        """One step along the inner dimension: fetches both operands' tiles at these offsets, and adds their product to `acc`."""
        return [
            f"left = tl.load({self.product.left.input}_ptr + {left}, mask={left_mask}, other=0.0)",
            f"right = tl.load({self.product.right.input}_ptr + {right}, mask={right_mask}, other=0.0)",
            f"acc = tl.dot(left, right, acc{precision_argument(self.choices.get('precision'))})",
        ]

    def _operand_layout(self, inner: str, names: Mapping[str, str]) -> Layout:
        axes = [LoopAxis(names.get(axis.name, axis.name), axis.size, axis.groups) for axis in self.axes]
        return Layout((*axes, LoopAxis(inner, "K", (self.product.inner,))))

    def _epilogue(self, accumulator: str) -> list[str]:
        scope = Scope(
            self.program, self.layout, Names([*_TAKEN, *self.taken_names, *(v.input for v in self.program.of_kind("scalar"))]), self.needs,
            mask=self._mask, pads={}, env={self.product.dot.id: Expr(accumulator)},
            indexes={self.product.rows: "rows", self.product.columns: "cols"} if not self.is_split else {},
        )  # fmt: skip
        scope.compute([output.value.id for output in self.program.outputs if isinstance(output.value, Ref)])
        stores = []
        for output, name in zip(self.program.outputs, self.outputs, strict=True):
            text = scope.operand(output.value, output.dtype).text
            stores.append(f"tl.store({name}_ptr + {self.layout.offset(output.atoms)}, {text}, mask=mask)")
        return ["mask = (rows < M) & (cols < N)", *scope.lines, *stores]

    def _mask(self, deps: frozenset[int]) -> str:
        down, across = bool(deps & set(self.product.rows)), bool(deps & set(self.product.columns))
        return "mask" if down and across else "rows < M" if down else "cols < N" if across else ""

    # -- the launch ---------------------------------------------------------------------------------------------------------------

    def _sizes_used(self) -> list[tuple[str, str]]:
        """Further arguments of the kernels, of which those that are used are passed."""
        return []

    def _constants_used(self) -> list[tuple[str, str]]:
        """The same for constants."""
        return []

    def _memories(self) -> list[str]:
        """Memory that kernels before these have filled."""
        return []

    def _size(self, axis: str) -> str:
        atoms = {"batch": self.product.batch, "rows": self.product.rows, "cols": self.product.columns, "inner": self.product.inner}[axis]
        return self.launcher.size(atoms)

    def _tiles(self) -> str:
        return f"triton.cdiv({self._size('rows')}, BLOCK_M) * triton.cdiv({self._size('cols')}, BLOCK_N)"

    def _finish(self, kernel: Kernel, extra: Sequence[str] = ()) -> None:
        text = "\n".join(kernel.body)

        def used(name: str) -> bool:
            return re.search(rf"\b{name}\b", text) is not None

        pointers = dict.fromkeys([*(value.input for value in self.program.of_kind("load")), *self.outputs, *self._memories(), *extra])
        kernel.parameters = [(f"{name}_ptr", name) for name in pointers if used(f"{name}_ptr")]
        kernel.parameters += [(value.input, value.input) for value in self.program.of_kind("scalar") if used(value.input)]
        for size, axis in (("B", "batch"), ("M", "rows"), ("N", "cols"), ("K", "inner")):
            if used(size):
                kernel.parameters.append((size, self._size(axis)))
        for walked in self.axes:
            if walked.is_split:
                sizes = [(walked.group_size(place), self.launcher.size(group)) for place, group in enumerate(walked.groups)]
                kernel.constants += [(name, size) for name, size in sizes if used(name)]
        kernel.parameters += [(name, size) for name, size in self._sizes_used() if used(name)]
        kernel.constants += [(name, size) for name, size in self._constants_used() if used(name)]
        kernel.constants += [(name, name) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP", "SPLIT") if used(name)]
        kernel.options = {"num_warps": "NUM_WARPS"}
        if used("K"):
            kernel.options["num_stages"] = "NUM_STAGES"


def precision_argument(precision: str | None) -> str:
    """What ``tl.dot`` is told of the precision of float32 products, with its comma; nothing where nothing is chosen."""
    return f', input_precision="{precision}"' if precision else ""


def tensors_of(program: Program) -> list[Dim]:
    """The atoms of every tensor, in the order of its memory."""
    return [value.atoms for value in program.of_kind("load")] + [output.atoms for output in program.outputs]


def _triangle_of(program: Program, result: Any, product: Product) -> tuple[str, int] | None:
    """(comparison, diagonal) if a result is ``where(column - row <= diagonal, …, 0)``, or with ``>=``; None for any other."""
    value = program[result.id] if isinstance(result, Ref) else None
    if value is None or value.op != "where" or value.args[2] != 0 or not isinstance(value.args[0], Ref):
        return None
    hit = program[value.args[0].id]
    if hit.op not in ("le", "ge") or not isinstance(hit.args[0], Ref) or isinstance(hit.args[1], Ref):
        return None
    apart = program[hit.args[0].id]
    if apart.op != "sub" or [program[ref].over for ref in apart.refs] != [product.columns, product.rows]:
        return None
    return hit.op, int(hit.args[1])
