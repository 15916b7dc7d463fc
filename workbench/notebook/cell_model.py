"""Guard and class of an accepted cell in KernelBench's format: ``ModelNew``, with ``Model`` behind it."""

from __future__ import annotations

import re

from workbench.errors import MisuseError
from workbench.notebook import cell
from workbench.notebook.cell import Parts
from workbench.notebook.result import bump, flat_function, rebuild


def guard(parts: Parts) -> list[str]:
    """The third part of the cell."""
    if not parts.signature.tensors:
        raise MisuseError(f"{parts.task.name} takes no tensor, so its kernel can't tell where to run: give it one")
    return cell.guard_function(parts)


def public(parts: Parts) -> list[str]:
    """The fourth part: the candidate's class with the guard in front of its ``forward``."""
    suffix, arguments = parts.suffix, ", ".join(parts.signature.arguments)
    # It was judged as it was constructed, in training mode.
    mode = "self.training and " if re.search(r"(?i)batch_?norm|instance_?norm|dropout|\.training", parts.task.reference) else ""
    kernel = [f"                    return super().forward({arguments})"]
    helper = []
    if parts.task.changes:  # what comes back is then the caller's own tensor where the reference gives that, whatever the kernel returns
        result, helper = parts.result, flat_function(suffix)
        taken = "" if not result.fresh else "out, = " if len(result.fresh) == 1 else "out = "
        kept = f"[results[at] for at in {cell.literal(result.fresh)}]"
        kernel = [f"                    results = flat_{suffix}(super().forward({arguments}))"]
        kernel += [*bump(parts.task, " " * 20), *([f"                    {taken}{kept}"] if taken else [])]
        kernel += [f"                    return {rebuild(result)}"]
    return [
        "import functools",
        "",
        "",
        *helper,
        f"class ModelNew({parts.kernel}):",
        '    """The kernel where it fits; elsewhere, and where a gradient is wanted, the reference with this module\'s own state."""',
        "",
        "    def __init__(self, *args, **kwargs):",
        "        super().__init__(*args, **kwargs)",
        "        self._workbench_reference = functools.partial(" + f"{parts.reference}, *args, **kwargs)",
        "",
        f"    def forward(self, {parts.signature.public}):",
        f"        tensors = [{', '.join(parts.signature.tensors)}, *self.parameters()]",
        "        wants_gradient = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)",
        f"        if {mode}not wants_gradient and fits_{suffix}({arguments}):",
        f"            with torch.cuda.device_of({parts.signature.tensors[0]}):",
        "                try:",
        *kernel,
        f"                except {cell.UNSUPPORTED} as error:  # a shape that the kernel does not take",
        f'                    warnings.warn(f"{parts.task.name}: fallback: {{error}}", stacklevel=2)',
        f"        return self._fall_back({arguments})",
        "",
        "    def _fall_back(self, *inputs):",
        "        if isinstance(self._workbench_reference, functools.partial):",
        "            with torch.random.fork_rng():",
        "                # In a tuple, so that torch does not take it for a part of this module.",
        "                self._workbench_reference = (self._workbench_reference(),)",
        "        (reference,) = self._workbench_reference",
        "        reference.train(self.training)",
        "        state = {**dict(self.named_parameters()), **dict(self.named_buffers())}",
        "        return torch.func.functional_call(reference, state, inputs, strict=True)",
        "",
        "",
    ]
