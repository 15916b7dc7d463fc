"""Running a notebook's cell and capturing the op that it calls."""

from __future__ import annotations
import __future__

import ast
import functools
import hashlib
import linecache
import sys
import types
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any

import torch

from workbench.capture import importing
from workbench.capture.arrays import has_array
from workbench.capture.captured import Captured
from workbench.capture.collecting import uncompiled
from workbench.capture.entry import Call, capture, is_callable_object, label_of, refuse_call
from workbench.capture.file import capture_model_text, is_model_text
from workbench.capture.references import describe, flatten
from workbench.errors import CaptureError
from workbench.task import Precision

HOOK = "__workbench_call__"

Run = Callable[[types.CodeType, MutableMapping[str, Any]], Any]


def capture_cell(
    source: str,
    namespace: MutableMapping[str, Any],
    *,
    inputs: str | None = None,
    name: str | None = None,
    target: str | None = None,
    precision: Precision = "match",
    run: Run | None = None,
    filename: str | None = None,
) -> Captured:
    """Runs a cell in `namespace`, statement by statement as Python would, and captures the last op that it calls.

    The op is, in this order: the last function, lambda or module of the cell's own that returned a tensor; one from elsewhere in the
    notebook; a function of a library that was given a tensor; a tensor's method. A cell that defines ``Model`` and ``get_inputs`` is taken
    as KernelBench's format.

    Args:
        inputs: a name in the namespace: the arguments as a tuple or list, or a callable that returns them. They go to the op that the cell
            calls last, or else to the one that it defines last.
        run: executes one statement's code object in the namespace; `exec` by default.
        filename: under which the cell is compiled, and under which its lines are entered in `linecache`.

    Raises:
        CaptureError: there is no op, or it can't be captured. What other statements of the cell raise comes through as it is.
    """
    __tracebackhide__ = True
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    filename = filename or f"<workbench-cell-{digest}>"
    linecache.cache.pop(filename, None)  # the newest cell comes last
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    tree = ast.parse(source, filename)
    model = is_model_text(tree)
    watch = _Watch(filename, namespace)
    shown = _execute(tree, filename, namespace, run or _exec, watch)
    if inputs is not None:
        call = _with_inputs(watch, tree, namespace, inputs)
    elif model:
        captured = capture_model_text(source, namespace, name=name, target=target, precision=precision)
        return Captured(captured.task, captured.value, captured.live, shown, captured.device, captured.notes)
    else:
        call = watch.chosen(tree)
    return capture(call, name=name, target=target, precision=precision, shown=shown)


