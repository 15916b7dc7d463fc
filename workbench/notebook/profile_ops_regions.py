"""From single calls to the ops that a person would point at, with what each costs and could cost."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import types
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from workbench.errors import MisuseError
from workbench.explain.constants import CONSTANTS
from workbench.explain.roofline import POINTWISE, floor_us
from workbench.notebook.profile_ops_watch import Call, Instance, Signature
from workbench.target import Target
from workbench.task import Work


@dataclass(frozen=True)
class Region:
    """One op of the person's: all runs of a function, or of a line, with the same shapes.

    Attributes:
        name: such as ``RMSNorm``, ``softmax`` or the text of the line; `where`: its file and line.
        runs: how often it ran; `ops`: what it calls, with counts, most first.
        time_us: of all runs: measured on the GPU, or modelled for the target.
        host_us: what this machine's Python waited for its calls.
        floor_us: of all runs, each as one kernel at the speed of light: a launch, each input read once, each output written once.
        share: of the time of all regions; `gain`: how much of the whole would be saved if it reached its floor.
        shapes: of its first run's tensors.
        instance: the first run.
    """

    name: str
    where: str
    runs: int
    ops: tuple[tuple[str, int], ...]
    time_us: float
    host_us: float
    floor_us: float
    share: float
    gain: float
    shapes: tuple[str, ...]
    instance: Instance

    @property
    def headroom(self) -> float:
        """Time over floor."""
        return self.time_us / self.floor_us if self.floor_us > 0 else 1.0

    def as_data(self, number: int) -> dict[str, Any]:
        """For JSON."""
        return {
            "number": number, "name": self.name, "where": self.where, "runs": self.runs, "ops": dict(self.ops), "time_us": self.time_us,
            "host_us": self.host_us, "floor_us": self.floor_us, "headroom": self.headroom, "share": self.share, "gain": self.gain,
            "shapes": list(self.shapes),
        }  # fmt: skip


def regions(instances: Sequence[Instance], target: Target, *, measured: bool) -> tuple[Region, ...]:
    """Rows of the table, by what they would gain, most first. Calls that only make tensors (``torch.randn``) are not among them."""
    readers: dict[int, set[int]] = defaultdict(set)
    for position, instance in enumerate(instances):
        for call in instance.calls:
            for seen in call.inputs:
                readers[seen.memory].add(position)
    groups: dict[tuple[types.CodeType, int, Signature], list[tuple[Instance, Work]]] = defaultdict(list)
    for position, instance in enumerate(instances):
        calls = [call for call in instance.calls if not call.makes]
        if calls:
            key = (instance.code, instance.line, instance.signature or tuple((one.shape, one.dtype) for one in calls[0].inputs))
            groups[key].append((instance, work_of(instance.calls, readers, position)))
    rows = []
    for group in groups.values():
        calls = [call for instance, _ in group for call in instance.calls if not call.makes]
        time = sum(_time(call, target, measured) for call in calls)
        launch = target.latency_us + (0.0 if measured else target.launch_us)
        floor = sum(floor_us(work, target) + launch for _, work in group)
        rows.append((group, calls, time, min(floor, time)))
    total = sum(time for _, _, time, _ in rows) or 1.0
    made = [
        Region(
            name=_name(group[0][0]), where=_where(group[0][0]), runs=len(group),
            ops=tuple(Counter(call.name for call in calls).most_common()), time_us=round(time, 3),
            host_us=round(sum(call.host_us for call in calls), 3), floor_us=round(floor, 3), share=round(time / total, 4),
            gain=round((time - floor) / total, 4), shapes=_shapes(group[0][0]), instance=group[0][0],
        )
        for group, calls, time, floor in rows
    ]  # fmt: skip
    return tuple(sorted(made, key=lambda region: -region.gain))


def work_of(calls: Sequence[Call], readers: Mapping[int, set[int]], position: int) -> Work:
    """The least that a run must move: what it reads of others, and what others read of it, once."""
    read: dict[int, int] = {}
    written: dict[int, int] = {}
    for call in calls:
        for seen in call.inputs:
            if seen.memory not in written:
                read[seen.memory] = max(read.get(seen.memory, 0), seen.nbytes)
        for seen in call.outputs:
            written[seen.memory] = max(written.get(seen.memory, 0), seen.nbytes)
    last = {seen.memory for seen in calls[-1].outputs}
    kept = sum(size for memory, size in written.items() if memory in last or memory in read or readers.get(memory, set()) - {position})
    elements = sum(_elements(call) for call in calls)
    flops = sum(call.flops for call in calls)
    dtype = next((call.matmul_dtype for call in calls if call.flops), "")
    return Work(bytes=sum(read.values()) + kept, flops=int(flops + elements), matmul_flops=int(flops), matmul_dtype=dtype)


def _elements(call: Call) -> int:
    total = 0
    for seen in call.outputs:
        count = 1
        for size in seen.shape:
            count *= size
        total += count
    return total


def _time(call: Call, target: Target, measured: bool) -> float:
    """Of one call: as the GPU took, or as a kernel of its own would take on the target."""
    if measured:
        return call.gpu_us or 0.0
    moved = sum({seen.memory: seen.nbytes for seen in call.inputs}.values()) + sum(seen.nbytes for seen in call.outputs)
    plain = call.name.rstrip("_") in POINTWISE
    seconds = moved / (target.bandwidth * (CONSTANTS.stream_efficiency if plain else CONSTANTS.reduce_efficiency))
    if call.flops:
        dtype = call.matmul_dtype
        if dtype == "float32" and torch.get_float32_matmul_precision() != "highest":
            dtype = "tf32"
        seconds = max(seconds, call.flops / (target.peak(dtype) * CONSTANTS.library_matmul))
    return 1e6 * seconds + target.latency_us + target.launch_us


# What the person calls it


def _name(instance: Instance) -> str:
    if instance.line:
        text = linecache.getline(instance.code.co_filename, instance.line).strip()
        return text[:80] or f"line {instance.line}"
    name = instance.code.co_qualname.rsplit("<locals>.", 1)[-1]
    return name.removesuffix(".forward").removesuffix(".__call__")


def _where(instance: Instance) -> str:
    file = instance.code.co_filename
    line = instance.line or instance.code.co_firstlineno
    return f"line {line}" if file.startswith("<") or "ipykernel" in file else f"{file.rsplit('/', 1)[-1]}:{line}"


def _shapes(instance: Instance) -> tuple[str, ...]:
    seen = {one.memory: one for call in instance.calls for one in call.inputs}
    made = {one.memory for call in instance.calls for one in call.outputs}
    return tuple(f"{'×'.join(map(str, one.shape)) or 'scalar'} {one.dtype}" for memory, one in seen.items() if memory not in made)[:6]


# Starting from it


def as_call(region: Region) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The op with its inputs, ready to be captured.

    Raises:
        MisuseError: it can't be called by itself; one line with the mend.
    """
    instance = region.instance
    if instance.line:
        return _line_call(instance, region.name)
    arguments, code = dict(instance.arguments), instance.code
    op = _function_of(instance, arguments, region.name)
    names = code.co_varnames[: code.co_argcount]
    args = [arguments[name] for name in names if name in arguments]
    place = code.co_argcount + code.co_kwonlyargcount
    if code.co_flags & inspect.CO_VARARGS:
        args += list(arguments.get(code.co_varnames[place], ()))
        place += 1
    kwargs = {name: arguments[name] for name in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]}
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs |= dict(arguments.get(code.co_varnames[place], {}))
    return op, tuple(args), kwargs


