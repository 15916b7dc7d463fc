"""Guard, registration and public function of an accepted cell whose op is a function."""

from __future__ import annotations

from workbench.errors import MisuseError
from workbench.notebook import cell
from workbench.notebook.cell import Parts
from workbench.notebook.result import bump, flat_function, rebuild
from workbench.task import Task


def guard(parts: Parts) -> list[str]:
    """The third part of the cell."""
    if not parts.signature.tensors:
        raise MisuseError(f"{parts.task.name} takes no tensor, so its kernel can't tell where to run: give it one")
    grad = "" if has_gradient(parts.task) else f"not ({any_grad(parts)})"
    return cell.guard_function(parts, grad=grad)


def public(parts: Parts) -> list[str]:
    """The fourth part: the registered op, and the function under the op's own name."""
    return [*registration(parts), *_function(parts)]


def registration(parts: Parts) -> list[str]:
    """The kernel as an op that torch.compile and autograd know."""
    lines = [*_run(parts), *_op(parts)]
    return [*lines, *_autograd(parts)] if has_gradient(parts.task) else lines


def has_gradient(task: Task) -> bool:
    """Whether the op has a gradient of its own: by dtype, since the person may have captured without ``requires_grad``.

    PyTorch takes none for an op that changes its arguments; where a gradient is wanted, the reference runs.
    """
    if task.changes:
        return False
    inputs = any(spec.is_tensor and _is_float(spec.dtype) for spec in task.inputs)
    return inputs and any(_is_float(output.dtype) for output in task.outputs)


def any_grad(parts: Parts) -> str:
    """A condition: somebody wants a gradient."""
    wanted = [f"{name}.requires_grad" for name in parts.signature.tensors if _is_float(parts.specs[name].dtype)]
    return f"torch.is_grad_enabled() and ({' or '.join(wanted)})" if wanted else "False"


def call(parts: Parts) -> str:
    """The arguments of kernel and reference: tensors by name, Python values as the literals that the guard holds them to."""
    specs = parts.specs
    return ", ".join(name if specs[name].is_tensor else cell.literal(specs[name].values.value) for name in parts.signature.arguments)


def _run(parts: Parts) -> list[str]:
    suffix, result = parts.suffix, parts.result
    names = ["result"] if result.count == 1 else [f"result_{at}" for at in range(result.count)]
    unpack = f"{', '.join(names)}{',' if len(names) == 1 else ''} = " if names else ""
    fresh = [f"{names[at]}.contiguous()" if _is_contiguous(parts.task, at) else names[at] for at in result.fresh]
    return [
        *flat_function(suffix),
        f"def run_{suffix}({', '.join(parts.signature.tensors)}):",
        '    """The kernel, on the card that holds its inputs."""',
        f"    with torch.cuda.device_of({parts.signature.tensors[0]}):",
        "        try:",
        f"            {unpack}flat_{suffix}({parts.kernel}({call(parts)}))",
        f"        except {cell.UNSUPPORTED} as error:  # a shape that the launcher does not take",
        f'            warnings.warn(f"{parts.task.name}: fallback: {{error}}", stacklevel=2)',
        f"            {unpack}flat_{suffix}({parts.reference}({call(parts)}))",
        *bump(parts.task),
        *([f"    return {', '.join(fresh)}"] if fresh else []),
        "",
        "",
    ]


