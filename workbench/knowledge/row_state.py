"""What a pass over a row keeps between blocks, and how the partial states of lanes or programs are combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.emit import PLUS, TIMES, TRITON_TYPES, Expr, constant, power_of_e
from workbench.knowledge.program import Ref, Value
from workbench.knowledge.row_plan import NEUTRAL, RowPlan, Track
from workbench.knowledge.scope import Scope


@dataclass(frozen=True)
class Tile:
    """How rows and columns lie in a program's registers: one row as a vector, or several as a matrix.

    Attributes:
        rows: text of the number of rows, empty for one row.
        width: text of the number of lanes along a row.
    """

    rows: str
    width: str = "BLOCK"

    @property
    def lanes(self) -> str:
        return f"[{self.rows}, {self.width}]" if self.rows else f"[{self.width}]"

    @property
    def axis(self) -> str:
        """The arguments of a reduction along the row."""
        return "axis=1, keep_dims=True" if self.rows else "axis=0"

    def arange(self, width: str = "") -> str:
        return f"tl.arange(0, {width or self.width})" + ("[None, :]" if self.rows else "")

    def per_row(self, number: str, dtype: str) -> str:
        """A number of each row, as a loop's first value."""
        return f"tl.full([{self.rows}, 1], {number}, {dtype})" if self.rows else number

    def filled(self, number: str, dtype: str) -> str:
        return f"tl.zeros({self.lanes}, {dtype})" if number in ("0.0", "0") else f"tl.full({self.lanes}, {number}, {dtype})"

    def with_width(self, width: str) -> Tile:
        return Tile(self.rows, width)


def reduction(op: str, text: str, tile: Tile, scope: Scope) -> str:
    """A whole reduction along the row of an expression that is neutral in masked lanes."""
    if op in ("sum", "max", "min"):
        return f"tl.{op}({text}, {tile.axis})"
    if op in ("argmax", "argmin"):
        return f"tl.{op}({text}, {tile.axis})"
    if op == "prod":
        scope.needs.helpers.add("multiply")
        return f"tl.reduce({text}, {'1' if tile.rows else '0'}, multiply" + (", keep_dims=True)" if tile.rows else ")")
    raise UnsupportedError(f"a reduction by {op}")


def neutral(op: str, dtype: str) -> str:
    """The neutral element of a reduction, as text."""
    number = NEUTRAL[op]
    if dtype.startswith("float"):
        return constant(number, dtype).text
    if abs(number) == float("inf"):
        bits = 63 if dtype == "int64" else 31
        return str(-(2**bits) if number < 0 else 2**bits - 1)
    return str(int(number))


def masked_operand(plan: RowPlan, scope: Scope, value: Value, mask: str) -> str:
    """The operand of a reduction with masked lanes made neutral, if they are not already."""
    operand = scope.operand(value.args[0]).text
    known = plan.masked(value.refs[0])
    if known is not None and known == NEUTRAL[value.op]:
        return operand
    return f"tl.where({mask}, {operand}, {neutral(value.op, plan.program[value.refs[0]].dtype)})"


class State:
    """The state of one `Track`: a few variables, one element a lane.

    Subclasses name them, start them, take in a block, combine lanes, and say what the results are called.
    """

    def __init__(self, plan: RowPlan, track: Track, tile: Tile, scope: Scope) -> None:
        self.plan, self.track, self.tile = plan, track, tile
        self.value = plan.program[track.second if track.second >= 0 else track.result]
        self.dtype = TRITON_TYPES[plan.program[track.source].dtype]
        self.variables: tuple[str, ...] = ()
        self.start: list[str] = []
        """Statements before the loop."""
        self.starts: tuple[str, ...] = ()
        """The state that has seen nothing, of each variable."""

    def kept_dtypes(self) -> tuple[str, ...]:
        """Torch's dtypes of the variables, for memory that hands them to another kernel."""
        return (self.plan.program[self.track.source].dtype,) * len(self.variables)

    def update(self, scope: Scope, mask: str) -> None:
        """Takes in the block that `scope` holds."""
        raise NotImplementedError

    def combine(self, scope: Scope, tile: Tile) -> None:
        """Folds the lanes into one state a row."""
        raise NotImplementedError

    def publish(self, scope: Scope) -> None:
        """Makes the results known."""
        raise NotImplementedError


