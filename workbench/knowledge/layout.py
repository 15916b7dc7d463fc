"""Where the elements lie: a kernel's loop axes, and the offset of each tensor's element in terms of their coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from workbench.knowledge.axes import Dim, UnsupportedError


@dataclass(frozen=True)
class LoopAxis:
    """One axis that a kernel walks.

    Attributes:
        name: the variable that holds its coordinate.
        size: the kernel's argument that holds its length.
        groups: its atoms, outermost first, grouped so that every tensor has a group's atoms side by side or not at all.
    """

    name: str
    size: str
    groups: tuple[Dim, ...]

    @property
    def atoms(self) -> Dim:
        return tuple(atom for group in self.groups for atom in group)

    @property
    def is_split(self) -> bool:
        """Whether some tensor has only a part of it, so that coordinates of the groups are needed."""
        return len(self.groups) > 1

    def group_size(self, place: int) -> str:
        return f"{self.size}_{place}" if self.is_split else self.size

    def coordinate(self, place: int) -> str:
        return f"{self.name.removesuffix('s')}_{place}" if self.is_split else self.name


@dataclass(frozen=True)
class Layout:
    """The axes of one kernel. Tensors are dense in the order of their atoms."""

    axes: tuple[LoopAxis, ...]

    def offset(self, atoms: Dim) -> str:
        """The offset of the element at the current coordinates, in elements, such as ``row * N + cols``; ``0`` for a scalar."""
        terms: list[str] = []
        stride: list[str] = []
        for axis, place in reversed(self._runs(atoms)):
            coordinate = axis.name if place is None else axis.coordinate(place)
            factor = " * ".join(stride)
            terms.append(f"{coordinate} * {factor}" if len(stride) == 1 else f"{coordinate} * ({factor})" if stride else coordinate)
            sizes = [axis.group_size(place)] if place is not None else [axis.size]
            stride = sizes + stride
        return " + ".join(reversed(terms)) or "0"

    def parts_needed(self, tensors: Iterable[Dim]) -> set[tuple[str, int]]:
        """Which groups' own coordinates the offsets of these tensors use, as (axis name, place)."""
        return {(axis.name, place) for atoms in tensors for axis, place in self._runs(atoms) if place is not None and axis.is_split}

    def part_lines(self, axis: LoopAxis, tensors: Iterable[Dim]) -> Iterator[str]:
        """Statements that cut an axis's coordinate into those of its groups, where they are needed."""
        needed = self.parts_needed(tensors)
        for place in range(len(axis.groups)):
            if (axis.name, place) not in needed:
                continue
            inner = [axis.group_size(later) for later in range(place + 1, len(axis.groups))]
            text = axis.name
            if inner:
                text += f" // {inner[0]}" if len(inner) == 1 else f" // ({' * '.join(inner)})"
            if place > 0:
                text += f" % {axis.group_size(place)}"
            yield f"{axis.coordinate(place)} = {text}"

    def _runs(self, atoms: Dim) -> list[tuple[LoopAxis, int | None]]:
        """A tensor's atoms as whole axes (place None) and single groups, in the order of memory."""
        runs: list[tuple[LoopAxis, int | None]] = []
        at = 0
        while at < len(atoms):
            for axis in self.axes:
                if axis.atoms and atoms[at : at + len(axis.atoms)] == axis.atoms:
                    runs.append((axis, None if axis.is_split else 0))
                    at += len(axis.atoms)
                    break
                place = next((p for p, group in enumerate(axis.groups) if group and atoms[at : at + len(group)] == group), None)
                if place is not None:
                    runs.append((axis, place))
                    at += len(axis.groups[place])
                    break
            else:
                raise UnsupportedError("a tensor whose dimensions cross the kernel's axes")
        return runs


def group_atoms(atoms: Sequence[int], tensors: Sequence[Dim]) -> tuple[Dim, ...]:
    """Atoms in order, neighbours put together where every tensor that has one has the other right behind it."""
    groups: list[Dim] = []
    for atom in atoms:
        if groups and all(_adjacent(groups[-1][-1], atom, tensor) for tensor in tensors):
            groups[-1] = (*groups[-1], atom)
        else:
            groups.append((atom,))
    return tuple(groups)


def _adjacent(first: int, second: int, tensor: Dim) -> bool:
    if first not in tensor and second not in tensor:
        return True
    return first in tensor and second in tensor and tensor.index(second) == tensor.index(first) + 1
