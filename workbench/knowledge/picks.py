"""One element of a row, picked by its position, is loaded alone: no sum over the row with every other element masked.

"The sum over the row of ``where(column == position, f(row), 0)``" is how one-hot products, a loss's target and ``gather`` are lowered.
It is f at one element, so the loads that f is made from are repeated at that element, and the row need not be read again for it.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.knowledge.axes import Dim, UnsupportedError
from workbench.knowledge.program import Program, Ref, Value


def resolve_picks(program: Program) -> Program:
    """The program with every such sum replaced by the element that it picks; 0 where the position lies outside of the row."""
    values: list[Value] = []
    picker = _Picker(program, values)
    for value in program.values:
        values.append(picker.resolved(value))
    changed = replace(program, values=tuple(values))
    return replace(changed, values=tuple(changed.needed([output.value.id for output in program.outputs if isinstance(output.value, Ref)])))


class _Picker:
    """Writes copies of values at picked positions to the end of `values`, each once."""

    def __init__(self, program: Program, values: list[Value]) -> None:
        self._program, self._values = program, values
        self._fresh = max((value.id for value in program.values), default=0) + 1
        self._known: dict[tuple[int, int], Ref | None] = {}
        self._inside: dict[int, Ref] = {}

    def resolved(self, value: Value) -> Value:
        if value.op == "before":
            return self._moved(value)
        found = self._match(value)
        if found is None:
            return value
        position, element = found
        copied = element if not isinstance(element, Ref) else self._at(element.id, position, frozenset(value.over))
        if copied is None:
            return value
        inside = self._within(position, value)
        return replace(value, kind="map", op="where", args=(inside, copied, 0.0), over=())

    def _moved(self, value: Value) -> Value:
        """The element before each one, loaded anew from where it lies."""
        source, place, neutral = value.args
        copied = self._at(source.id, place.id, frozenset(value.over), value.over)
        if copied is None:
            raise UnsupportedError("an exclusive scan of what is reduced before")
        exists = self._add(Value(0, "map", "ge", (place, 0), "bool", deps=frozenset(value.over)))
        return replace(value, op="where", args=(exists, copied, neutral), over=())

    def _match(self, value: Value) -> tuple[int, Ref | float] | None:
        """The position and the element of a sum that picks."""
        if value.kind != "reduce" or value.op != "sum" or not value.dtype.startswith("float"):
            return None
        chosen = self._program[value.refs[0]]
        if chosen.op != "where" or not isinstance(chosen.args[0], Ref) or isinstance(chosen.args[2], Ref) or chosen.args[2] != 0:
            return None
        hit = self._program[chosen.args[0].id]
        if hit.op != "eq" or len(hit.refs) != 2:
            return None
        for index, position in (hit.refs, hit.refs[::-1]):
            if self._program[index].kind == "index" and self._program[index].over == value.over:
                return None if self._program[position].deps & set(value.over) else (position, chosen.args[1])
        return None

    def _at(self, id: int, position: int, over: frozenset[int], before: Dim = ()) -> Ref | None:
        """The value at the picked element, or at the one `before` along these atoms; None where that element alone does not tell it."""
        value = self._program[id]
        if not value.deps & over:
            return Ref(id)
        if (id, position) not in self._known:
            self._known[id, position] = self._copy(value, position, over, before)
        return self._known[id, position]

    def _copy(self, value: Value, position: int, over: frozenset[int], before: Dim) -> Ref | None:
        if value.kind == "load" and before:
            return self._add(replace(value, over=before, before=True))
        deps = (value.deps - over) | self._program[position].deps
        if value.kind == "load":
            index = next(found for found in self._program.of_kind("index") if set(found.over) == over)
            inside = self._within(position, index)
            return self._add(replace(value, kind="gather", args=(Ref(position), inside), over=index.over, deps=deps))
        if value.kind == "index":
            return Ref(position) if set(value.over) == over else None
        if value.kind != "map":
            return None
        args = [self._at(arg.id, position, over, before) if isinstance(arg, Ref) else arg for arg in value.args]
        return None if any(arg is None for arg in args) else self._add(replace(value, args=tuple(args), deps=deps))

    def _within(self, position: int, along: Value) -> Ref:
        if position not in self._inside:
            size = self._add(Value(0, "size", dtype="int32", over=along.over))
            deps = self._program[position].deps
            self._inside[position] = self._add(Value(0, "map", "inside", (Ref(position), size), "bool", deps=deps))
        return self._inside[position]

    def _add(self, value: Value) -> Ref:
        self._values.append(replace(value, id=self._fresh))
        self._fresh += 1
        return Ref(self._values[-1].id)
