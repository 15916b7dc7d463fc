"""Smaller shapes at which an op can still be judged: the interpreter is a thousand times slower than a GPU.

Equal sizes across the inputs form one axis. An axis is free if the reference still runs when it is changed and names its size nowhere. Free
axes shrink together to a few sets of sizes that keep what goes wrong in kernels: several programs, a partial tile, a loop over a long row.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.inputs import make_inputs
from workbench.task import InputSpec, Task, Values

SMALL = 1 << 16
"""Elements that a tensor should have at most."""

LARGE = 1 << 20
"""Elements that a tensor may have at most."""

_STRUCTURE = 8
"""Sizes below it are part of what the op is: a window, a count of groups, the pair of a complex number."""

_TIE_FROM = 16
"""Smaller numbers are equal by chance: a dimension's index, a kernel size, a count of groups."""


class Unshrinkable(Exception):
    """The op can only be run at sizes that take too long to interpret. The message says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class ShapeSet:
    """Inputs of other shapes.

    Attributes:
        name: for people, such as ``odd sizes 131×259``.
        inputs: the Task's inputs with new shapes, strides and, where they depend on a size, values.
    """

    name: str
    inputs: tuple[InputSpec, ...]


@dataclass(frozen=True)
class Recipe:
    """How big the axes of a set are: `sizes` are dealt out from the longest axis to the shortest.

    `aligned` halves sizes, so that what divides them still does; `long` gives the first size to the last axis of the first input, since
    that is what kernels loop over.
    """

    name: str
    sizes: tuple[int, ...]
    aligned: bool = False
    long: bool = False


SMALL_SIZES = "small sizes"

RECIPES = (
    # Most tiles are powers of two up to 128 where there are several axes: each of these has a partial one.
    Recipe("odd sizes", (259, 131, 67, 29, 7, 5, 3)),
    # Kernels may rely on sizes that a vector or a tile divides, as the real ones are.
    Recipe("aligned sizes", (256, 128, 64, 32, 16, 8, 4), aligned=True),
    # Loops over rows go round more than once.
    Recipe("a long axis", (4099, 13, 5, 3, 3, 3, 3), long=True),
    Recipe(SMALL_SIZES, (67, 29, 13, 7, 5, 3)),
)

NEIGHBOURS = (
    Recipe("sizes of one", (1,)),
    Recipe("one over a tile", (257, 129, 65, 33, 17)),
    Recipe("one under a tile", (255, 127, 63, 31, 15)),
)
"""Further sets, where kernels that are right by chance end: for those that are to be accepted."""


def shape_sets(task: Task) -> tuple[ShapeSet, ...]:
    """Sets of inputs, best first: with the Task's own shapes first where these are small enough.

    Raises:
        Unshrinkable: there is no way to get every tensor down to 2^20 elements.
    """
    reference = _Runner(task)
    found: list[ShapeSet] = []
    if all(_elements(spec) <= SMALL for spec in task.inputs):
        found.append(ShapeSet("the task's shapes", task.inputs))
    free = _free_axes(task, reference)
    for recipe in RECIPES:
        sizes = _fitting(task, free, recipe)
        inputs = resized(task.inputs, sizes)
        if not sizes or inputs in [known.inputs for known in found] or inputs == task.inputs:
            continue
        if max(map(_elements, inputs)) <= LARGE and reference.runs(inputs):
            longest = max((spec for spec in inputs if spec.is_tensor), key=_elements)
            found.append(ShapeSet(f"{recipe.name} {'×'.join(map(str, longest.shape))}", inputs))
    if not found:
        if max((_elements(spec) for spec in task.inputs), default=0) > LARGE:
            fixed = sorted(set(_axes(task.inputs)) - set(free), reverse=True)
            raise Unshrinkable(f"the reference runs at its own sizes only ({', '.join(map(str, fixed[:4]))})")
        found.append(ShapeSet("the task's shapes", task.inputs))
    return tuple(found)


def neighbours(task: Task) -> tuple[ShapeSet, ...]:
    """Further sets of inputs whose sizes lie just beside what kernels are cut for, and of single elements."""
    reference = _Runner(task)
    free = _free_axes(task, reference)
    found: list[ShapeSet] = []
    for recipe in NEIGHBOURS:
        sizes = dict.fromkeys(free, 1) if recipe.sizes == (1,) else _fitting(task, free, recipe)
        inputs = resized(task.inputs, sizes)
        if not sizes or inputs == task.inputs or inputs in [known.inputs for known in found]:
            continue
        if max(map(_elements, inputs)) <= LARGE and reference.runs(inputs):
            longest = max((spec for spec in inputs if spec.is_tensor), key=_elements)
            found.append(ShapeSet(f"{recipe.name} {'×'.join(map(str, longest.shape))}", inputs))
    return tuple(found)


def resized(specs: Sequence[InputSpec], sizes: Mapping[int, int]) -> tuple[InputSpec, ...]:
    """The inputs with each size replaced that `sizes` names; layouts, expanded dimensions and ties are kept.

    A Python number that equals a size changes with it, and so does the bound of integers that index the axis.
    """
    return tuple(_resized(spec, sizes) for spec in specs)


def _resized(spec: InputSpec, sizes: Mapping[int, int]) -> InputSpec:
    if not spec.is_tensor:
        value = spec.values.value
        tied = type(value) is int and value >= _TIE_FROM and value in sizes
        return replace(spec, values=replace(spec.values, value=sizes[value])) if tied else spec
    shape = tuple(sizes.get(size, size) for size in spec.shape)
    return replace(spec, shape=shape, strides=_packed(shape, spec), values=_rebound(spec.values, sizes))


def _packed(shape: tuple[int, ...], spec: InputSpec) -> tuple[int, ...]:
    """Strides in the same order of dimensions, without gaps; what was expanded stays so."""
    strides = [0] * len(shape)
    step = 1
    for dim in sorted(range(len(shape)), key=lambda dim: (spec.strides[dim], -dim)):
        if spec.strides[dim] == 0 and spec.shape[dim] != 1:
            continue
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def _rebound(values: Values, sizes: Mapping[int, int]) -> Values:
    high = values.args.get("hi")
    if values.kind != "integers" or high is None:
        return values
    # Indices were seen at capture, so their bound may lie a little under the size of what they index.
    tied = [size for size in sizes if size / 2 < high <= size]
    if not tied:
        return values
    size = min(tied)
    low = values.args.get("lo", 0)
    bound = sizes[size] if high == size else max(int(high * sizes[size] / size), int(low) + 1)
    return replace(values, args={**values.args, "hi": bound})


def _elements(spec: InputSpec) -> int:
    return math.prod(spec.shape) if spec.is_tensor else 0


def _axes(specs: Sequence[InputSpec]) -> Iterator[int]:
    """Sizes, those of the first input's last dimensions first, without repeats."""
    seen: dict[int, None] = {}
    for spec in specs:
        if spec.is_tensor:
            for size in reversed(spec.shape):
                if size > 1:
                    seen[size] = None
    yield from seen


