"""The traced graph of an op, as data: what experts match, what features are read from, what FLOPs are counted on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Node:
    """One ATen call.

    Attributes:
        name: unique in the graph.
        op: the ATen overload, such as ``aten.mul.Tensor``; ``getitem`` picks one result of a node with several.
        args: positional arguments. A result of another node, or an input of the Task, is ``{"ref": name}``; dtypes are their
            names (``"float32"``); lists are tuples; numbers, booleans, strings and None are themselves.
        kwargs: keyword arguments, in the same encoding.
        shape: of the (first) result, in elements.
        dtype: of the (first) result.
    """

    name: str
    op: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    dtype: str = ""

    def refs(self) -> Iterator[str]:
        """Names of the nodes and inputs that this call reads, in order of appearance, repeats included."""
        yield from _refs(self.args)
        yield from _refs(tuple(self.kwargs.values()))


@dataclass(frozen=True)
class Graph:
    """Nodes in execution order. Names of the Task's inputs are free in it; `outputs` are names of nodes or inputs."""

    nodes: tuple[Node, ...] = ()
    outputs: tuple[str, ...] = ()

    def node(self, name: str) -> Node | None:
        """The node of that name; None for an input of the Task."""
        return next((node for node in self.nodes if node.name == name), None)

    def users(self, name: str) -> tuple[Node, ...]:
        """The nodes that read `name`."""
        return tuple(node for node in self.nodes if name in set(node.refs()))

    def ops(self) -> tuple[str, ...]:
        """Base names of the ops in order, such as ``("pow", "mean", "add", "rsqrt", "mul")``."""
        return tuple(node.op.split(".")[1] if node.op.startswith("aten.") else node.op for node in self.nodes)


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if set(value) == {"ref"}:
            yield value["ref"]
    elif isinstance(value, tuple):
        for item in value:
            yield from _refs(item)
