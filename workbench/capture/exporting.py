"""An nn.Module as a plain function of inputs, parameters and buffers: the graph of `torch.export`, printed."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from workbench.capture.arguments import python_value
from workbench.capture.collecting import literal
from workbench.capture.quiet import quiet
from workbench.capture.rebinding import rebind
from workbench.capture.references import describe, flatten
from workbench.capture.specs import check_tensor
from workbench.capture.text import unique
from workbench.errors import CaptureError
from workbench.task import Role

CONSTANT = 64
"""Elements up to which a tensor that the module made itself is written into the text; a larger one becomes an argument."""

DROPPED = frozenset({"_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range_for_size", "sym_constrain_range"})
"""Calls that check and return nothing."""


@dataclass(frozen=True)
class Exported:
    """A module as text.

    Attributes:
        text: the reference.
        leaves: its arguments in order: name, live value, role.
        live: the live module on other values for the leaves.
        unreached: names of the buffers that a training step updates and the text doesn't.
    """

    text: str
    leaves: list[tuple[str, torch.Tensor, Role]]
    live: Callable[[list[Any]], list[torch.Tensor]]
    unreached: tuple[str, ...] = ()


class Bundle(torch.nn.Module):  # type: ignore[misc]
    """A function together with the modules and tensors that it reads, as one module."""

    def __init__(self, function: Any, modules: Mapping[str, torch.nn.Module], tensors: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.function = function
        self.read: list[tuple[int, str]] = []
        for name, module in modules.items():
            self.read.append((id(module), name))
            self.add_module(name, shadow(module))
        for name, tensor in tensors.items():
            self.read.append((id(tensor), name))
            if isinstance(tensor, torch.nn.Parameter):
                self.register_parameter(name, tensor)
            else:
                self.register_buffer(name, tensor)
        self.training = any(module.training for module in modules.values())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls a copy of the function that reads this bundle's modules and tensors."""
        return rebind(self.function, {key: getattr(self, name) for key, name in self.read})(*args, **kwargs)


def shadow(module: torch.nn.Module) -> torch.nn.Module:
    """A copy of the module that shares its tensors, so that swapping them for others never shows in the notebook."""
    memo: dict[int, Any] = {}
    for part in module.modules():
        for tensor in (*part._parameters.values(), *part._buffers.values(), *vars(part).values()):
            if isinstance(tensor, torch.Tensor):
                memo[id(tensor)] = tensor
    try:
        return copy.deepcopy(module, memo)
    except Exception:  # it holds something that can't be copied
        return module


def export_module(
    name: str, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], decorators: Sequence[str] = ()
) -> Exported:
    """Exports a module at a call's shapes, in its own mode (training or eval), and prints it.

    Raises:
        CaptureError: an argument is neither tensor nor literal, or the module can't be exported.
    """
    given, structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
    for value in given:
        if isinstance(value, torch.Tensor):
            check_tensor("of " + name, value)
        elif value is not None and python_value(value) is None and literal(value) is None:
            raise CaptureError(f"an input of {name} is a {type(value).__qualname__}: pass tensors and plain values")
    copied = module if isinstance(module, Bundle) else shadow(module)
    program = _export(name, copied, given, structure)
    printer = _Printer(name, program, copied, given, decorators)
    text = printer.text()

    def live(values: list[Any]) -> list[torch.Tensor]:
        inputs = list(given)
        # What no argument gives is written to all the same: to a copy, since these values are nobody's.
        state = {name: buffer.clone() for name, buffer in copied.named_buffers() if name in printer.unreached}
        for value, (place, target) in zip(values, printer.places, strict=True):
            if place is not None:
                inputs[place] = value
            else:
                state[target] = value
        positional, named = pytree.tree_unflatten(inputs, structure)
        return flatten(_call(copied, state, positional, named))

    return Exported(text, printer.leaves, live, printer.unreached)


