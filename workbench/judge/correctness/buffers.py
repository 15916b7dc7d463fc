"""What a call of a model leaves in its buffers, such as a batch norm's running mean.

Nothing that a call returns shows it, and yet it is what the model computes with later, in eval mode. So the reference is asked which of
its buffers a call changes, and what one call leaves in them counts as further results: with a truth in float64, errors of honest
computation, and the same bounds as outputs have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from workbench.capture.references import Reference
from workbench.judge.correctness.expected import same
from workbench.judge.correctness.truth import clone

Values = Mapping[str, torch.Tensor]


@torch.no_grad()  # type: ignore[untyped-decorator]
def updated(reference: Reference, inputs: Sequence[Any]) -> tuple[str, ...]:
    """Names of the buffers that a call on these inputs changes; two calls from the same state tell.

    Those in which two such calls leave different values are left out: nobody can say what is right there. The state is as it was
    afterwards.
    """
    module = reference.module
    before = values(module, None) if module is not None else {}
    if module is None or not before:
        return ()
    found: list[Values] = []
    try:
        for _ in range(2):
            put(module, before)
            reference(*[clone(item) for item in inputs])
            found.append(values(module, None))
    finally:
        put(module, before)
    one, other = found
    return tuple(
        name for name, old in before.items()
        if one[name].shape == old.shape and not same(one[name], old) and (reference.random or same(one[name], other[name]))
    )  # fmt: skip


def values(module: torch.nn.Module, names: Sequence[str] | None) -> dict[str, torch.Tensor]:
    """Copies of a module's buffers, or of those of some names."""
    held = dict(module.named_buffers())
    return {name: held[name].detach().clone() for name in (held if names is None else names)}


def put(module: torch.nn.Module, given: Values) -> None:
    """Writes values into a module's buffers."""
    held = dict(module.named_buffers())
    for name, value in given.items():
        held[name].copy_(value)


def as_results(reference: Reference, start: Values) -> Reference:
    """The op whose results are what one call, from the buffers `start` on, leaves in them."""
    assert reference.module is not None
    leaving = _Leaving(reference.module, start)
    return replace(reference, call=leaving, module=leaving, changes=())


class _Leaving(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, module: torch.nn.Module, start: Values) -> None:
        super().__init__()
        self.module = module
        self.start = dict(start)

    def forward(self, *inputs: Any) -> list[torch.Tensor]:
        put(self.module, self.start)
        self.module(*inputs)
        # Looked up again: a model may put another tensor in a buffer's place.
        held = dict(self.module.named_buffers())
        return [held[name].clone() for name in self.start]
