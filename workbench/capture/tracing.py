"""The ATen graph of a reference at the captured shapes, traced on fake tensors: nothing is computed, whatever the sizes."""

from __future__ import annotations

import contextlib
import importlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from workbench.capture.quiet import quiet
from workbench.capture.references import describe
from workbench.capture.specs import dtype_name
from workbench.graph import Graph, Node
from workbench.task import InputSpec

LIMIT = 3000
"""Calls that are traced at most."""

FORWARDED = frozenset({"detach", "alias", "lift_fresh_copy", "lift_fresh", "lift"})
"""Calls that return their argument as far as values go; the graph is clearer without them."""


@dataclass(frozen=True)
class Trace:
    """What tracing found.

    Attributes:
        graph: empty where the op can't be traced.
        nodes: the traced calls, with fake results in ``meta["val"]``; the source of `graph`, and of the count of work.
        random: the first op that draws random numbers, empty where none does.
        dynamic: the first op whose result's shape depends on values, empty where none does.
        reason: why the graph is empty.
        outputs: fake tensors like the results.
        changed: arguments that the op writes to.
    """

    graph: Graph = Graph()
    nodes: tuple[torch.fx.Node, ...] = ()
    random: str = ""
    dynamic: str = ""
    reason: str = ""
    outputs: tuple[torch.Tensor, ...] = ()
    changed: tuple[str, ...] = ()


def trace(
    call: Callable[..., Any], inputs: Sequence[InputSpec], device: torch.device, free: Mapping[str, torch.Tensor] | None = None
) -> Trace:
    """Traces ``call(*inputs, **free)`` under ``torch.no_grad()``.

    Composite ops are taken apart (``linear`` is ``t`` and ``addmm``), as autograd would; only scaled dot product attention, which every
    device takes apart in its own way, stays one node.

    Args:
        call: takes the inputs by position, and the free tensors as one dict after them where `free` is given.
        inputs: their specs; tensors are traced, Python values are constants.
        device: where the fake tensors pretend to be.
        free: tensors that aren't inputs of the Task: a Model's parameters, by name.
    """
    names = [spec.name for spec in inputs if spec.is_tensor]
    free = dict(free or {})

    def run(*tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        values = [next(given) if spec.is_tensor else spec.values.value for spec in inputs]
        with _KeepAttention(), _Counter():
            return call(*values, dict(zip(free, given, strict=True))) if free else call(*values)

    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            fakes = [
                torch.empty_strided(spec.shape, spec.strides, dtype=getattr(torch, spec.dtype), device=device)
                for spec in inputs
                if spec.is_tensor
            ]
            fakes += [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device) for t in free.values()]
        del mode
        with torch.no_grad(), quiet():
            module = _traced(run, fakes)
            if any(_mutates(node) for node in module.graph.nodes):
                # What writes to a state of its own can't be made functional; its graph keeps the writes.
                with contextlib.suppress(RuntimeError):
                    module = _traced(torch.func.functionalize(run, remove="mutations"), fakes)
    except DynamicOutputShapeException as error:
        return Trace(dynamic=_op_name(error.func), reason=f"{_op_name(error.func)} returns a shape that depends on values")
    except DataDependentOutputException as error:
        return Trace(reason=f"{_op_name(error.func)} reads a value on the host")
    except _TooLong as error:
        return Trace(reason=str(error))
    except Exception as error:
        return Trace(reason=describe(error))
    written = _drop_write_backs(module)
    module.graph.eliminate_dead_code()
    return replace(_convert(module, [*names, *free], set(free)), changed=tuple(names[place] for place in written if place < len(names)))


def warm_up() -> None:
    """Loads what torch's tracer imports, which takes seconds the first time. It traces nothing."""
    importlib.import_module("torch._dynamo")