def _call(module: torch.nn.Module, state: Mapping[str, torch.Tensor], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    registered = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    registered |= {name for name, _ in module.named_buffers(remove_duplicate=False)}
    # Tensors that are plain attributes aren't part of the state that functional_call swaps.
    plain = {name: value for name, value in state.items() if name not in registered}
    kept = {}
    for name, value in plain.items():
        owner, attribute = _owner(module, name)
        kept[name] = getattr(owner, attribute)
        setattr(owner, attribute, value)
    swapped = {name: value for name, value in state.items() if name in registered}

    def keep(*_: Any) -> None:
        # A buffer that the module puts in the place of its own is what the next call finds there.
        for name, buffer in module.named_buffers(remove_duplicate=False):
            if name in swapped and buffer is not swapped[name]:
                swapped[name].copy_(buffer)

    hook = module.register_forward_hook(keep)
    try:
        return torch.func.functional_call(module, swapped, tuple(args), dict(kwargs), tie_weights=True)
    finally:
        hook.remove()
        for name, value in kept.items():
            owner, attribute = _owner(module, name)
            setattr(owner, attribute, value)


def _owner(module: torch.nn.Module, name: str) -> tuple[torch.nn.Module, str]:
    path, _, attribute = name.rpartition(".")
    return module.get_submodule(path), attribute


def _export(name: str, module: torch.nn.Module, given: Sequence[Any], structure: Any) -> torch.export.ExportedProgram:
    # Fresh tensors of the same layout: one tensor passed twice would become one input.
    def like(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)

    fresh = [like(value) for value in given]
    args, kwargs = pytree.tree_unflatten(fresh, structure)
    unrolled = next((part for part in module.modules() if isinstance(part, torch.nn.RNNBase)), None)
    if unrolled is not None:
        kind = type(unrolled).__name__
        raise CaptureError(f"{name} holds a {kind}, which is a loop over its sequence: give it in KernelBench's format, or its step alone")
    try:
        with torch.no_grad(), quiet():
            program = torch.export.export(module, tuple(args), dict(kwargs), strict=False)
            if any(isinstance(node.target, torch._ops.HigherOrderOperator) for node in program.graph.nodes):
                program = program.run_decompositions({})
    except Exception as error:
        if "DataDependent" in type(error).__name__:
            raise CaptureError(f"{name} can't be exported: it decides by a tensor's values; write it with torch.where") from error
        raise CaptureError(f"{name} can't be exported: {describe(error)}; write it as a function of tensors") from error
    for node in program.graph.nodes:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            raise CaptureError(f"{name} can't be printed: it uses {node.target} inside; write it as a function of tensors")
    return program


class _Printer:
    def __init__(
        self, name: str, program: torch.export.ExportedProgram, module: torch.nn.Module, given: Sequence[Any], decorators: Sequence[str]
    ) -> None:
        self.name = name
        self.program = program
        self.decorators = decorators
        self.names: dict[str, str] = {}
        self.leaves: list[tuple[str, torch.Tensor, Role]] = []
        self.places: list[tuple[int | None, str]] = []
        self.constants: list[str] = []
        self.unreached: tuple[str, ...] = ()
        self._buffers: set[str] = set()
        self._arguments(module, given)

    def text(self) -> str:
        """The module text: one function, a line for each call."""
        lines = [line for node in self.program.graph.nodes for line in self._lines(node)]
        head = f"def {self.name}({', '.join(name for name, _, _ in self.leaves)}):"
        if len(head) > 120:
            head = f"def {self.name}(\n    " + ",\n    ".join(name for name, _, _ in self.leaves) + ",\n):"
        return "\n".join(["import torch", "", "", *self.decorators, head, *(f"    {line}" for line in (*self.constants, *lines))]) + "\n"

    def _arguments(self, module: torch.nn.Module, given: Sequence[Any]) -> None:
        placeholders = {node.name: node for node in self.program.graph.nodes if node.op == "placeholder"}
        users = {name: node for name, node in placeholders.items() if node.users}
        specs = self.program.graph_signature.input_specs
        kinds = torch.export.graph_signature.InputKind
        place = -1
        for spec in specs:
            if spec.kind is not kinds.USER_INPUT:
                continue
            place += 1
            value = given[place]
            if not isinstance(value, torch.Tensor):
                continue
            role: Role = "parameter" if isinstance(value, torch.nn.Parameter) else "input"
            self._leaf(spec.arg.name, spec.arg.name, value, role, place, "")
        order = {name: position for position, name in enumerate(module.state_dict(keep_vars=True))}
        free = [spec for spec in specs if spec.kind in (kinds.PARAMETER, kinds.BUFFER, kinds.CONSTANT_TENSOR) and spec.arg.name in users]
        for spec in sorted(free, key=lambda spec: (order.get(spec.target, len(order)), specs.index(spec))):
            target = str(spec.target)
            value = self.program.state_dict.get(target, self.program.constants.get(target))
            if spec.kind is kinds.BUFFER:
                self._buffers.add(spec.arg.name)
                if _is_statistic(users[spec.arg.name], target):
                    self.unreached += (target,)
                    continue
            if not isinstance(value, torch.Tensor):
                raise CaptureError(f"{self.name} holds {target}, a {type(value).__qualname__}, which can't be captured")
            if spec.kind is kinds.CONSTANT_TENSOR and (value.numel() <= CONSTANT or not self._settable(module, target)):
                self._constant(spec.arg.name, target, value)
                continue
            role = "parameter" if spec.kind is kinds.PARAMETER else "buffer"
            self._leaf(spec.arg.name, _identifier(target), value, role, None, target)

    def _settable(self, module: torch.nn.Module, target: str) -> bool:
        try:
            owner, attribute = _owner(module, target)
        except AttributeError:
            return False
        return isinstance(getattr(owner, attribute, None), torch.Tensor)

    def _constant(self, placeholder: str, target: str, value: torch.Tensor) -> None:
        if value.numel() > 4096 or isinstance(value, torch._subclasses.FakeTensor):
            raise CaptureError(f"{self.name} makes the constant {target} of {value.numel()} elements: register it as a buffer")
        name = unique(_identifier(target), self.names.values())
        self.names[placeholder] = name
        values = literal(value.float().tolist() if value.is_floating_point() else value.tolist())
        self.constants.append(f"{name} = torch.tensor({values}, dtype={value.dtype}, device={self._device()})")

    def _leaf(self, placeholder: str, wanted: str, value: torch.Tensor, role: Role, place: int | None, target: str) -> None:
        name = unique(_identifier(wanted), {*self.names.values(), self.name, "torch"})
        check_tensor(name, value, role)
        self.names[placeholder] = name
        self.leaves.append((name, value, role))
        self.places.append((place, target))

    def _lines(self, node: torch.fx.Node) -> list[str]:
        if node.op == "placeholder":
            return []
        if node.op == "output":
            results = [spec.arg.name for spec in self.program.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"
                       and type(spec.arg).__name__ == "TensorArgument"]  # fmt: skip
            if not results:
                raise CaptureError(f"{self.name} returns no tensor")
            return [f"return {', '.join(self.names[result] for result in results)}"]
        if node.target is operator.getitem:
            return self._assigned(node, f"{self._value(node.args[0])}[{node.args[1]}]")
        if not isinstance(node.target, torch._ops.OpOverload):
            raise CaptureError(f"{self.name} can't be printed: it calls {node.target}")
        schema = node.target._schema
        short = schema.name.split("::")[1]
        first = node.args[0] if node.args else None
        if short in DROPPED or (isinstance(first, torch.fx.Node) and first.name not in self.names and first.name in self._buffers):
            return []
        args = list(node.args)
        if short == "batch_norm" and args[5]:  # training: the statistics are the batch's, and the running ones aren't read
            args[3] = args[4] = None
        parts = [self._value(value) for value in args]
        parts += [f"{key}={self._value(value)}" for key, value in node.kwargs.items() if key != "pin_memory"]
        return self._assigned(node, f"torch.ops.{node.target}({', '.join(parts)})")

    def _assigned(self, node: torch.fx.Node, expression: str) -> list[str]:
        if not node.users:
            return [expression]
        self.names[node.name] = unique(node.name, {*self.names.values(), self.name, "torch"})
        return [f"{self.names[node.name]} = {expression}"]

    def _value(self, value: Any) -> str:
        if isinstance(value, torch.fx.Node):
            return self.names[value.name]
        if isinstance(value, torch.device):
            return self._device()
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(self._value, value))}]"
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        text = literal(value)
        if text is None:
            raise CaptureError(f"{self.name} can't be printed: it passes a {type(value).__qualname__} to an op")
        return text

    def _device(self) -> str:
        tensor = next((name for name, _, _ in self.leaves), None)
        return f"{tensor}.device" if tensor is not None else '"cpu"'


def _is_statistic(buffer: torch.fx.Node, target: str) -> bool:
    """Whether it is a batch norm's running statistic, or its counter of calls, that training updates and doesn't use."""

    def updates(user: torch.fx.Node) -> bool:
        if not isinstance(user.target, torch._ops.OpOverload):
            return False
        name = user.target._schema.name.split("::")[1]
        if name == "batch_norm":
            return bool(user.args[5]) and buffer in user.args[3:5]
        return target.endswith("num_batches_tracked") and name == "add_" and user.args[0] is buffer and not user.users

    return all(map(updates, buffer.users))


def _identifier(name: str) -> str:
    cleaned = "".join(character if character.isalnum() else "_" for character in name)
    return f"m{cleaned}" if cleaned[:1].isdigit() else cleaned.lstrip("_") or "value"