def _function_of(instance: Instance, arguments: dict[str, Any], name: str) -> Any:
    code = instance.code
    first = code.co_varnames[0] if code.co_argcount else ""
    owner = arguments.get(first)
    method = getattr(type(owner), code.co_name, None) if owner is not None and first == "self" else None
    if method is not None and getattr(inspect.unwrap(method), "__code__", None) is code:
        arguments.pop(first)
        return owner if isinstance(owner, torch.nn.Module) and code.co_name == "forward" else functools.partial(method, owner)
    for value in instance.scope.values():
        plain = inspect.unwrap(value) if callable(value) else None
        if isinstance(plain, types.FunctionType) and plain.__code__ is code:
            return value
    if code.co_freevars:
        raise MisuseError(f"{name} is a function inside a function, whose variables can't be seen: define it at the top of the cell")
    return types.FunctionType(code, dict(instance.scope), code.co_name)


def _line_call(instance: Instance, name: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The line's expression as a function of the tensors that it names."""
    text = "".join(linecache.getlines(instance.code.co_filename))
    statement = next((one for one in ast.walk(_parsed(text)) if isinstance(one, _STATEMENTS) and _holds(one, instance.line)), None)
    value = statement.value if statement is not None else None
    if value is None:
        raise MisuseError(f"{name!r} is not one expression: put it into a function, and profile that")
    names = [one.id for one in ast.walk(value) if isinstance(one, ast.Name) and one.id in instance.arguments]
    names = list(dict.fromkeys(names))
    if not names:
        raise MisuseError(f"{name!r} names no tensor: put it into a function of its tensors, and profile that")
    entry = f"line_{instance.line}"
    source = f"def {entry}({', '.join(names)}):\n    return {ast.unparse(value)}\n"
    file = f"<workbench-profiled-{abs(hash(source)) & 0xFFFFFF:x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space = dict(instance.scope)
    exec(compile(source, file, "exec"), space)
    return space[entry], tuple(instance.arguments[one] for one in names), {}


_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.Expr)


def _holds(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])
