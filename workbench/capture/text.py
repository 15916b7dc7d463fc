"""Writing a reference: names, order and layout of what `collecting` found, and the entry function on top."""

from __future__ import annotations

import ast
import keyword
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.capture.collecting import Collector, Item
from workbench.capture.source import Source, local_names, rename


@dataclass(frozen=True)
class Prelude:
    """A line at the entry's start that makes an argument as the function expects it: ``xs = [xs_0, xs_1]``."""

    name: str
    expression: str
    needs: tuple[tuple[str, Item], ...] = ()


@dataclass(frozen=True)
class Entry:
    """The op itself.

    Attributes:
        name: of the function to write.
        source: its definition, or a lambda's expression.
        needs: what it reads from around it.
        arguments: names of its inputs, in order.
        prelude: lines that come first.
        decorators: lines above it that its source doesn't have.
        rewrite: its signature can't stay as it is.
        callee: the expression to call instead of having a body, for ops that a library holds: ``F.softmax(x, dim=dim)``.
    """

    name: str
    source: Source | None
    needs: Sequence[tuple[str, Item]]
    arguments: Sequence[str]
    prelude: Sequence[Prelude] = ()
    decorators: Sequence[str] = ()
    rewrite: bool = False
    callee: str = ""


def write(collector: Collector, entry: Entry) -> tuple[str, list[Item]]:
    """The reference's text, and the free tensors that became its last arguments, named."""
    _spread(collector.items)
    tensors = collector.tensors()
    nested = [item for item in collector.items if item.reads_tensors and item.kind != "tensor"]
    inner = local_names(entry.source.node) if entry.source is not None and not isinstance(entry.source.node, ast.Lambda) else frozenset()
    reserved = {entry.name, *entry.arguments, *(line.name for line in entry.prelude)}
    _name(collector.items, reserved | (inner if nested or tensors else frozenset()))
    imports: list[str] = []
    assigns: list[str] = []
    definitions: list[str] = []
    for item in collector.items:
        if item in nested or item.kind == "tensor":
            continue
        (imports if item.kind == "import" else assigns if item.kind == "assign" and not item.needs else definitions).append(_define(item))
    parts = []
    if collector.future:
        parts.append("from __future__ import annotations")
    parts.append("\n".join(sorted({"import torch", *(line for text in imports for line in text.splitlines())}, key=_import_order)))
    if assigns:
        parts.append("\n".join(assigns))
    for definition in definitions:
        parts.append(("\n" if definition.startswith(("def ", "class ", "@")) else "") + definition)
    parts.append("\n" + _entry(entry, tensors, nested))
    return "\n\n".join(parts) + "\n", tensors


def unique(wanted: str, taken: Iterable[str]) -> str:
    """The name, or the name with the first free number."""
    names = set(taken)
    if wanted not in names and not keyword.iskeyword(wanted):
        return wanted
    number = 1
    while f"{wanted}_{number}" in names:
        number += 1
    return f"{wanted}_{number}"


def _spread(items: Sequence[Item]) -> None:
    """Marks everything that reads a tensor through something else."""
    changed = True
    while changed:
        changed = False
        for item in items:
            if not item.reads_tensors and any(need.reads_tensors for _, need in item.needs):
                item.reads_tensors = changed = True


def _name(items: Sequence[Item], reserved: set[str]) -> None:
    taken = set(reserved) | {"torch"}
    # Tensors choose first: their names are the arguments that people read.
    for item in sorted(items, key=lambda item: item.kind != "tensor"):
        wanted = item.wanted
        if item.kind == "import" and item.text == "import torch" and wanted == "torch":
            item.name = "torch"
            continue
        item.name = unique(wanted, taken)
        taken.add(item.name)


def _define(item: Item) -> str:
    if item.kind == "import":
        text = item.text.format(name=item.name)
        return re.sub(r"^(from \S+ import )(\w+) as \2$", r"\1\2", text)
    if item.kind == "assign":
        return f"{item.name} = {_fill(item.text, item.needs)}"
    assert item.source is not None
    return _definition(item.source, item.name, item.needs)


def _fill(text: str, needs: Sequence[tuple[str, Item]]) -> str:
    return re.sub(r"<<(\d+)>>", lambda match: needs[int(match[1])][1].name, text)


def _definition(source: Source, name: str, needs: Sequence[tuple[str, Item]]) -> str:
    """A helper's definition under its name, with what it reads under theirs."""
    source = _renamed(source, name, needs)
    if isinstance(source.node, ast.Lambda):
        return f"def {name}({_signature(source)}):\n    {_returned(source)}"
    return source.text


