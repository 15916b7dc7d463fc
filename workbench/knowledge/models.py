"""The class ``ModelNew`` of a candidate in KernelBench's format: the reference's own constructor, with a forward that launches."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.knowledge.axes import UnsupportedError
from workbench.task import Task


@dataclass(frozen=True)
class ModelText:
    """The class, and what it needs of the reference's module."""

    text: str
    imports: tuple[str, ...]
    needed: tuple[str, ...]


def model_class(task: Task, function: str, parameters: Sequence[str]) -> ModelText:
    """``ModelNew``: `Model` with everything but ``forward`` kept, so that parameters have the same names and values.

    Args:
        task: in KernelBench's format.
        function: the launcher, which takes forward's arguments and then `parameters`.
        parameters: names of the model's tensors, dots as underscores, as the graph has them.

    Raises:
        UnsupportedError: the reference has no class ``Model``, or a parameter can't be found in its constructor.
    """
    tree = ast.parse(task.reference)
    found = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"), None)
    if found is None:
        raise UnsupportedError("the reference has no class Model")
    kept = [node for node in found.body if not (isinstance(node, ast.FunctionDef) and node.name == "forward")]
    attributes = _attributes(kept)
    passed = [spec.name for spec in task.inputs] + [f"self.{_path(name, attributes)}" for name in parameters]
    for node in kept:
        for call in ast.walk(node):
            # super(Model, self) must name the new class.
            if isinstance(call, ast.Name) and call.id == "Model":
                call.id = "ModelNew"
    arguments = ", ".join(["self", *(spec.name for spec in task.inputs)])
    lines = ["class ModelNew(torch.nn.Module):"]
    for node in kept:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        lines += ["    " + line if line else "" for line in ast.unparse(node).splitlines()] + [""]
    lines += [f"    def forward({arguments}):", f"        return {function}({', '.join(passed)})"]
    needed = _needed(tree, kept)
    imports = tuple(ast.unparse(node) for node in needed if isinstance(node, (ast.Import, ast.ImportFrom)))
    rest = tuple(ast.unparse(node) for node in needed if not isinstance(node, (ast.Import, ast.ImportFrom)))
    return ModelText("\n".join(lines), imports, rest)


def _attributes(body: Sequence[ast.stmt]) -> set[str]:
    """Names that the methods assign as ``self.name``, or register."""
    names: set[str] = set()
    for node in body:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and isinstance(part.value, ast.Name):
                names.add(part.attr)
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr.startswith("register_"):
                names |= {arg.value for arg in part.args[:1] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}
    return names


def _path(name: str, attributes: set[str]) -> str:
    """The attribute path of a parameter whose dots became underscores: ``layers_0_weight`` is ``layers[0].weight``."""
    if name in attributes:
        return name
    owner = max((attribute for attribute in attributes if name.startswith(f"{attribute}_")), key=len, default="")
    if not owner:
        raise UnsupportedError(f"the model's tensor {name}, which its constructor doesn't show")
    path = owner
    leaf: list[str] = []
    for word in name[len(owner) + 1 :].split("_"):
        if word.isdigit() and not leaf:
            path += f"[{word}]"
        else:
            leaf.append(word)
    return f"{path}.{'_'.join(leaf)}" if leaf else path


def _needed(tree: ast.Module, kept: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Imports, constants, functions and classes of the reference that the constructor uses, and what those use."""
    wanted = {name.id for node in kept for name in ast.walk(node) if isinstance(name, ast.Name)}
    chosen: list[ast.stmt] = []
    for node in reversed(tree.body):
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            continue
        if _binds(node) & wanted:
            chosen.insert(0, node)
            wanted |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return chosen


def _binds(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        # The module imports torch itself.
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names} - {"torch"}
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {target.id for target in node.targets if isinstance(target, ast.Name)}
    return set()
