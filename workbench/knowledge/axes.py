"""Which dimensions of which tensors are walked by the same loop.

Broadcasting, transposes and reshapes all disappear here: a dimension is a tuple of *atoms* (outermost first), and two dimensions
that an op combines elementwise get the same atoms. A dimension of size 1 has none, and a reshape that cuts a dimension in two
splits its atom, wherever that atom occurs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Dim = tuple[int, ...]
"""One dimension of a tensor: the atoms that it is made of, outermost first."""


class UnsupportedError(Exception):
    """The graph holds something that the experts don't know. The message says what; no expert then matches."""


class Axes:
    """Atoms with their captured sizes, unified as the ops of a graph tell which of them are the same."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._same: list[int] = []
        self._parts: dict[int, tuple[int, int]] = {}
        self.fixed: set[int] = set()
        """Atoms whose size is a number in the op, such as the groups of a group norm, not a property of its inputs."""

    def new(self, size: int, fixed: bool = False) -> Dim:
        """A fresh dimension of that size."""
        if size == 0:
            raise UnsupportedError("a tensor without elements")
        if size == 1:
            return ()
        self._sizes.append(size)
        self._same.append(len(self._same))
        if fixed:
            self.fixed.add(len(self._same) - 1)
        return (len(self._same) - 1,)

    def resolve(self, dim: Iterable[int]) -> Dim:
        """The atoms that a dimension consists of by now."""
        found: list[int] = []
        for atom in dim:
            root = self._root(atom)
            found.extend(self.resolve(self._parts[root]) if root in self._parts else (root,))
        return tuple(found)

    def size(self, dim: Iterable[int]) -> int:
        """Captured elements along a dimension."""
        return math.prod(self._sizes[atom] for atom in self.resolve(dim))

    def unify(self, left: Dim, right: Dim) -> None:
        """Both dimensions are walked by the same loop from now on.

        Raises:
            UnsupportedError: their sizes differ, or can't be cut at common places.
        """
        if self.size(left) != self.size(right):
            raise UnsupportedError(f"sizes {self.size(left)} and {self.size(right)} don't fit together")
        ours, theirs = list(self.resolve(left)), list(self.resolve(right))
        while ours and theirs:
            ours[:1], theirs[:1] = self.resolve(ours[:1]), self.resolve(theirs[:1])
            one, other = self._sizes[ours[0]], self._sizes[theirs[0]]
            if one > other:
                self._cut(ours[0], other)
            elif one < other:
                self._cut(theirs[0], one)
            else:
                self._join(ours.pop(0), theirs.pop(0))

    def regroup(self, dims: Sequence[Dim], shape: Sequence[int]) -> tuple[Dim, ...]:
        """The dimensions of a reshape to `shape`, splitting atoms where the new shape cuts through them."""
        rest = [atom for dim in dims for atom in self.resolve(dim)]
        result: list[Dim] = []
        for size in shape:
            taken: list[int] = []
            while self.size(taken) < size:
                if not rest:
                    raise UnsupportedError("a reshape to more elements than there are")
                rest[:1] = self.resolve(rest[:1])
                wanted = size // self.size(taken)
                if self._sizes[rest[0]] > wanted:
                    self._cut(rest[0], wanted)
                else:
                    taken.append(rest.pop(0))
            if self.size(taken) != size:
                raise UnsupportedError("a reshape that cuts dimensions at sizes that don't divide them")
            result.append(tuple(taken))
        return tuple(result)

    def _root(self, atom: int) -> int:
        while self._same[atom] != atom:
            atom = self._same[atom]
        return atom

    def _join(self, left: int, right: int) -> None:
        left, right = self._root(left), self._root(right)
        if left != right:
            self._same[right] = left
            if right in self.fixed:
                self.fixed.add(left)

    def _cut(self, atom: int, outer: int) -> None:
        size = self._sizes[atom]
        if outer == 0 or size % outer:
            raise UnsupportedError(f"a dimension of {size} cut at {outer}")
        (first,), (second,) = self.new(outer), self.new(size // outer)
        self._parts[atom] = (first, second)