def _renamed(source: Source, name: str, needs: Sequence[tuple[str, Item]]) -> Source:
    names = {used: item.name for used, item in needs if used != item.name}
    own = getattr(source.node, "name", name)
    if own != name:
        names[own] = name
    if not names:
        return source
    text = rename(source.node, names)
    statement = ast.parse(text).body[0]
    return Source(text, statement.value if isinstance(statement, ast.Expr) else statement)  # type: ignore[arg-type]


def _signature(source: Source) -> str:
    assert not isinstance(source.node, ast.ClassDef)
    return ast.unparse(source.node.args)


def _returned(source: Source) -> str:
    assert isinstance(source.node, ast.Lambda)
    body = source.segment(source.node.body)
    return f"return {body}" if "\n" not in body else f"return ({body})"


def _entry(entry: Entry, tensors: Sequence[Item], nested: Sequence[Item]) -> str:
    parameters = [*entry.arguments, *(item.name for item in tensors)]
    prelude = [f"{line.name} = {_fill(line.expression, line.needs)}" for line in entry.prelude]
    head = f"def {entry.name}({', '.join(parameters)}):"
    above = [*entry.decorators]
    if entry.source is None:
        body = [*prelude, f"return {_fill(entry.callee, entry.needs)}"]
        return "\n".join([*above, head, *(f"    {line}" for line in body)])
    source = _renamed(entry.source, entry.name, entry.needs)
    if not prelude and not tensors and _is_plain(source, entry):
        return "\n".join([*above, source.text])
    helpers = [_indented(_define(item), item.source) for item in nested]
    above += [f"@{source.segment(decorator)}" for decorator in getattr(source.node, "decorator_list", ())]
    if isinstance(source.node, ast.Lambda):
        return "\n".join([*above, head, *(f"    {line}" for line in prelude), *helpers, f"    {_returned(source)}"])
    assert isinstance(source.node, ast.FunctionDef)
    calls_itself = entry.name in {node.id for node in ast.walk(source.node) if isinstance(node, ast.Name)}
    if calls_itself:
        whole = _indented(source.text, source)
        return "\n".join([*above, head, *(f"    {line}" for line in prelude), *helpers, whole, f"    return {_call(source.node)}"])
    document, indent, lines = _body(source)
    before = [indent + line for line in prelude] + [textwrap.indent(textwrap.dedent(helper), indent) for helper in helpers]
    return "\n".join([*above, head, *document, *before, *lines])


def _is_plain(source: Source, entry: Entry) -> bool:
    """Whether the definition can stay as it is: called with its arguments by position, it does what was captured."""
    if not isinstance(source.node, ast.FunctionDef) or entry.rewrite:
        return False
    arguments = source.node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    return not (arguments.vararg or arguments.kwarg or arguments.kwonlyargs) and names == list(entry.arguments)


def _call(node: ast.FunctionDef) -> str:
    arguments = node.args
    parts = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    parts += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    parts += [f"{argument.arg}={argument.arg}" for argument in arguments.kwonlyargs]
    parts += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return f"{node.name}({', '.join(parts)})"


def _body(source: Source) -> tuple[list[str], str, list[str]]:
    """The docstring's lines, the indentation, and the other lines of a function's body."""
    node, lines = source.node, source.lines
    assert isinstance(node, ast.FunctionDef)
    first = node.body[0]
    if lines[first.lineno - 1][: first.col_offset].strip():  # on the line of the def
        text = ast.unparse(node).splitlines()
        again = Source("\n".join(text), ast.parse("\n".join(text)).body[0])  # type: ignore[arg-type]
        return _body(again)
    indent = lines[first.lineno - 1][: len(lines[first.lineno - 1]) - len(lines[first.lineno - 1].lstrip())]
    document: list[str] = []
    rest = node.body
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str) and len(rest) > 1:
        document = lines[first.lineno - 1 : first.end_lineno]
        rest = rest[1:]
    start = rest[0].lineno - 1
    while start > 0 and lines[start - 1].strip().startswith("#"):
        start -= 1
    return document, indent, lines[start:]


def _indented(text: str, source: Source | None) -> str:
    """A definition, four columns in. Strings over several lines would change with it, so such text is written anew first."""
    tree = ast.parse(text)
    if any(isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value for node in ast.walk(tree)):
        text = ast.unparse(tree)
    return textwrap.indent(text, "    ")


def _import_order(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line
