"""What a row program must do: which axes are reduced, in which order reductions depend on each other, and which can share a pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from workbench.knowledge.axes import Dim, UnsupportedError
from workbench.knowledge.layout import group_atoms
from workbench.knowledge.program import Output, Program, Ref, Value

NEUTRAL: Mapping[str, float] = {
    "sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf, "argmax": -math.inf, "argmin": math.inf, "sum_from_end": 0.0,
    "prod_from_end": 1.0,
}  # fmt: skip
"""What changes nothing when it is reduced with."""


@dataclass(frozen=True)
class Track:
    """What one pass over a row can find out together.

    Kinds: plain (one reduction), online (a maximum and the sum of exponentials below it), moments (a mean and the sum of squared
    deviations from it).

    Attributes:
        source: the value that is reduced; for online and moments, the element before exp or subtraction.
        result: the reduction, or the maximum, or the mean. `second`: the sum of exponentials, or of squares.
        total: for moments: the sum that the mean divides.
    """

    kind: Literal["plain", "online", "moments"]
    source: int
    result: int
    second: int = -1
    total: int = -1


@dataclass(frozen=True)
class RowPlan:
    """A program whose reductions all run over the same axes.

    Attributes:
        kept: atoms of the rows, `reduced`: atoms along a row, both in the order of memory.
        pads: what masked lanes of a load get.
    """

    program: Program
    kept: Dim
    reduced: Dim
    pads: Mapping[int, float]

    @property
    def kept_groups(self) -> tuple[Dim, ...]:
        return group_atoms(self.kept, self.tensors)

    @property
    def reduced_groups(self) -> tuple[Dim, ...]:
        return group_atoms(self.reduced, self.tensors)

    @property
    def tensors(self) -> list[Dim]:
        return [value.atoms for value in self.program.of_kind("load", "gather")] + [output.atoms for output in self.program.outputs]

    @property
    def rows(self) -> int:
        return self.program.elements(self.kept)

    @property
    def length(self) -> int:
        return self.program.elements(self.reduced)

    @property
    def full_outputs(self) -> tuple[Output, ...]:
        return tuple(output for output in self.program.outputs if set(output.atoms) & set(self.reduced))

    @property
    def row_outputs(self) -> tuple[Output, ...]:
        return tuple(output for output in self.program.outputs if not set(output.atoms) & set(self.reduced))

    @property
    def contiguous(self) -> bool:
        """Whether neighbours along a row are neighbours in memory, in the largest argument."""
        main = max(self.program.of_kind("load"), key=lambda value: self.program.elements(value.atoms))
        return bool(main.atoms) and main.atoms[-1] in self.reduced

    def is_full(self, value: Value) -> bool:
        return set(self.kept) | set(self.reduced) == value.deps

    def along_row(self, value: Value) -> bool:
        return bool(value.deps & set(self.reduced))

    def tracks(self, online: bool, moments: bool) -> tuple[tuple[Track, ...], ...]:
        """The passes, each with what it finds out; a pass depends on the ones before. Pairs share one pass where that is wanted."""
        program = self.program
        pairs: dict[int, Track] = {}
        for value in program.of_kind("reduce"):
            if (online and (found := _online(program, value))) or (moments and (found := _moments(program, value))):
                pairs[value.id] = found
        partners = {track.total if track.kind == "moments" else track.result for track in pairs.values()}
        level: dict[int, int] = {}
        passes: dict[int, list[Track]] = {}
        for value in program.values:
            below = max((level[ref] for ref in value.refs), default=0)
            if value.kind in ("reduce", "scan"):
                pair = pairs.get(value.id)
                if pair is not None:
                    below = level[program[pair.source].id]
                # A running sum is found in the same pass as what reads it.
                below += value.kind == "reduce"
                if value.kind == "reduce" and value.id not in partners:
                    track = pair or Track("plain", value.refs[0], value.id)
                    passes.setdefault(below, []).append(track)
            level[value.id] = below
        return tuple(tuple(passes[number]) for number in sorted(passes))

    def deep(self, tracks: Sequence[Track], choices: Mapping[str, Any]) -> bool:
        """Whether a pass over one row's blocks has several elements of each lane in a block: see `row_state.Online`."""
        one = choices["rows"] == "one" or not self.kept
        return one and choices.get("online") == "lanes" and choices["passes"] != "row" and all(track.kind == "online" for track in tracks)

    def masked(self, id: int) -> float | None:
        """What a masked lane holds of this value; None where that is not known."""
        value = self.program[id]
        if value.kind == "load":
            return self.pads.get(id) if self.along_row(value) else None
        if value.kind != "map":
            return None
        args = [self.masked(arg.id) if isinstance(arg, Ref) else arg for arg in value.args]
        if value.op == "mul" and 0 in args:
            return 0.0
        if value.op in ("add", "sub") and args[0] == -math.inf and (args[1] is None or abs(args[1]) != math.inf):
            return -math.inf
        if any(arg is None for arg in args) or not all(isinstance(arg, (int, float)) for arg in args):
            return None
        try:
            return _FOLD[value.op](*args) if value.op in _FOLD else None
        except (ValueError, ZeroDivisionError, OverflowError):
            return None