class Plain(State):
    """A sum, product, maximum or minimum: each lane reduces what it sees, and the lanes are reduced once at the end."""

    def __init__(self, plan: RowPlan, track: Track, tile: Tile, scope: Scope) -> None:
        super().__init__(plan, track, tile, scope)
        name = scope.names.new({"sum": "total", "max": "peak", "min": "least", "prod": "product"}[self.value.op])
        self.variables = (name,)
        self.starts = (neutral(self.value.op, plan.program[track.source].dtype),)
        self.start = [f"{name} = {tile.filled(self.starts[0], self.dtype)}"]

    def update(self, scope: Scope, mask: str) -> None:
        (name,) = self.variables
        operand = masked_operand(self.plan, scope, self.value, mask)
        op = self.value.op
        if op == "sum":
            scope.lines.append(f"{name} += {operand}")
        elif op == "prod":
            scope.lines.append(f"{name} *= {operand}")
        else:
            scope.lines.append(f"{name} = tl.{op}imum({name}, {operand})")

    def combine(self, scope: Scope, tile: Tile) -> None:
        (name,) = self.variables
        scope.lines.append(f"{name} = {reduction(self.value.op, name, tile, scope)}")

    def publish(self, scope: Scope) -> None:
        scope.env[self.track.result] = Expr(self.variables[0])


class Position(State):
    """The position of a maximum or minimum: each lane keeps the best it has seen; of equals, the first wins."""

    def __init__(self, plan: RowPlan, track: Track, tile: Tile, scope: Scope) -> None:
        super().__init__(plan, track, tile, scope)
        self.variables = (scope.names.new("best"), scope.names.new("place"))
        self.starts = (neutral(self.value.op, plan.program[track.source].dtype), str(2**31 - 1))
        self.start = [
            f"{self.variables[0]} = {tile.filled(self.starts[0], self.dtype)}",
            f"{self.variables[1]} = {tile.filled(self.starts[1], 'tl.int32')}",
        ]

    def update(self, scope: Scope, mask: str) -> None:
        best, place = self.variables
        operand = scope.assign("seen", masked_operand(self.plan, scope, self.value, mask)).text
        better = scope.assign("better", f"{operand} {'>' if self.value.op == 'argmax' else '<'} {best}").text
        scope.lines += [f"{best} = tl.where({better}, {operand}, {best})", f"{place} = tl.where({better}, cols, {place})"]

    def kept_dtypes(self) -> tuple[str, ...]:
        return (self.plan.program[self.track.source].dtype, "int32")

    def combine(self, scope: Scope, tile: Tile) -> None:
        best, place = self.variables
        extreme = "max" if self.value.op == "argmax" else "min"
        top = scope.assign("top", f"tl.{extreme}({best}, {tile.axis})").text
        scope.lines += [f"{place} = tl.min(tl.where({best} == {top}, {place}, {self.starts[1]}), {tile.axis})", f"{best} = {top}"]

    def publish(self, scope: Scope) -> None:
        scope.env[self.track.result] = Expr(self.variables[1])