def _op(parts: Parts) -> list[str]:
    task, suffix, tensors, result = parts.task, parts.suffix, parts.signature.tensors, parts.result
    typed = dict.fromkeys(tensors, "Tensor") | {name: f"Tensor(a{at}!)" for at, name in enumerate(task.changes)}
    schema = f"({', '.join(f'{kind} {name}' for name, kind in typed.items())}) -> "
    schema += "Tensor" if len(result.fresh) == 1 else f"({', '.join('Tensor' for _ in result.fresh)})"
    layout = {at: "contiguous_format" if _is_contiguous(task, at) else "preserve_format" for at in result.fresh}
    empty = ", ".join(f"torch.empty_like(like[{at}], memory_format=torch.{name})" for at, name in layout.items())
    fake = [f"    like = flat_{suffix}({parts.reference}({call(parts)}))", f"    return {empty}"] if result.fresh else []
    return [
        f"op_{suffix} = torch.library.custom_op(",
        f'    "kernel_workbench::{task.entry}_{suffix}",',
        f"    run_{suffix},",
        f"    mutates_args={cell.literal(task.changes)},",
        f'    schema="{schema}",',
        ")",
        "",
        "",
        f"@op_{suffix}.register_fake",
        f"def fake_{suffix}({', '.join(tensors)}):",
        '    """Shapes and dtypes without data, for torch.compile and torch.export."""',
        *fake,
        "",
        "",
    ]


def _autograd(parts: Parts) -> list[str]:
    suffix, tensors = parts.suffix, parts.signature.tensors
    return [
        f"def save_{suffix}(ctx, inputs, output):",
        '    """Keeps the inputs for the backward pass."""',
        "    ctx.save_for_backward(*inputs)",
        "",
        "",
        f"def backward_{suffix}(ctx, *gradients):",
        '    """The reference\'s gradient: it runs again, under autograd."""',
        "    with torch.enable_grad():",
        "        inputs = [tensor.view_as(tensor) for tensor in ctx.saved_tensors]",
        f"        {', '.join(tensors)}{',' if len(tensors) == 1 else ''} = inputs",
        f"        outputs = flat_{suffix}({parts.reference}({call(parts)}))",
        "    pairs = [pair for pair in zip(outputs, gradients) if pair[0].requires_grad and pair[1] is not None]",
        "    found = torch.autograd.grad(",
        "        [output for output, _ in pairs],",
        "        [tensor for tensor in inputs if tensor.requires_grad],",
        "        [gradient for _, gradient in pairs],",
        "        allow_unused=True,",
        "        create_graph=torch.is_grad_enabled(),",
        "    )",
        "    found = iter(found)",
        "    found = [next(found) if tensor.requires_grad else None for tensor in inputs]",
        "    return found[0] if len(found) == 1 else tuple(found)",
        "",
        "",
        f"op_{suffix}.register_autograd(backward_{suffix}, setup_context=save_{suffix})",
        "",
        "",
    ]


def _function(parts: Parts) -> list[str]:
    task, signature, suffix = parts.task, parts.signature, parts.suffix
    lines: list[str] = []
    if signature.free:
        lines = [
            f"free_{suffix} = {{  # what the op reads from the notebook around it, when it is called",
            *(f'    "{name}": lambda: {name},' for name in signature.free),
            "}",
            "",
            "",
        ]
    before = [f"    {', '.join(members)}{',' if len(members) == 1 else ''} = {name}" for name, members in signature.unpacked]
    before += [f'    {name} = free_{suffix}["{name}"]() if {name} is None else {name}' for name in signature.free]
    arguments, tensors = ", ".join(signature.arguments), ", ".join(signature.tensors)
    registered = "torch.compiler.is_compiling()"
    if has_gradient(task):
        registered += f" or ({any_grad(parts)})"
    result = parts.result
    out = "out = " if result.fresh else ""
    return [
        *lines,
        f"def {task.entry}({signature.public}):",
        '    """The kernel where it fits, the reference elsewhere."""',
        *before,
        f"    if not fits_{suffix}({arguments}):",
        f"        return {parts.reference}({arguments})",
        f"    if {registered}:",
        f"        {out}op_{suffix}({tensors})",
        "    else:  # the op's bookkeeping costs some µs that a plain call need not pay",
        f"        {out}run_{suffix}({tensors})",
        f"    return {rebuild(result)}",
        "",
        "",
    ]


def _is_contiguous(task: Task, at: int) -> bool:
    output = task.outputs[at]
    return not output.strides or list(output.strides) == cell.contiguous_strides(output.shape)


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))
