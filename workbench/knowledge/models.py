"""The class ``ModelNew`` of a candidate in KernelBench's format: the reference's own constructor, with a forward that launches."""

from __future__ import annotations

import ast

from workbench.knowledge.axes import UnsupportedError
from workbench.task import Task


def model_class(task: Task, function: str) -> str:
    """The text of ``ModelNew``: `Model` with everything but ``forward`` kept, so that parameters have the same names and values.

    Raises:
        UnsupportedError: the reference has no class ``Model`` at its top level.
    """
    tree = ast.parse(task.reference)
    found = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"), None)
    if found is None:
        raise UnsupportedError("the reference has no class Model")
    parameters = parameter_paths(task)
    kept = [node for node in found.body if not (isinstance(node, ast.FunctionDef) and node.name == "forward")]
    for node in kept:
        for call in ast.walk(node):
            # super(Model, self) must name the new class.
            if isinstance(call, ast.Name) and call.id == "Model":
                call.id = "ModelNew"
    arguments = [spec.name for spec in task.inputs if spec.name not in parameters]
    passed = [f"self.{parameters[spec.name]}" if spec.name in parameters else spec.name for spec in task.inputs]
    lines = ["class ModelNew(torch.nn.Module):"]
    for node in kept:
        lines += ["    " + line if line else "" for line in ast.unparse(node).splitlines()] + [""]
    lines += [f"    def forward(self, {', '.join(arguments)}):", f"        return {function}({', '.join(passed)})"]
    used = {name.id for node in kept for name in ast.walk(node) if isinstance(name, ast.Name)}
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) and _binds(node) & used]
    constants = [ast.unparse(node) for node in tree.body if isinstance(node, (ast.Assign, ast.FunctionDef)) and _defines(node) & used]
    return "\n".join([*imports, *constants, *([""] if imports or constants else []), *lines])


def parameter_paths(task: Task) -> dict[str, str]:
    """Inputs of the graph that are the model's own, with their paths as attributes of the model."""
    return {spec.name: spec.name for spec in task.inputs if spec.role != "input"}


def _binds(node: ast.Import | ast.ImportFrom) -> set[str]:
    return {(alias.asname or alias.name).split(".")[0] for alias in node.names} - {"torch"}


def _defines(node: ast.Assign | ast.FunctionDef) -> set[str]:
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    return {target.id for target in node.targets if isinstance(target, ast.Name)}
