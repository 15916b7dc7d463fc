"""An op of several heavy steps, cut into stages: each a program of its own, which hands its results to the next through memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from workbench.knowledge.axes import Dim, UnsupportedError
from workbench.knowledge.program import Access, Output, Program, Ref, Value

HEAVY = ("dot", "window", "conv")
Kind = Literal["heavy", "rows", "maps", "library"]


@dataclass(frozen=True)
class Link:
    """One stage.

    Attributes:
        kind: heavy (a product, window or convolution with what follows elementwise), rows (reductions over the same axes and what lies
            between them), maps (elementwise), library (a convolution that PyTorch's own kernels compute).
        results: a name for each output of its program that is no argument.
    """

    kind: Kind
    program: Program
    results: tuple[str, ...]


def cut(program: Program, library: bool = False, nest: bool = True) -> tuple[Link, ...]:
    """The stages in the order in which they run.

    Args:
        library: convolutions are left to PyTorch.
        nest: reductions over rows, and then over what is left of them, are one stage.

    Raises:
        UnsupportedError: what one stage needs can't be handed over.
    """
    return tuple(_Cutter(program, library, nest).links())


class _Cutter:
    """Gives each value its stage. Stage 0 is everywhere: arguments, and maps that every reader computes for itself."""

    def __init__(self, program: Program, library: bool, nest: bool) -> None:
        self.program, self.library, self.nest = program, library, nest
        self.stage: dict[int, int] = {}
        self.level: dict[int, int] = {}
        """The last stage that must have run before a value is known."""
        self.kinds: list[Kind] = ["maps"]
        self.heads: dict[int, Value] = {}
        self.over: dict[int, frozenset[int]] = {}
        for value in program.values:
            self._place(value)
        loose = [output.value.id for output in program.outputs if isinstance(output.value, Ref) and not self.stage[output.value.id]]
        for id in dict.fromkeys(loose):
            self._settle(id)

    def _place(self, value: Value) -> None:
        before = max((self.level[ref] for ref in value.refs), default=0)
        stage = 0
        if value.kind in HEAVY:
            for ref in value.refs:
                if self.program[ref].kind != "load" and not self.stage[ref]:
                    self._settle(ref)
            stage = self._new("library" if self.library and value.kind == "conv" else "heavy")
            self.heads[stage] = value
        elif value.kind in ("reduce", "scan"):
            stage = self._rows(before, frozenset(value.over))
        elif value.kind in ("map", "gather"):
            # What follows elementwise is done where its largest operand is at hand.
            stage = max((self.stage[ref] for ref in value.refs), default=0)
            kind = self.kinds[stage] if stage else "maps"
            if stage < before or kind == "library" or (kind == "heavy" and not value.deps <= self.heads[stage].deps):
                stage = 0
        self.stage[value.id] = stage
        self.level[value.id] = max(before, stage)

    def _new(self, kind: Kind) -> int:
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def _rows(self, before: int, over: frozenset[int]) -> int:
        """The stage of a reduction: one that is there, if it is late enough and its axes fit."""
        last = max((stage for stage, kind in enumerate(self.kinds) if kind == "rows"), default=0)
        nested = self.nest and last and (self.over[last] <= over or over <= self.over[last])
        if last >= max(before, 1) and (nested or self.over[last] == over):
            return last
        stage = self._new("rows")
        self.over[stage] = over
        return stage

    def _settle(self, id: int) -> None:
        """Gives a stage to what was to be computed by its readers."""
        last = len(self.kinds) - 1
        if last and self.kinds[last] == "maps" and last >= self.level[id]:
            stage = last
        else:
            stage = self._new("maps")
        self.stage[id] = self.level[id] = stage

    # -- the stages' programs -----------------------------------------------------------------------------------------------------

    def links(self) -> Iterator[Link]:
        stages = range(1, len(self.kinds))
        needs = {stage: self._needs(stage) for stage in stages}
        names = {id: f"step_{number}" for number, id in enumerate(sorted({id for ids in needs.values() for id in ids}), start=1)}
        for stage in stages:
            finals = [output for output in self.program.outputs if isinstance(output.value, Ref) and self.stage[output.value.id] == stage]
            handed = [self._handed(id) for id in names if self.stage[id] == stage]
            outputs = (*finals, *handed)
            if not outputs:
                continue
            known = {id: self._loaded(id, names[id]) for id in needs[stage]}
            targets = [output.value.id for output in outputs]
            values = (*known.values(), *self.program.needed(targets, stop=set(known)))
            read = {value.input for value in values if value.kind in ("load", "gather")}
            dims = {id: self._dims(id, stage) for id in known}
            accesses = tuple(access for access in self.program.accesses if access.input in read)
            accesses += tuple(Access(names[id], dims[id], tuple(range(len(dims[id]))), True, self._dtype(self.program[id])) for id in known)
            counters = self.program.counters if any(output.into for output in finals) else ()
            part = replace(self.program, values=values, outputs=outputs, accesses=accesses, counters=counters)
            read = {access.input for access in accesses}
            outputs = tuple(output if output.dtype_of in read else replace(output, dtype_of="") for output in outputs)
            part = replace(part, outputs=outputs)
            results = [f"out_{self.program.outputs.index(output) + 1}" for output in finals if not output.into]
            yield Link(self.kinds[stage], part, (*results, *(names[output.value.id] for output in handed)))

    def _needs(self, stage: int) -> list[int]:
        """What comes from earlier stages."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        queue = [ref for value in self.program.values if self.stage[value.id] == stage for ref in value.refs]
        while queue:
            id = queue.pop()
            if id in seen or self.stage[id] == stage:
                continue
            seen.add(id)
            if self.stage[id]:
                found[id] = None
            else:
                queue += self.program[id].refs
        return sorted(found)

    def _order(self, id: int) -> Dim:
        """The order in memory of what is handed over: that of its stage's head, or of the largest argument."""
        value = self.program[id]
        head = self.heads.get(self.stage[id])
        largest = [head.atoms] if head else []
        loads = (other for other in self.program.needed([id]) if other.kind in ("load", *HEAVY) and other.id != id)
        largest += sorted((other.atoms for other in loads), key=lambda atoms: -self.program.elements(set(atoms) & value.deps))
        order = dict.fromkeys(atom for atoms in largest for atom in atoms if atom in value.deps)
        if set(order) != value.deps:
            raise UnsupportedError("a step whose order in memory nothing tells")
        return tuple(order)

    def _dims(self, id: int, stage: int) -> tuple[Dim, ...]:
        """Its dimensions as the stage that reads it sees them: single atoms, or those of the image that a window slides over."""
        order = self._order(id)
        head = self.heads.get(stage)
        if head is not None and head.kind in ("window", "conv") and head.refs[0] == id:
            if tuple(atom for dim in head.dims for atom in dim) != order:
                raise UnsupportedError("a window over something that is computed in another order")
            return head.dims
        return self._written(id)

    def _dtype(self, value: Value) -> str:
        """Steps as long as the op's tensors are kept in their dtype, as PyTorch keeps them; statistics in their own."""
        floats = {access.dtype for access in self.program.accesses if access.dtype in ("float16", "bfloat16", "float32", "float64")}
        statistic = value.kind == "reduce" or (self.kinds[self.stage[value.id]] == "rows" and self._is_small(value))
        return next(iter(floats)) if len(floats) == 1 and value.dtype == "float32" and not statistic else value.dtype

    def _is_small(self, value: Value) -> bool:
        return not any(value.deps & set(other.over) for other in self._members(self.stage[value.id]) if other.kind in ("reduce", "scan"))

    def _members(self, stage: int) -> Iterable[Value]:
        return (value for value in self.program.values if self.stage[value.id] == stage)

    def _loaded(self, id: int, name: str) -> Value:
        value = self.program[id]
        return replace(value, kind="load", op="", args=(), over=(), atoms=self._order(id), input=name, window=None, dims=(), groups=1)

    def _handed(self, id: int) -> Output:
        dims = self._written(id)
        return Output(Ref(id), dims, self._dtype(self.program[id]), tuple(range(len(dims))))

    def _written(self, id: int) -> tuple[Dim, ...]:
        """The dimensions in which it lies in memory: single atoms, or those that the library gives its convolutions."""
        value, order = self.program[id], self._order(id)
        if value.kind != "conv" or not self.library:
            return tuple((atom,) for atom in order)
        batch, rank = value.dims[0], len(value.over)
        return (batch, order[len(batch) : -rank], *((atom,) for atom in order[-rank:]))
