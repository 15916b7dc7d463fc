"""How the accepted function is called: the person's own signature, and what it takes from the notebook around it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from workbench.task import InputSpec, Task


@dataclass(frozen=True)
class Signature:
    """The arguments of an op.

    Attributes:
        arguments: names in the order in which reference and kernel take them.
        tensors: those of them that are tensors; `values`: the others, of which the kernel was judged with one value each.
        free: tensors that the person's function read from the notebook around it; they are the last of `arguments`.
        public: the text of the person's own parameter list; free tensors can be given by keyword.
        unpacked: parameters that are lists of tensors, and the arguments in them.
    """

    arguments: tuple[str, ...]
    tensors: tuple[str, ...]
    values: tuple[str, ...]
    free: tuple[str, ...]
    public: str
    unpacked: tuple[tuple[str, tuple[str, ...]], ...] = ()


def is_exported(task: Task, cell_source: str = "") -> bool:
    """Whether the op is an `nn.Module`: its reference is an exported graph, and no function of the cell has its name."""
    state = any(spec.role != "input" for spec in task.inputs)
    return task.format == "function" and state and "torch.ops." in task.reference and _definition(task.entry, cell_source) is None


def read_signature(task: Task, cell_source: str = "") -> Signature:
    """The signature that the op has in `cell_source`, or that of the reference where it is not defined there."""
    names = tuple(spec.name for spec in task.inputs)
    own = _definition(task.entry, cell_source)
    if own is None or own.vararg is not None or own.kwarg is not None:
        last = next((at for at in reversed(range(len(task.inputs))) if task.inputs[at].role == "input"), -1)
        public, free = ast.arguments([], [], None, [], [], None, []), names[last + 1 :]
        unpacked: tuple[tuple[str, tuple[str, ...]], ...] = ()
        _append(public, [spec for spec in task.inputs if spec.name not in free])
    else:
        public, unpacked = _own(task, own)
        given = {parameter.arg for parameter in (*public.posonlyargs, *public.args, *public.kwonlyargs)}
        given.update(name for _, members in unpacked for name in members)
        free = tuple(name for name in names if name not in given)
    public.kwonlyargs = [*public.kwonlyargs, *(ast.arg(name) for name in free)]
    public.kw_defaults = [*public.kw_defaults, *(ast.Constant(None) for _ in free)]
    tensors = tuple(spec.name for spec in task.inputs if spec.is_tensor)
    values = tuple(spec.name for spec in task.inputs if not spec.is_tensor)
    return Signature(names, tensors, values, free, ast.unparse(public), unpacked)


def _own(task: Task, own: ast.arguments) -> tuple[ast.arguments, tuple[tuple[str, tuple[str, ...]], ...]]:
    """The person's parameters: without annotations, with defaults that need nothing around them, and without what was fixed at capture."""
    specs = {spec.name: spec for spec in task.inputs}
    positional = [*own.posonlyargs, *own.args]
    defaults: dict[str, ast.expr | None] = dict.fromkeys(parameter.arg for parameter in (*positional, *own.kwonlyargs))
    if own.defaults:
        defaults.update(zip([parameter.arg for parameter in positional[-len(own.defaults) :]], own.defaults, strict=True))
    defaults.update(zip([parameter.arg for parameter in own.kwonlyargs], own.kw_defaults, strict=True))
    unpacked = []
    for name in defaults:
        members = (
            tuple(spec.name for spec in task.inputs if re.fullmatch(rf"{re.escape(name)}_\d+", spec.name)) if name not in specs else ()
        )
        if members:
            unpacked.append((name, members))
    lists = {name for name, _ in unpacked}
    kept = [parameter.arg for parameter in positional if parameter.arg in specs or parameter.arg in lists]
    only = [parameter.arg for parameter in own.kwonlyargs if parameter.arg in specs or parameter.arg in lists]
    texts = {name: _default(defaults[name], specs.get(name)) for name in (*kept, *only)}
    # Python wants no parameter without a default after one with a default; fixing an argument may have left such a gap.
    first = next((at for at, name in enumerate(kept) if all(texts[later] is not None for later in kept[at:])), len(kept))
    public = ast.arguments(
        [], [ast.arg(name) for name in kept], None, [ast.arg(name) for name in only], [texts[name] for name in only], None,
        [default for name in kept[first:] if (default := texts[name]) is not None],
    )  # fmt: skip
    return public, tuple(unpacked)


def _default(node: ast.expr | None, spec: InputSpec | None) -> ast.expr | None:
    if node is None:
        return None
    try:
        ast.literal_eval(node)
    except ValueError:
        # It reads a name of the notebook. The call that was captured left it alone or gave the same kind of value.
        return None if spec is None or spec.is_tensor else _literal(spec.values.value)
    return node


def _append(public: ast.arguments, specs: list[InputSpec]) -> None:
    """Parameters by the reference's own names; Python values at the end default to what they were."""
    public.args = [ast.arg(spec.name) for spec in specs]
    for spec in reversed(specs):
        if spec.is_tensor:
            break
        public.defaults.insert(0, _literal(spec.values.value))


def _literal(value: object) -> ast.expr:
    from workbench.notebook.cell import literal

    return ast.parse(literal(value), mode="eval").body


def _definition(entry: str, cell_source: str) -> ast.arguments | None:
    """The parameters of the function or lambda that the cell calls `entry`."""
    text = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in cell_source.split("\n"))
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            found = node.args
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            found = node.value.args if entry in names else found
    return found
