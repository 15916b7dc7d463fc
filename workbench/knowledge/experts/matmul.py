"""Matrix products on tensor cores, with everything elementwise that follows in their epilogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.knowledge.axes import Dim, UnsupportedError
from workbench.knowledge.experts.base import ALGORITHM, FUSION, TILES, TRAFFIC, Expert, Match
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.layout import group_atoms
from workbench.knowledge.matmul_writer import MatmulWriter, Product, tensors_of
from workbench.knowledge.module import assemble
from workbench.knowledge.product_parts import SPLIT_AHEAD, PartsWriter
from workbench.knowledge.program import Program
from workbench.knowledge.scope import Needs
from workbench.target import get_target
from workbench.task import Task

CARD = """\
A product is computed tile by tile: two operand tiles meet in shared memory, tensor cores multiply them, and the sum stays in registers
in float32 until the whole inner dimension is done. Bias, activation, scale, residual and cast then happen in registers, before the
result's only write: eager reads and writes the whole result again for each of them. Tiles of one neighbourhood run at the same time
(grouped order), so that operands are read from L2 and not from memory. Products with few tiles and a long inner dimension are split
along it. Float32 operands are split in registers into three bfloat16 parts each, whose six products tensor cores make: twice the rate of
plain float32, with its digits, since each step's sum is added outside of the tensor cores, which would cut it off. Large products have
their parts made once, ahead, by a kernel of its own: then tiles are only multiplied."""


FLOPS_PER_BYTE = 130
"""Of bfloat16 products in the time in which the memory moves a byte: 560 TFLOP/s by 4.3 TB/s, an H200's, and much the same elsewhere."""

SHALLOW = 128
"""Elements of the inner dimension up to which a float32 product is bound by what it reads and writes."""


def find_product(program: Program) -> Product:
    """The program's one matrix product, its axes each a single stretch of memory.

    Raises:
        UnsupportedError: there is none or several, or something but elementwise maps surrounds it.
    """
    dots = program.of_kind("dot")
    if len(dots) != 1 or program.of_kind("reduce", "scan", "size", "gather", "window", "conv"):
        raise UnsupportedError("it is not one matrix product with an elementwise epilogue")
    left, right = (program[ref] for ref in dots[0].refs)
    if left.kind != "load" or right.kind != "load":
        raise UnsupportedError("an operand of the product is computed first")
    dtypes = {access.input: access.dtype for access in program.accesses}
    if dtypes[left.input] != dtypes[right.input] or dtypes[left.input] not in ("float16", "bfloat16", "float32"):
        raise UnsupportedError(f"a product of {dtypes[left.input]} by {dtypes[right.input]}")
    inner = dots[0].over
    batch = tuple(atom for atom in left.atoms if atom in right.deps and atom not in inner)
    rows = tuple(atom for atom in left.atoms if atom not in inner and atom not in batch)
    columns = tuple(atom for atom in right.atoms if atom not in inner and atom not in batch)
    if any(set(output.atoms) != {*batch, *rows, *columns} for output in program.outputs):
        raise UnsupportedError("a result of another shape than the product")
    tensors = tensors_of(program)
    outer, *rest = group_atoms(columns, tensors) if columns else ((),)
    if not batch and len(rest) == 1:  # an operand without a batch, such as the weights of a 1×1 convolution
        batch, columns = outer, rest[0]
    if not inner or len(group_atoms(inner, tensors)) > 1:
        raise UnsupportedError("an inner dimension of the product that is no single stretch of memory")
    if program.of_kind("index") and is_split(program, (rows, columns)):
        raise UnsupportedError("a position along a dimension that is no single stretch of memory")
    if any(value.over not in (rows, columns) for value in program.of_kind("index")):
        raise UnsupportedError("a position along something else than the product's rows or columns")
    return Product(dots[0], left, right, batch, rows, columns, inner, dtypes[left.input])


def is_split(program: Program, axes: Sequence[Dim]) -> bool:
    """Whether one of the axes is no single stretch of memory in some tensor."""
    return any(len(group_atoms(axis, tensors_of(program))) > 1 for axis in axes)


def _fits(task: Task, program: Program) -> Match:
    product = find_product(program)
    sizes = " × ".join(str(program.elements(axis)) for axis in (product.rows, product.columns, product.inner))
    steps = len(program.of_kind("map"))
    return Match("matmul", 2.0, f"a {sizes} product in {product.dtype}, {steps} elementwise steps in its epilogue")