class _Runner:
    """Runs the reference, for real on small inputs and on fake tensors at large ones."""

    def __init__(self, task: Task) -> None:
        from workbench.capture.references import load_reference

        self._reference: Callable[..., Any] = load_reference(task, device="cpu", seed=0)
        self._known: dict[tuple[tuple[int, ...], ...], bool] = {}

    def runs(self, inputs: Sequence[InputSpec]) -> bool:
        """Whether the reference takes inputs of these shapes."""
        key = tuple(spec.shape if spec.is_tensor else (hash(str(spec.values.value)),) for spec in inputs)
        if key not in self._known:
            small = all(_elements(spec) <= LARGE for spec in inputs)
            self._known[key] = self._try(lambda: self._really(inputs) if small else self._fake(inputs))
        return self._known[key]

    def _try(self, call: Callable[[], Any]) -> bool:
        import torch

        try:
            with torch.no_grad():
                call()
        except Exception:
            return False
        return True

    def _really(self, inputs: Sequence[InputSpec]) -> None:
        self._reference(*make_inputs(inputs, 0))

    def _fake(self, inputs: Sequence[InputSpec]) -> None:
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode(allow_non_fake_inputs=True):
            self._reference(
                *(
                    torch.empty_strided(spec.shape, spec.strides, dtype=getattr(torch, spec.dtype)) if spec.is_tensor else spec.values.value
                    for spec in inputs
                )
            )