_FOLD: Mapping[str, Callable[..., float]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "exp": lambda x: math.exp(x), "abs": lambda x: abs(x), "neg": lambda x: -x, "sqrt": lambda x: math.sqrt(x), "cast": lambda x: x,
    "at_least": lambda x, low: max(x, low), "at_most": lambda x, high: min(x, high),
}  # fmt: skip


def plan_rows(program: Program) -> RowPlan:
    """The plan of a program whose reductions agree on their axes.

    Raises:
        UnsupportedError: there is no reduction, they disagree, or a tensor is not arranged in rows.
    """
    loops = program.of_kind("reduce", "scan")
    if not loops or program.of_kind("dot", "window", "conv"):
        raise UnsupportedError("it reduces nothing")
    over = set(loops[0].over)
    if any(set(value.over) != over for value in loops):
        raise UnsupportedError("its reductions run over different dimensions")
    order = list(_memory_order(program))
    for atoms in [output.atoms for output in program.outputs]:
        order += [atom for atom in atoms if atom not in order]
    reduced = tuple(atom for atom in order if atom in over)
    kept = tuple(atom for atom in order if atom not in over)
    for value in program.of_kind("index", "scan", "gather"):
        if value.over != reduced:
            raise UnsupportedError("it needs positions along dimensions that don't lie side by side")
    if any(value.op.startswith("arg") and value.over != reduced for value in loops):
        raise UnsupportedError("it needs positions in another order than that of memory")
    if any(not set(output.atoms) >= set(kept) for output in program.outputs):
        raise UnsupportedError("a result that lacks a dimension of the rows")
    return RowPlan(program, kept, reduced, _pads(program, over))


@dataclass(frozen=True)
class Stage:
    """One row program of several. `handed` outputs go to the next stage, under the name by which that loads them."""

    program: Program
    handed: Mapping[Output, str] = field(default_factory=dict)


def stages(program: Program, depth: int = 0) -> tuple[Stage, ...]:
    """The program cut where a later reduction runs over other axes than the first: each stage is a row program of its own, and hands
    on what has one element a row.
    """
    program = _nest(program)
    loops = program.of_kind("reduce", "scan")
    if not loops:
        return (Stage(program),)
    over = set(loops[0].over)
    early: set[int] = set()
    tainted: set[int] = set()
    for value in program.values:
        fits = value.kind not in ("reduce", "scan", "index", "gather") or set(value.over) == over
        if fits and all(ref in early for ref in value.refs):
            early.add(value.id)
            if value.kind in ("reduce", "scan", "gather") or any(ref in tainted for ref in value.refs):
                tainted.add(value.id)
    late = [value for value in program.values if value.id not in early]
    if not late:
        return (Stage(program),)
    cut = sorted({ref for value in late for ref in value.refs if ref in tainted})
    if not cut:
        raise UnsupportedError("independent reductions over different dimensions")
    if any(program[id].deps & over for id in cut):
        raise UnsupportedError("a whole intermediate tensor between reductions over different dimensions")
    outputs_late = [output for output in program.outputs if isinstance(output.value, Ref) and output.value.id not in early]
    outputs_early = [output for output in program.outputs if output not in outputs_late]
    handed: dict[Output, str] = {}
    known: dict[int, Value] = {}
    for id in cut:
        value = program[id]
        atoms = tuple(atom for atom in _memory_order(program) if atom in value.deps)
        name = f"per_row_{depth + 1}_{len(handed) + 1}" if depth else f"per_row_{len(handed) + 1}" if handed else "per_row"
        handed[Output(Ref(id), tuple((atom,) for atom in atoms), value.dtype, tuple(range(len(atoms))))] = name
        known[id] = replace(value, kind="load", op="", args=(), over=(), atoms=atoms, input=name)
    first_ids = [output.value.id for output in [*outputs_early, *handed] if isinstance(output.value, Ref)]
    first = replace(program, values=tuple(program.needed(first_ids)), outputs=(*outputs_early, *handed))
    rest = program.needed([output.value.id for output in outputs_late], stop=set(cut))
    second = replace(program, values=(*known.values(), *rest), outputs=tuple(outputs_late))
    return (Stage(first, handed), *stages(second, depth + 1))


