"""Guard, registration and wrapper of an accepted cell whose op is an `nn.Module`.

The kernel takes the module's parameters as arguments, and the reference in the cell is the module's graph at the shapes that were
captured. So the fallback is the module itself.
"""

from __future__ import annotations

import re

from workbench.errors import MisuseError
from workbench.notebook import cell
from workbench.notebook.cell import Parts
from workbench.notebook.cell_function import any_grad, has_gradient, registration
from workbench.notebook.result import rebuild


def guard(parts: Parts) -> list[str]:
    """The third part of the cell."""
    if not parts.signature.tensors:
        raise MisuseError(f"{parts.task.name} takes no tensor, so its kernel can't tell where to run: give it one")
    if parts.task.unreached or _in_training(parts.task.reference):
        lost = ", ".join(parts.task.unreached[:3]) or "statistics"
        raise MisuseError(
            f"{parts.task.name} was captured in training mode, where it updates {lost}, which no kernel reaches: "
            "call .eval() on it and evolve it again"
        )
    return cell.guard_function(parts, grad="" if has_gradient(parts.task) else f"not ({any_grad(parts)})")


def public(parts: Parts) -> list[str]:
    """The fourth part: the registered op, and a module that wraps the person's own."""
    task, suffix = parts.task, parts.suffix
    name = "Fast" + "".join(word[:1].upper() + word[1:] for word in task.entry.split("_"))
    state = [spec.name for spec in task.inputs if spec.role != "input"]
    given = [spec.name for spec in task.inputs if spec.role == "input"]
    arguments, tensors = ", ".join(parts.signature.arguments), ", ".join(parts.signature.tensors)
    result = parts.result
    if not all(isinstance(part, (int, str)) for part in (result.shape if isinstance(result.shape, tuple) else (result.shape,))):
        raise MisuseError(f"{task.name} returns more than a tensor or a tuple of tensors: write it as a function")
    out = "out = " if result.fresh else ""
    registered = "torch.compiler.is_compiling()"
    if has_gradient(task):
        registered += f" or ({any_grad(parts)})"
    return [
        *registration(parts),
        f"class {name}(torch.nn.Module):",
        f'    """``{task.entry} = {name}({task.entry})``: the kernel where it fits, the module itself elsewhere. They share parameters."""',
        "",
        "    def __init__(self, module):",
        "        super().__init__()",
        "        self.module = module",
        "        state = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]",
        '        plain = {path: "".join(c if c.isalnum() else "_" for c in path) for path, _ in state}',
        '        paths = {f"m{name}" if name[:1].isdigit() else name.lstrip("_"): path for path, name in plain.items()}',
        f"        self.paths = [paths[name] for name in {state!r}]",
        "",
        "    def tensor(self, path):",
        '        """A parameter or buffer of the module, as it is now."""',
        "        owner = self.module",
        '        for name in path.split("."):',
        "            owner = getattr(owner, name)",
        "        return owner",
        "",
        f"    def forward(self, {parts.signature.public.split(', *,')[0]}):",
        f"        {', '.join(state)}{',' if len(state) == 1 else ''} = [self.tensor(path) for path in self.paths]",
        f"        if {'self.training or ' if _depends_on_mode(task.reference) else ''}not fits_{suffix}({arguments}):",
        f"            return self.module({', '.join(given)})",
        f"        {out}op_{suffix}({tensors}) if {registered} else run_{suffix}({tensors})",
        f"        return {rebuild(result)}",
        "",
        "",
    ]


def _depends_on_mode(reference: str) -> bool:
    """Whether the module computes something else in training mode than the graph that was captured in eval mode."""
    return bool(re.search(r"batch_norm|instance_norm|dropout", reference))


def _in_training(reference: str) -> bool:
    """Whether the graph normalises by the batch's own statistics, or drops out."""
    return bool(re.search(r"torch\.ops\.aten\.(?:batch_norm|native_batch_norm|instance_norm)\.\w+\([^\n]*, True, ", reference))