def _free_axes(task: Task, reference: _Runner) -> dict[int, int]:
    """The axes that may change, each with the step that its size must be a multiple of."""
    fixed = _named_sizes(task)
    fixed |= {size for spec in task.inputs if spec.is_tensor and spec.values.kind == "bytes" for size in spec.shape}
    axes = [size for size in _axes(task.inputs) if size not in fixed and size >= _STRUCTURE]
    # Most ops take any size: then one run at small sizes settles it.
    if axes and reference.runs(resized(task.inputs, _fitting(task, dict.fromkeys(axes, 1), RECIPES[0]))):
        return dict.fromkeys(axes, 1)
    free: dict[int, int] = {}
    for axis in axes:
        step = next((step for step in (1, 2, 4, 8, 16, 32, 64, 128) if step < axis and _survives(task, reference, axis, step)), None)
        if step is not None:
            free[axis] = step
    # What is free alone may not be together: keep the axes, longest first, that can change with those before.
    together: dict[int, int] = {}
    for axis in sorted(free, reverse=True):
        tried = {**together, axis: free[axis]}
        if reference.runs(resized(task.inputs, _fitting(task, tried, RECIPES[0]))):
            together = tried
    return together


def _survives(task: Task, reference: _Runner, axis: int, step: int) -> bool:
    # Two sizes, so that one that happens to fit (a power of two that divides) proves nothing.
    return all(reference.runs(resized(task.inputs, {axis: size})) for size in (step * 3, step * 5) if size != axis)


def _fitting(task: Task, free: Mapping[int, int], recipe: Recipe) -> dict[int, int]:
    """New sizes of the free axes by a recipe, cut down until every tensor is small."""
    order = sorted(free, reverse=True)
    if recipe.long:
        first = next((size for size in _axes(task.inputs) if size in free), 0)
        if first >= 256:
            order = [first, *(axis for axis in order if axis != first)]
    sizes = {axis: _size(axis, free[axis], wanted, recipe) for axis, wanted in zip(order, _dealt(recipe, len(order)), strict=True)}
    for _ in range(64):
        largest = max(resized(task.inputs, sizes), key=_elements)
        if _elements(largest) <= SMALL:
            break
        # The next smaller size of the recipe for the longest axis of the largest tensor that can still shrink.
        able = [(sizes[axis], axis) for axis in order if sizes[axis] in largest.shape and _less(axis, free[axis], sizes[axis], recipe)]
        if not able:
            break
        current, axis = min(able) if recipe.long else max(able)
        sizes[axis] = _less(axis, free[axis], current, recipe) or current
    return sizes


def _dealt(recipe: Recipe, count: int) -> Iterable[int]:
    return [recipe.sizes[min(position, len(recipe.sizes) - 1)] for position in range(count)]


def _size(axis: int, step: int, wanted: int, recipe: Recipe) -> int:
    """The size of an axis that is to be about `wanted`: never more than it is, and a multiple of what it must be."""
    if recipe.aligned:
        # Halved as often as it takes, so that what divides it still does as far as 16.
        size = axis
        while size > wanted and size % 2 == 0 and (size // 2) % max(step, min(16, axis & -axis)) == 0:
            size //= 2
        return size
    size = wanted if step == 1 else step * max(wanted // step | 1, 3)
    if size < axis:
        return size
    # It is small already. A power of two may be what the kernel is built on, anything else has neighbours.
    return axis + step if wanted > axis and axis & (axis - 1) and not recipe.long else axis


def _less(axis: int, step: int, current: int, recipe: Recipe) -> int | None:
    smaller = [size for wanted in (*recipe.sizes, *_BETWEEN, 2) if (size := _size(axis, step, wanted, recipe)) < current]
    return max(smaller, default=None)


_BETWEEN = (2051, 1027, 515, 193)
"""Sizes to fall back to where a long axis is in a tensor twice."""


def _named_sizes(task: Task) -> set[int]:
    """Sizes that the reference writes down, or that a model was constructed with: changing them would change the op."""
    named = {item for item in _numbers(task.init_args) if item >= _TIE_FROM}
    tree = ast.parse(task.reference)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and type(node.value.value) is int
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name in ("get_inputs", "get_init_inputs"):
            continue
        for leaf in ast.walk(node):
            value = leaf.value if isinstance(leaf, ast.Constant) else constants.get(leaf.id) if isinstance(leaf, ast.Name) else None
            if type(value) is int and value >= _TIE_FROM:
                named.add(value)
    return named


def _numbers(value: Any) -> Iterator[int]:
    if type(value) is int:
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _numbers(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _numbers(item)