def _choices(task: Task, program: Program) -> dict[str, tuple[Any, ...]]:
    product = find_product(program)
    space: dict[str, tuple[Any, ...]] = {}
    tiles = _tiles(program, product, 128, 128)
    processors = get_target(task.target).multiprocessors
    few = tiles < processors and program.elements(product.inner) >= 512
    space["split"] = ("splitk", "none") if few and tiles * 4 <= processors else ("none", "splitk") if few else ("none",)
    if few and tiles * 16 <= processors:
        space["split"] = ("splitk",)  # else nearly the whole card would wait
    if product.dtype == "float32":
        space |= float32_choices(task)
        if get_target(task.target).backend == "cuda":
            space["precision"] = _with_parts(space["precision"], program, product)
    space["order"] = ("grouped", "plain")
    space["edges"] = ("mask",) if is_split(program, (product.rows, product.columns)) else ("mask", "wrap")
    return space


def _with_parts(ways: Sequence[str], program: Program, product: Product) -> tuple[str, ...]:
    """The ways to multiply with that by parts which are made ahead, before or behind the one that makes them on the way.

    Ahead costs each operand element 4 bytes of reading and 6 of writing, and its parts are read in place of it.
    """
    made = 10 * (program.elements(program[product.dot.refs[0]].atoms) + program.elements(program[product.dot.refs[1]].atoms))
    flops = 12 * program.elements((*product.batch, *product.rows, *product.columns)) * program.elements(product.inner)
    if made * FLOPS_PER_BYTE > flops:
        return tuple(ways)  # it would take longer than all that it saves
    place = ways.index("bf16x6") + (0 if 4 * made * FLOPS_PER_BYTE < flops else 1)
    return (*ways[:place], SPLIT_AHEAD, *ways[place:])


def _write(task: Task, program: Program, choices: Mapping[str, Any]) -> str:
    product = find_product(program)
    letters = {product.batch: "B", product.rows: "M", product.columns: "N", product.inner: "K"}
    launcher = Launcher(
        task, program, taken=("TILE", "GROUP", "SPLIT", "NUM_WARPS", "NUM_STAGES", "BLOCK_M", "BLOCK_N", "BLOCK_K"), preferred=letters
    )
    needs = Needs()
    kind = PartsWriter if choices.get("precision") == SPLIT_AHEAD else MatmulWriter
    writer = kind(task, program, product, choices, launcher, needs)
    kernels = writer.write()
    results = [launcher.returned(output, name) for output, name in zip(program.outputs, writer.outputs, strict=True)]
    title = f"{task.name}: a tiled product with everything that follows in its epilogue."
    return assemble(task, title, _tune(task, program, product, choices), kernels, launcher, results, needs)


def _tune(task: Task, program: Program, product: Product, choices: Mapping[str, Any]) -> dict[str, list[Any]]:
    target = get_target(task.target)
    small = target.shared_bytes < 100 << 10
    processors = target.multiprocessors
    tune: dict[str, list[Any]] = {}
    pair = choices.get("residents") == "two" and choices.get("precision") != "ieee"
    shallow = pair and program.elements(product.inner) <= SHALLOW
    if choices.get("precision") == SPLIT_AHEAD:
        # Three parts of both tiles lie in shared memory at each stage, and two sums in registers.
        tiles = [(128, 64, 32), (64, 128, 32), (64, 64, 32)] if pair else [(128, 128, 32), (128, 64, 64), (64, 128, 64)]
    elif product.dtype == "float32":
        tiles = [(128, 128, 32), (128, 64, 32), (64, 128, 32), (64, 64, 32)]
        if pair:
            # Parts in TF32 take registers that leave no place for a second program of that tile: a shallower one has fewer of them.
            first = (128, 64, 32) if choices.get("precision") != "tf32x3" else (64, 64, 32) if shallow else (128, 64, 16)
            tiles = [first, *(tile for tile in ((128, 64, 32), (64, 64, 32), (128, 128, 32)) if tile != first)]
        if choices.get("precision") == "ieee":
            tiles = [(128, 128, 16), (64, 64, 16), (128, 64, 16), (64, 64, 32)]
    else:
        tiles = [(128, 256, 64), (128, 128, 64), (256, 128, 64), (64, 128, 64), (64, 64, 64)]
    fitting = [tile for tile in tiles if tile[0] <= 2 * _size(program, product.rows) and tile[1] <= 2 * _size(program, product.columns)]
    fitting = [tile for tile in fitting if not small or tile[0] * tile[1] <= 128 * 128] or [tiles[-1]]
    # The largest tile that still gives every multiprocessor something to do reads its operands least often.
    if choices["split"] == "none":
        fitting.sort(key=lambda tile: _tiles(program, product, tile[0], tile[1]) < processors)
    if min(_size(program, product.rows), _size(program, product.columns)) <= 16:
        fitting = [(16, 128, 64), (16, 64, 128), (16, 64, 64)] if _size(program, product.rows) <= 16 else [(128, 16, 64), (64, 16, 128)]
    tune["TILE"] = list(dict.fromkeys(fitting))
    rows, columns, _ = tune["TILE"][0]
    tune["NUM_WARPS"] = [8, 4] if rows * columns >= (128 * 64 if pair else 128 * 128) else [4, 8]
    tune["NUM_STAGES"] = [2, 1] if small else [2, 3, 1] if shallow else [3, 4, 2]
    if choices["order"] == "grouped":
        tune["GROUP"] = [8, 4, 16]
    if choices["split"] == "splitk":
        rows, columns, step = tune["TILE"][0]
        tiles_at_once = _tiles(program, product, rows, columns) // (2 if pair else 1)
        tune["SPLIT"] = split_values(task, tiles_at_once, _size(program, product.inner), step)
    return tune