class Online(State):
    """Maximum and sum of exponentials in one pass (Milakov and Gimelshein): when the maximum grows, what was summed shrinks by
    exp(old - new). With `lanes` each lane has a maximum of its own, so that no block waits for a reduction across lanes, at the price of
    two exponentials an element. Where a block is `deep`, of DEPTH by lanes by VECTOR elements, a lane is a thread: it finds the maximum of
    all that it has loaded, and rescales once for it.
    """

    def __init__(self, plan: RowPlan, track: Track, tile: Tile, scope: Scope, lanes: bool, deep: bool = False) -> None:
        super().__init__(plan, track, tile, scope)
        self.lanes, self.deep = lanes or deep, deep
        self.variables = (scope.names.new("peak"), scope.names.new("total"))
        self.starts = ('-float("inf")', "0.0")
        held = tile.with_width("BLOCK // VECTOR") if deep else tile
        peak = held.filled(self.starts[0], self.dtype) if self.lanes else tile.per_row(self.starts[0], self.dtype)
        self.start = [f"{self.variables[0]} = {peak}", f"{self.variables[1]} = {held.filled('0.0', self.dtype)}"]

    def update(self, scope: Scope, mask: str) -> None:
        peak, total = self.variables
        element = scope.operand(Ref(self.track.source)).text
        if self.plan.masked(self.track.source) != -float("inf"):
            element = scope.assign("seen", f'tl.where({mask}, {element}, -float("inf"))').text
        highest = element if self.lanes else f"tl.max({element}, {self.tile.axis})"
        if self.deep:
            highest = f"tl.max(tl.max({element}, axis=2), axis=0)"
        new = scope.assign("new_peak", f"tl.maximum({peak}, {highest})").text
        # Where nothing finite was seen yet, minus infinity less itself would be NaN.
        base = scope.assign("base", f'tl.where({new} == -float("inf"), 0.0, {new})').text
        power = self._exp(element, f"{base}[None, :, None]" if self.deep else base)
        if self.deep:
            power = f"tl.sum(tl.sum({scope.assign('power', power).text}, axis=2), axis=0)"
        scope.lines += [f"{total} = {total} * {self._exp(peak, base)} + {power}", f"{peak} = {new}"]

    def combine(self, scope: Scope, tile: Tile) -> None:
        peak, total = self.variables
        if not self.lanes and tile == self.tile:
            scope.lines.append(f"{total} = tl.sum({total}, {tile.axis})")
            return
        top = scope.assign("top", f"tl.max({peak}, {tile.axis})").text
        base = scope.assign("base", f'tl.where({top} == -float("inf"), 0.0, {top})').text
        scope.lines += [f"{total} = tl.sum({total} * {self._exp(peak, base)}, {tile.axis})", f"{peak} = {top}"]

    def _exp(self, element: str, base: str) -> str:
        """The text of exp(element - base)."""
        shifted = Expr(f"{element} - {base}", PLUS)
        return power_of_e(shifted).text if self.dtype == "tl.float32" else f"tl.exp({shifted.text})"

    def publish(self, scope: Scope) -> None:
        scope.env[self.track.result], scope.env[self.track.second] = Expr(self.variables[0]), Expr(self.variables[1])


class Moments(State):
    """Mean and squared deviations in one pass (Welford): each lane keeps its own, and they are merged exactly (Chan)."""

    def __init__(self, plan: RowPlan, track: Track, tile: Tile, scope: Scope) -> None:
        super().__init__(plan, track, tile, scope)
        self.variables = (scope.names.new("count"), scope.names.new("mean"), scope.names.new("spread"))
        self.steps = scope.names.new("steps")
        self.starts = ("0.0", "0.0", "0.0")
        self.start = [f"{name} = {tile.filled('0.0', self.dtype)}" for name in self.variables] + [f"{self.steps} = 0.0"]

    def update(self, scope: Scope, mask: str) -> None:
        count, mean, spread = self.variables
        element = scope.operand(Ref(self.track.source)).text
        scope.lines.append(f"{self.steps} += 1.0")
        # Every lane that sees an element now has seen one in each earlier step.
        away = scope.assign("away", f"tl.where({mask}, {element} - {mean}, 0.0)").text
        scope.lines += [
            f"{mean} += {away} * (1.0 / {self.steps})",
            f"{spread} += {away} * tl.where({mask}, {element} - {mean}, 0.0)",
            f"{count} += tl.where({mask}, 1.0, 0.0)",
        ]

    def combine(self, scope: Scope, tile: Tile) -> None:
        count, mean, spread = self.variables
        number = scope.assign("number", f"tl.sum({count}, {tile.axis})").text
        middle = scope.assign("middle", f"tl.sum({mean} * {count}, {tile.axis}) / tl.maximum({number}, 1.0)").text
        apart = scope.assign("apart", f"{mean} - {middle}").text
        scope.lines += [
            f"{spread} = tl.sum({spread} + {count} * {apart} * {apart}, {tile.axis})",
            f"{mean} = {middle}",
            f"{count} = {number}",
        ]

    def publish(self, scope: Scope) -> None:
        count, mean, spread = self.variables
        scope.env[self.track.result], scope.env[self.track.second] = Expr(mean), Expr(spread)
        scope.env[self.track.total] = Expr(f"{mean} * {count}", TIMES)


def make_states(plan: RowPlan, tracks: Sequence[Track], tile: Tile, scope: Scope, lanes: bool, deep: bool = False) -> list[State]:
    """A state for each track of one pass. Only online ones can be `deep`."""
    made: list[State] = []
    for track in tracks:
        if track.kind == "online":
            made.append(Online(plan, track, tile, scope, lanes, deep))
        elif track.kind == "moments":
            made.append(Moments(plan, track, tile, scope))
        elif plan.program[track.result].op in ("argmax", "argmin"):
            made.append(Position(plan, track, tile, scope))
        else:
            made.append(Plain(plan, track, tile, scope))
    return made
