"""The generated module as a candidate: guards, buffers, plain launches and library calls in the order of Inductor's wrapper."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.inductor.helpers import needed
from workbench.knowledge.inductor.kernels import KernelText, read_kernels
from workbench.knowledge.models import model_class
from workbench.knowledge.module import WIDTH, call_lines, forward_name
from workbench.task import InputSpec, Task

_EXTERN = {"mm": "torch.mm", "bmm": "torch.bmm", "addmm": "torch.addmm", "baddbmm": "torch.baddbmm", "convolution": "torch.convolution"}
_SILENT = ("args.clear", "torch.cuda.set_device", "assert_size_stride", "assert_alignment", "start_graph", "end_graph")

VIEW = '''\
def view_of(tensor, size, stride, offset):
    """The same memory in another shape."""
    return tensor.as_strided(size, stride, tensor.storage_offset() + offset)
'''

BIAS = '''\
def biased_product(bias, left, right, out):
    """A product with one bias for all rows."""
    return torch.addmm(bias[0] if bias.dim() == 2 and bias.stride(0) == 0 else bias, left, right, out=out)
'''


def turn_module(code: str, inputs: Sequence[str], configs: Mapping[str, Mapping[str, Any]], task: Task) -> str:
    """See `knowledge.inductor.turn`."""
    if task.changes or task.random:
        raise UnsupportedError("an op that changes its inputs or draws random numbers")
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise UnsupportedError(f"a module that can't be parsed: {error.msg}") from None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "call"]
    if len(calls) != 1:
        raise UnsupportedError("a module without one function that runs it")
    kernels = read_kernels(tree, configs)
    wrapper = _Wrapper(task, kernels, inputs)
    wrapper.read(calls[0].body)
    return _assemble(task, wrapper, [kernels[name] for name in wrapper.launched])


class _Wrapper:
    """Reads the body of the generated ``call`` and writes the launcher's."""

    def __init__(self, task: Task, kernels: Mapping[str, KernelText], inputs: Sequence[str]) -> None:
        self.task, self.kernels = task, kernels
        self.lines: list[str] = []
        self.launched: list[str] = []
        self.state: list[str] = []
        self.tune: dict[str, tuple[Any, ...]] = {}
        self.result: str | None = None
        self.uses_view = self.uses_bias = False
        self._sources = tuple(inputs)
        self._specs = {spec.name: spec for spec in task.inputs if spec.is_tensor}
        self._names: dict[str, str] = {}
        self._device = ""
        self._dense: dict[str, str] = {}

    def read(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            self._read(node)
        if self.result is None:
            raise UnsupportedError("a module that returns nothing")

    def _read(self, node: ast.stmt) -> None:
        if isinstance(node, ast.With) and all("_DeviceGuard" in ast.unparse(item.context_expr) for item in node.items):
            for inner in node.body:
                self._read(inner)
        elif isinstance(node, ast.Return):
            self._return(node)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id not in self._names:
                    self.lines.append(f"del {target.id}")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._call(node.value)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assign(node.targets[0], node.value)
        else:
            raise UnsupportedError(f"a statement that has no plain form here: {_short(node)}")

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        text = ast.unparse(value)
        if text == "args":
            elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            self._arguments([element.id for element in elements if isinstance(element, ast.Name)])
            return
        if not isinstance(target, ast.Name):
            raise UnsupportedError(f"an assignment that has no plain form here: {_short(value)}")
        if "get_raw_stream" in text:
            return
        if target.id in self._names:
            raise UnsupportedError(f"an argument that gets another value: {_short(value)}")
        self.lines.append(f"{target.id} = {self._value(value)}")

    def _arguments(self, names: Sequence[str]) -> None:
        """What the module calls its arguments is one of ours each, guarded as the kernels were written for it."""
        if len(names) != len(self._sources):
            raise UnsupportedError(f"{len(names)} arguments, of which {len(self._sources)} are known")
        for spec in self.task.inputs:
            if not spec.is_tensor:
                self._refuse(f"{spec.name} != {spec.values.value!r}", f"{spec.name} = {spec.values.value!r}")
        for name, source in zip(names, self._sources, strict=True):
            kind, _, what = source.partition(":")
            if kind == "state":
                own = what.replace(".", "_")
                if own not in self.state:
                    self.state.append(own)
            elif kind == "input" and what in self._specs:
                own = what
                if what not in self._names.values():
                    self._guard(self._specs[what])
            else:
                raise UnsupportedError(f"an argument that is none of the op's: {source}")
            if own in self.kernels:
                raise UnsupportedError(f"an argument of the name of a kernel: {own}")
            self._names[name] = own
            self._device = self._device or own
        if not self._device:
            raise UnsupportedError("an op without tensors")

    def _guard(self, spec: InputSpec) -> None:
        self._refuse(
            f"{spec.name}.shape != {tuple(spec.shape)} or {spec.name}.dtype != torch.{spec.dtype}", f"{spec.name} of this shape and dtype"
        )
        if spec.strides == _contiguous(spec.shape):
            self.lines.append(f"{spec.name} = {spec.name}.contiguous()")
        else:
            self._refuse(f"{spec.name}.stride() != {tuple(spec.strides)}", f"{spec.name} of these strides")

    def _refuse(self, condition: str, wanted: str) -> None:
        quote = "'" if '"' in wanted else '"'
        self.lines += [f"if {condition}:", f"    raise NotImplementedError({quote}written for {wanted} alone{quote})"]

    def _return(self, node: ast.Return) -> None:
        if not isinstance(node.value, ast.Tuple):
            raise UnsupportedError("a module that returns no tuple")
        texts = [self._value(element) for element in node.value.elts]
        if len(texts) != len(self.task.outputs) or "None" in texts:
            raise UnsupportedError(f"{len(texts)} results, where the op has {len(self.task.outputs)}")
        if any(text in self._names.values() for text in texts):
            raise UnsupportedError("a result that is an argument")
        self.result = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    # -- calls ---------------------------------------------------------------------------------------------------------------------

    def _call(self, call: ast.Call) -> None:
        name = ast.unparse(call.func)
        if name in _SILENT:
            return
        owner, _, method = name.rpartition(".")
        if method == "run" and owner in self.kernels:
            self._launch(self.kernels[owner], call)
            return
        self.lines.append(self._value(call))

    def _launch(self, kernel: KernelText, call: ast.Call) -> None:
        """A plain launch. Each kernel's numbers are names of their own where there are several kernels."""
        passed = [self._value(argument) for argument in call.args]
        sizes = passed[len(passed) - kernel.extra :] if kernel.extra else []
        passed = passed[: len(passed) - kernel.extra] if kernel.extra else passed
        constants = {name: self._tuned(kernel, name, values) for name, values in kernel.constants.items()}
        if len(passed) != len(kernel.arguments):
            raise UnsupportedError(f"{kernel.name} is launched with {len(passed)} arguments and has {len(kernel.arguments)}")
        grid = kernel.grid
        if sizes:
            grid = (sizes[0], sizes[1] if len(sizes) > 1 else "1", sizes[2] if len(sizes) > 2 else "1")
        texts = [_named(size, {**constants, **dict(zip(kernel.arguments, passed, strict=True))}) for size in grid]
        while len(texts) > 1 and texts[-1] == "1":
            texts.pop()
        grid_text = f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
        if kernel.name not in self.launched:
            self.launched.append(kernel.name)
        self.lines += call_lines(f"{kernel.name}[{grid_text}](", [*passed, *(f"{k}={v}" for k, v in constants.items())], ")")

    def _tuned(self, kernel: KernelText, name: str, values: tuple[Any, ...]) -> str:
        if len(values) == 1:
            return repr(values[0])
        place = list(self.kernels).index(kernel.name)
        own = name.upper() if len(self.kernels) == 1 else f"{name.upper()}_{place}"
        self.tune[own] = values
        return own

    # -- expressions ---------------------------------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Constant):
            return repr(node.value)
        if isinstance(node, (ast.Tuple, ast.List)):
            inside = ", ".join(self._value(element) for element in node.elts)
            if isinstance(node, ast.List):
                return f"[{inside}]"
            return f"({inside},)" if len(node.elts) == 1 else f"({inside})"
        if isinstance(node, ast.Subscript):
            return f"{self._value(node.value)}[{self._value(node.slice)}]"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"-{self._value(node.operand)}"
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("torch."):
            return ast.unparse(node)
        if isinstance(node, ast.Call):
            return self._value_of_call(node)
        raise UnsupportedError(f"an expression that has no plain form here: {_short(node)}")

    def _value_of_call(self, call: ast.Call) -> str:
        name = ast.unparse(call.func)
        passed = [self._value(argument) for argument in call.args]
        named = {keyword.arg: self._value(keyword.value) for keyword in call.keywords if keyword.arg}
        if name in ("empty_strided_cuda", "empty_strided"):
            return f"torch.empty_strided({passed[0]}, {passed[1]}, dtype={passed[2]}, device={self._device}.device)"
        if name == "reinterpret_tensor":
            self.uses_view = True
            return f"view_of({', '.join(passed)})"
        if name == "extern_kernels.bias_addmm":
            if set(named) - {"out", "alpha", "beta"} or any(named.get(scale, "1") != "1" for scale in ("alpha", "beta")):
                raise UnsupportedError("a scaled product with a bias")
            self.uses_bias = True
            return f"biased_product({', '.join(passed)}, {named['out']})"
        if name.startswith("extern_kernels."):
            known = _EXTERN.get(name.removeprefix("extern_kernels."))
            if known is None:
                raise UnsupportedError(f"a library call that has no plain form here ({name})")
            name = known
        elif name.startswith("aten."):
            name = f"torch.ops.{name}"
        elif not name.startswith("torch.ops.aten."):
            raise UnsupportedError(f"a call that has no plain form here ({name})")
        return f"{name}({', '.join([*passed, *(f'{key}={value}' for key, value in named.items())])})"


def _assemble(task: Task, wrapper: _Wrapper, kernels: Sequence[KernelText]) -> str:
    is_model = task.format == "model"
    name = forward_name(task) if is_model else task.candidate_entry
    model = model_class(task, name, wrapper.state) if is_model else None
    if wrapper.state and model is None:
        raise UnsupportedError("tensors that are no arguments of the op")
    helpers = needed({helper for kernel in kernels for helper in kernel.helpers})
    taken = {spec.name for spec in task.inputs} & {text.split("(")[0].rpartition(" ")[2] for text in helpers}
    if taken:
        raise UnsupportedError(f"an argument of the name of a helper: {sorted(taken)[0]}")
    imports = ["import torch"]
    if kernels:
        imports += ["import triton", "import triton.language as tl"]
    if any(kernel.libdevice for kernel in kernels):
        imports.append("from triton.language.extra import libdevice")
    title = f"{task.name}: Inductor's own kernels, as torch.compile generated them for these shapes."
    head = [f'"""{textwrap.fill(title, WIDTH)}"""', "\n".join([*imports, *(model.imports if model else ())])]
    if wrapper.tune:
        head.append("\n".join(["TUNE = {", *(f'    "{key}": {list(values)},' for key, values in wrapper.tune.items()), "}"]))
    functions = dict.fromkeys(text for kernel in kernels for text in kernel.functions)
    signature = ", ".join([*(spec.name for spec in task.inputs), *wrapper.state])
    body = "\n".join([f"def {name}({signature}):", *(f"    {line}" for line in [*wrapper.lines, f"return {wrapper.result}"])])
    blocks = [text.strip() for text in helpers] + list(functions)
    blocks += [VIEW.strip()] * wrapper.uses_view + [BIAS.strip()] * wrapper.uses_bias + [body]
    if model is not None:
        blocks += [*model.needed, model.text]
    source = "\n\n".join(head) + "\n\n\n" + "\n\n\n".join(blocks) + "\n"
    try:
        ast.parse(source)
    except SyntaxError as error:
        raise UnsupportedError(f"a text that is no Python when it is put together: {error.msg} in line {error.lineno}") from None
    return source


def _named(text: str, values: Mapping[str, str]) -> str:
    """A grid's size with names of the kernel replaced by what the launcher passes."""
    tree = ast.parse(text, mode="eval")

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.parse(values[node.id], mode="eval").body if node.id in values else node

    return ast.unparse(Replace().visit(tree))


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def _short(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()[0]
    return text if len(text) <= 80 else f"{text[:77]}..."