def float32_choices(task: Task) -> dict[str, tuple[Any, ...]]:
    """How float32 operands are multiplied, and by how many programs of a multiprocessor at once."""
    if get_target(task.target).backend == "hip":
        return {"precision": precisions(task)}
    return {"residents": ("two", "one"), "precision": precisions(task)}


def precisions(task: Task) -> tuple[str, ...]:
    """The ways to multiply float32 that the Task's policy and target allow, the most promising first."""
    ways = ["bf16x6", "ieee"] if get_target(task.target).backend == "hip" else ["bf16x6", "tf32x3", "ieee"]
    coarse = task.tf32 or task.precision == "half" or task.matmul_precision != "highest"
    return ("tf32", *ways) if coarse else tuple(ways)


def split_values(task: Task, tiles: int, inner: int, step: int) -> list[int]:
    """How many programs share a tile's inner dimension: about as many as fill the card, each with some steps to do."""
    most = max(2, min(128, inner // (4 * step)))
    best = max(2, min(most, 1 << (max(1, get_target(task.target).multiprocessors // max(tiles, 1)).bit_length() - 1)))
    return list(dict.fromkeys([best, max(2, best // 2), min(2 * most, best * 2)]))


def _size(program: Program, axis: Dim) -> int:
    return program.elements(axis)


def _tiles(program: Program, product: Product, rows: int, columns: int) -> int:
    down, across = -(-_size(program, product.rows) // rows), -(-_size(program, product.columns) // columns)
    return down * across * _size(program, product.batch)


PRECISIONS = {
    ("residents", "two"): "tiles whose registers leave room for a second program: one splits its operands while the other multiplies",
    ("residents", "one"): "the largest tiles, which read their operands least often, one program a multiprocessor",
    ("precision", "ieee"): "float32 products exactly, without tensor cores",
    ("precision", "tf32x3"): "float32 operands in two TF32 parts each, whose three products on tensor cores keep float32's digits",
    ("precision", "bf16x6"): "float32 operands in three bfloat16 parts each, whose six products on tensor cores keep float32's digits",
    ("precision", SPLIT_AHEAD): "the same three parts, made once by a kernel of its own, so that the product's tiles are only multiplied",
    ("precision", "tf32"): "TF32 tensor cores, as the precision policy allows",
}
"""What the ways to multiply float32 mean."""

WAYS = {"residents": TILES, "precision": ALGORITHM}
"""The islands' roles of `float32_choices`."""


MATMUL = Expert(
    "matmul", CARD, _fits, _choices, _write,
    roles={"split": ALGORITHM, **WAYS, "order": TRAFFIC, "edges": FUSION},
    reasons={
        ("split", "none"): "each tile walks the whole inner dimension, in one launch",
        ("split", "splitk"): "several programs share a tile's inner dimension, which fills the card when tiles are few",
        ("order", "grouped"): "tiles run in groups of a few rows, so that their operands meet in L2",
        ("order", "plain"): "tiles run row by row: less index arithmetic",
        ("edges", "mask"): "loads past the edges are masked",
        ("edges", "wrap"): "loads past the edges wrap around, which spares the mask; what they give is never stored",
        **PRECISIONS,
    },
)  # fmt: skip