class _Watch:
    """Sees the calls that the cell's own statements make, and keeps the last of the best rank."""

    def __init__(self, filename: str, namespace: MutableMapping[str, Any]) -> None:
        self.filename = filename
        self.namespace = namespace
        self.best: tuple[int, Call] | None = None
        self.without_tensor: Call | None = None
        self.of_arrays: Call | None = None
        self.described: dict[int, Any] = {}
        self.kept: list[Any] = []

    def __call__(self, hint: str, op: Any, /) -> Any:
        """What the cell calls in place of `op`: itself, unless it may be the op.

        Much of what cells call looks at the frame that calls it (`locals`, `namedtuple`, `TypeVar`), so nothing comes between.
        """
        return functools.partial(self.record, hint, op) if may_be_op(op) else op

    def record(self, hint: str, op: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the op, and keeps the call if it ranks best so far."""
        __tracebackhide__ = True
        rank = self.rank(op, args, kwargs)
        if rank and has_array(args, kwargs):
            self.of_arrays = Call(op, args, kwargs, hint)
        if rank == 0 or (self.best is not None and rank < self.best[0]):
            return op(*args, **kwargs)
        call = self.look(hint, op, args, kwargs)
        try:
            call.run()
        except Exception as error:
            if rank < 3:
                raise
            raise CaptureError(f"{label_of(call)} raises {describe(error, self.filename)}: mend the op or its inputs first") from error
        if flatten(call.value) or (rank >= 3 and call.changed()):
            self.best = (rank, call)
        elif rank >= 3:
            self.without_tensor = call
        return call.value

    def look(self, hint: str, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The call with its inputs described; a tensor that didn't change since isn't described again."""
        call = Call(op, args, dict(kwargs), hint)
        for tensor in call.tensors():
            known = self.described.get(id(tensor))
            if known is not None and known[0] == (0 if tensor.is_inference() else tensor._version):
                call.described[id(tensor)] = known[1]
        call.look()
        for tensor in call.tensors():
            if id(tensor) in call.described:
                self.described[id(tensor)] = (call.versions[id(tensor)], call.described[id(tensor)])
                self.kept.append(tensor)
        return call

    def rank(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """4 for an op of the cell's own, 3 of the notebook, 2 of a library, 1 for less likely ones, 0 for what is no op.

        Less likely are a tensor's methods, and functions that were given no tensor: most of those make the inputs.
        """
        op = uncompiled(op)
        while isinstance(op, functools.partial):
            op, args = uncompiled(op.func), (*op.args, *args)
        if isinstance(op, type):
            return 0
        owner = getattr(op, "__self__", None)
        if isinstance(op, torch.nn.Module):
            return 4
        if isinstance(op, types.MethodType) and isinstance(owner, torch.nn.Module):
            code = op.__func__.__code__ if hasattr(op.__func__, "__code__") else None
            return 0 if code is None or importing.is_library_file(code.co_filename) else 4
        function = op.__func__ if isinstance(op, types.MethodType) else op
        if isinstance(function, types.FunctionType):
            inside = getattr(getattr(function, "__wrapped__", None), "__code__", function.__code__)
            files = {function.__code__.co_filename, inside.co_filename}
            if any(not importing.is_library_file(file) for file in files):
                return 1 if not _has_tensor(args, kwargs) else 4 if self.filename in files else 3
        if isinstance(owner, torch.Tensor):
            return 1
        if is_callable_object(op):
            return 4 if _has_tensor(args, kwargs) else 0
        if isinstance(op, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            return 2 if _has_tensor(args, kwargs) else 0
        if getattr(function, "__module__", "") in ("torch.testing", "torch.testing._comparison", "torch.random", "torch.serialization"):
            return 0
        return 2 if _has_tensor(args, kwargs) and callable(op) and importing.import_of(op) is not None else 0

    def chosen(self, tree: ast.Module) -> Call:
        """The call to capture."""
        if self.best is not None and (self.best[0] >= 3 or self.without_tensor is None):
            return self.best[1]
        if self.without_tensor is not None:
            return self.without_tensor
        if self.of_arrays is not None:
            refuse_call(self.of_arrays)
        defined = _last_defined(tree, self.namespace)
        what = f"add a line such as y = {defined}(x)" if defined else "define an op and call it"
        raise CaptureError(f"no call in the cell: {what}, or name its inputs with --inputs")


def may_be_op(value: Any) -> bool:
    """Whether a thing that is called could be an op: a module, a function of the notebook's own, of torch or of an installed package."""
    value = uncompiled(value)
    if isinstance(value, (torch.nn.Module, functools.partial)):
        return True
    if isinstance(value, type) or not callable(value):
        return False
    owner = getattr(value, "__self__", None)
    if isinstance(owner, (torch.nn.Module, torch.Tensor)):
        return True
    function = value.__func__ if isinstance(value, types.MethodType) else value
    if isinstance(function, types.FunctionType) and not importing.is_library_file(function.__code__.co_filename):
        return True
    package = str(getattr(function, "__module__", None) or getattr(owner, "__module__", None) or "torch").split(".")[0]
    return package not in sys.stdlib_module_names and package != "IPython"


def _execute(tree: ast.Module, filename: str, namespace: MutableMapping[str, Any], run: Run, watch: _Watch) -> Any:
    """Runs the statements; gives the value of the last one if it is an expression."""
    __tracebackhide__ = True
    flags = 0
    shown_name = "__workbench_shown__"
    namespace.pop(shown_name, None)
    namespace[HOOK] = watch
    try:
        for place, statement in enumerate(tree.body):
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                for feature in statement.names:
                    flags |= getattr(getattr(__future__, feature.name, None), "compiler_flag", 0)
            statement = _Instrument().visit(statement)
            if place == len(tree.body) - 1 and isinstance(statement, ast.Expr):
                store = ast.Assign([ast.Name(shown_name, ast.Store())], statement.value)
                statement = ast.copy_location(store, statement)
            module = ast.fix_missing_locations(ast.Module([statement], []))
            run(compile(module, filename, "exec", flags=flags, dont_inherit=True), namespace)
        return namespace.get(shown_name)
    finally:
        namespace.pop(HOOK, None)
        namespace.pop(shown_name, None)


def _exec(code: types.CodeType, namespace: MutableMapping[str, Any]) -> None:
    __tracebackhide__ = True
    exec(code, namespace)  # type: ignore[arg-type]


class _Instrument(ast.NodeTransformer):
    """Puts the hook into calls that run as part of the cell itself, not inside the functions that it defines."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        hint = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
        hook = ast.copy_location(ast.Name(HOOK, ast.Load()), node.func)
        node.func = ast.copy_location(ast.Call(hook, [ast.Constant(hint), node.func], []), node.func)
        return node

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _leave  # noqa: N815
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _leave  # noqa: N815


def _with_inputs(watch: _Watch, tree: ast.Module, namespace: MutableMapping[str, Any], inputs: str) -> Call:
    """The op with the inputs that a name gives."""
    if inputs not in namespace:
        raise CaptureError(f"--inputs {inputs}: the notebook has no such name; define it as a tuple of arguments")
    given = namespace[inputs]
    if callable(given) and not isinstance(given, torch.Tensor):
        try:
            given = given()
        except Exception as error:
            raise CaptureError(f"--inputs {inputs}: {inputs}() raises {describe(error, watch.filename)}") from error
    args = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if watch.best is not None and watch.best[0] >= 3:
        op, hint = watch.best[1].op, watch.best[1].hint
    else:
        hint = _last_defined(tree, namespace, but=inputs)
        if not hint:
            raise CaptureError(f"--inputs {inputs}: the cell defines no op to give them to; define a function or a module in it")
        op = namespace[hint]
    call = watch.look(hint, op, args, {})
    try:
        return call.run()
    except Exception as error:
        reason = describe(error, watch.filename)
        raise CaptureError(f"the inputs of --inputs {inputs} don't fit {label_of(call)}: {reason}") from error


def _last_defined(tree: ast.Module, namespace: MutableMapping[str, Any], but: str = "") -> str:
    """The name of the function, lambda or module that the cell defines last; empty where there is none."""
    found = ""
    for name in _defined(tree.body):
        value = uncompiled(namespace.get(name))
        is_op = isinstance(value, (types.FunctionType, torch.nn.Module, functools.partial))
        if is_op and name != but and not name.startswith("get_"):
            found = name
    return found


def _defined(statements: Iterable[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, ast.FunctionDef):
            yield statement.name
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _has_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in _leaves((args, kwargs)))