def _nest(program: Program) -> Program:
    """A reduction over rows and columns together, where another one runs along the rows only, becomes two: along the rows first."""
    loops = program.of_kind("reduce")
    overs: list[Dim] = sorted((value.over for value in loops), key=len)
    inner = set(overs[0]) if overs else set()
    values: list[Value] = []
    fresh = max((value.id for value in program.values), default=0) + 1
    for value in program.values:
        if value.kind == "reduce" and inner < set(value.over) and not value.op.startswith("arg"):
            first = tuple(atom for atom in value.over if atom in inner)
            rest = tuple(atom for atom in value.over if atom not in inner)
            values.append(replace(value, id=fresh, over=first, deps=value.deps | set(rest)))
            value = replace(value, args=(Ref(fresh),), over=rest)
            fresh += 1
        values.append(value)
    return replace(program, values=tuple(values))


def _memory_order(program: Program) -> Dim:
    main = max(program.of_kind("load"), key=lambda value: (program.elements(value.atoms), len(value.atoms)))
    rest = [atom for value in program.of_kind("load") for atom in value.atoms if atom not in main.atoms]
    return (*main.atoms, *dict.fromkeys(rest))


def _pads(program: Program, over: set[int]) -> dict[int, float]:
    """Masked lanes of a load hold what its reduction ignores: minus infinity under a maximum, else zero."""
    pads = {value.id: 0.0 for value in program.of_kind("load") if value.deps & over}
    for value in program.of_kind("reduce"):
        source = value.refs[0]
        if source in pads and value.op in ("max", "argmax", "min", "argmin"):
            pads[source] = NEUTRAL[value.op]
    return pads


def _online(program: Program, value: Value) -> Track | None:
    """sum(exp(x - max(x)))."""
    power = program[value.refs[0]]
    if value.op != "sum" or power.op != "exp":
        return None
    shifted = program[power.refs[0]] if power.refs else None
    if shifted is None or shifted.op != "sub" or len(shifted.refs) != 2:
        return None
    source, peak = shifted.refs
    if program[peak].kind == "reduce" and program[peak].op == "max" and program[peak].refs == (source,):
        return Track("online", source, peak, value.id)
    return None


def _moments(program: Program, value: Value) -> Track | None:
    """sum((x - mean(x))²)."""
    square = program[value.refs[0]]
    if value.op != "sum" or square.op != "mul" or len(square.refs) != 2 or square.refs[0] != square.refs[1]:
        return None
    centred = program[square.refs[0]]
    if centred.op != "sub" or len(centred.refs) != 2:
        return None
    source, mean = centred.refs
    quotient = program[mean]
    if quotient.op != "div" or len(quotient.refs) != 2 or program[quotient.refs[1]].kind != "size":
        return None
    total = program[quotient.refs[0]]
    if total.kind == "reduce" and total.op == "sum" and total.refs == (source,) and program[quotient.refs[1]].over == total.over:
        return Track("moments", source, mean, value.id, total.id)
    return None