def _traced(run: Callable[..., Any], fakes: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
    return make_fx(run, tracing_mode="fake", _allow_non_fake_inputs=True, _error_on_data_dependent_ops=True)(*fakes)


def _drop_write_backs(module: torch.fx.GraphModule) -> list[int]:
    """Removes the copies back into arguments that functionalizing puts at the end, so that the graph is of values alone.

    Returns:
        The places of those arguments.
    """
    arguments = [node for node in module.graph.nodes if node.op == "placeholder"]
    written = set()
    for node in reversed(module.graph.nodes):
        if node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder":
            for user in [user for user in node.args[0].users if user.op == "output"]:
                user.replace_input_with(node.args[0], node.args[1])
            node.replace_all_uses_with(node.args[1])
            written.add(arguments.index(node.args[0]))
            module.graph.erase_node(node)
    return sorted(written)


def _convert(module: torch.fx.GraphModule, names: Sequence[str], free: set[str]) -> Trace:
    known: dict[torch.fx.Node, str] = {}
    nodes: list[Node] = []
    calls: list[torch.fx.Node] = []
    outputs: tuple[str, ...] = ()
    results: tuple[torch.Tensor, ...] = ()
    random = ""
    given = iter(names)
    taken = set(names)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            name = next(given)
            known[node] = name
            if name in free:
                nodes.append(_node(name, "get_attr", (name,), {}, node.meta.get("val")))
        elif node.op == "get_attr":
            known[node] = name = _fresh(node.name, taken)
            value = getattr(module, node.target, None)
            nodes.append(_node(name, "get_attr", (node.target,), {}, value))
        elif node.op == "output":
            flat: list[torch.fx.Node] = []
            torch.fx.map_arg(node.args[0], flat.append)
            outputs = tuple(known[item] for item in flat)
            results = tuple(item.meta["val"] for item in flat if "val" in item.meta)
        else:
            op = _op_name(node.target)
            if op.split(".")[1:2] and op.split(".")[1] in FORWARDED and isinstance(node.args[0], torch.fx.Node):
                known[node] = known[node.args[0]]
                continue
            random = random or (op if _is_random(node) else "")
            known[node] = name = _fresh(node.name, taken)
            args, kwargs = _encode(node.args, known), _encode(node.kwargs, known)
            nodes.append(_node(name, op, args, kwargs, node.meta.get("val")))
            node.meta["name"] = name
            calls.append(node)
    for node, name in known.items():
        node.meta["name"] = name
    return Trace(Graph(tuple(nodes), outputs), tuple(calls), random, outputs=results)


def _node(name: str, op: str, args: Any, kwargs: Any, value: Any) -> Node:
    first = next(_tensors(value), None)
    shape = tuple(int(size) for size in first.shape) if first is not None else ()
    return Node(name, op, args, kwargs, shape, dtype_name(first.dtype) if first is not None else "")


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def _encode(value: Any, known: Mapping[torch.fx.Node, str]) -> Any:
    if isinstance(value, torch.fx.Node):
        return {"ref": known[value]}
    if isinstance(value, (tuple, list)):
        return tuple(_encode(item, known) for item in value)
    if isinstance(value, dict):
        return {key: _encode(item, known) for key, item in value.items()}
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value).removeprefix("torch.")


def _op_name(target: Any) -> str:
    if target is operator.getitem:
        return "getitem"
    if target is getattr(torch.ops.workbench, "attention", None) or str(target) == "workbench.attention.default":
        return "aten.scaled_dot_product_attention.default"
    return str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))


def _fresh(name: str, taken: set[str]) -> str:
    candidate, number = name, 1
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    taken.add(candidate)
    return candidate


def _mutates(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _is_random(node: torch.fx.Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    name = target._schema.name.split("::")[1]
    if name == "attention":
        dropout = node.args[4] if len(node.args) > 4 else 0.0
        return dropout != 0.0
    attention = name.startswith(("_scaled_dot_product", "_flash_attention", "_efficient_attention"))
    if torch.Tag.nondeterministic_seeded not in target.tags or attention:
        return False
    if name in ("native_dropout", "dropout", "feature_dropout", "alpha_dropout"):
        return node.args[1] != 0.0 and node.args[2] is not False  # probability, and whether it trains
    return not (name.startswith("rrelu") and False in node.args)


class _Counter(TorchDispatchMode):  # type: ignore[misc]
    """Gives up on graphs that nobody could read, such as a recurrent network unrolled over its sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.left = LIMIT

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.left -= 1
        if self.left < 0:
            raise _TooLong(f"it makes more than {LIMIT} calls")
        return func(*args, **(kwargs or {}))


class _TooLong(Exception):
    pass


class _KeepAttention(TorchFunctionMode):  # type: ignore[misc]
    """Keeps scaled dot product attention one node: CPU and CUDA, and each of CUDA's backends, take it apart differently."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _attentions():
            return _attention(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _attentions() -> tuple[Any, ...]:
    op = torch.ops.aten.scaled_dot_product_attention
    return torch.nn.functional.scaled_dot_product_attention, torch._C._nn.scaled_dot_product_attention, op, op.default


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0,
               is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False) -> torch.Tensor:  # fmt: skip
    _register()
    return torch.ops.workbench.attention(query, key, value, attn_mask, float(dropout_p), is_causal, scale, enable_gqa)


_library: list[torch.library.Library] = []


def _register() -> None:
    """Registers the op that stands for attention in a trace, once; it has shapes and no implementation."""
    if _library:
        return
    library = torch.library.Library("workbench", "FRAGMENT")
    library.define("attention(Tensor q, Tensor k, Tensor v, Tensor? mask, float dropout, bool causal, float? scale, bool gqa) -> Tensor")

    def shape(q: Any, k: Any, v: Any, mask: Any, dropout: Any, causal: Any, scale: Any, gqa: Any) -> Any:
        return q.new_empty((*q.shape[:-1], v.shape[-1]))

    library.impl("attention", shape, "Meta")
    _library.append(library)
