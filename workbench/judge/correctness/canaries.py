"""Bad answers that a checker must be able to refuse: tried on each op before any search.

A canary is made of what the judge knows (the right outputs, those of other inputs), so it costs a comparison and no run of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from workbench.capture.references import Reference
from workbench.inputs import make_input, stream_seed
from workbench.judge.correctness.expected import Expected
from workbench.judge.correctness.truth import clone
from workbench.task import InputSpec

Outputs = list[torch.Tensor]

ADVICE: Mapping[str, str] = {
    "zeros": "give inputs on which the results differ from zero",
    "the mean everywhere": "give inputs on which the results differ from one another",
    "the result of other inputs": "the outputs do not depend on the values of the inputs here: give wider inputs, or check the op",
    "the first input returned": "on these inputs the op changes nothing: give inputs that it changes",
    "the last 0.5 % left at zero": "give inputs on which the last results differ from zero",
    "one element off by three sigma": "the op's own error is as large as its results: give inputs of another scale or mean",
}


def of_outputs(expected: Expected, other: Sequence[torch.Tensor]) -> dict[str, Outputs]:
    """Bad answers by name, without those that make no sense for these outputs.

    Args:
        other: the right outputs for other inputs.
    """
    made = {name: make(expected, other) for name, make in _MAKERS.items()}
    return {name: outputs for name, outputs in made.items() if outputs is not None}


def neutral(spec: InputSpec, value: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """Values at which an input often has no effect, in place of `value`: an ignored bias looks like zeros, an ignored scale like ones."""
    if spec.dtype == "bool":
        return [("all true", torch.ones_like(value)), ("all false", torch.zeros_like(value))]
    if not value.is_floating_point():
        return []  # indices: any other draw will do
    return [("zeros", torch.zeros_like(value)), ("ones", torch.ones_like(value))]


def redrawn(specs: Sequence[InputSpec], inputs: Sequence[Any], position: int, seed: int, device: str) -> list[Any]:
    """The same inputs but one, which is drawn from another stream."""
    replaced = list(inputs)
    replaced[position] = make_input(specs[position], stream_seed(seed, position), device)
    return replaced


def _zeros(expected: Expected, other: Sequence[torch.Tensor]) -> Outputs:
    return [torch.zeros_like(output.reference) for output in expected.outputs]


def _mean(expected: Expected, other: Sequence[torch.Tensor]) -> Outputs | None:
    if all(output.reference.numel() <= 1 for output in expected.outputs):
        return None
    return [
        torch.full_like(output.reference, float(output.truth.double().nanmean())) if output.reference.is_floating_point()
        else torch.zeros_like(output.reference)
        for output in expected.outputs
    ]  # fmt: skip


def _stale(expected: Expected, other: Sequence[torch.Tensor]) -> Outputs:
    return [item.reshape(output.reference.shape) for item, output in zip(other, expected.outputs, strict=True)]


def _passthrough(expected: Expected, other: Sequence[torch.Tensor]) -> Outputs | None:
    first = next((item for item in expected.inputs if isinstance(item, torch.Tensor)), None)
    if first is None or len(expected.outputs) != 1:
        return None
    reference = expected.outputs[0].reference
    if first.numel() != reference.numel() or not reference.is_floating_point() or not first.is_floating_point():
        return None
    return [first.reshape(reference.shape).to(reference.dtype)]


def _tail(expected: Expected, other: Sequence[torch.Tensor]) -> Outputs | None:
    out, touched = [], False
    for output in expected.outputs:
        values = output.reference.clone(memory_format=torch.contiguous_format)
        flat = values.view(-1)
        tail = flat[-max(1, flat.numel() // 200) :]
        touched |= bool((tail != 0).any())  # where zero is right, as often behind a ReLU, this canary says nothing
        tail.zero_()
        out.append(values)
    return out if touched else None


def _spike(expected: Expected, other: Sequence[torch.Tensor]) -> Outputs | None:
    out = []
    for output in expected.outputs:
        if not output.reference.is_floating_point() or output.reference.numel() == 0:
            return None
        values = output.reference.clone(memory_format=torch.contiguous_format)
        flat = values.view(-1)
        usable = torch.isfinite(flat.double()).nonzero()
        if usable.numel() == 0 or output.scale == 0:
            return None
        flat[int(usable[usable.numel() // 2])] += 3 * output.scale
        out.append(values)
    return out


_MAKERS: Mapping[str, Callable[[Expected, Sequence[torch.Tensor]], Outputs | None]] = {
    "zeros": _zeros, "the mean everywhere": _mean, "the result of other inputs": _stale, "the first input returned": _passthrough,
    "the last 0.5 % left at zero": _tail, "one element off by three sigma": _spike,
}  # fmt: skip


# Coarser computations


class Rounded(TorchDispatchMode):  # type: ignore[misc]
    """Rounds what every ATen call gets and gives in single precision to a coarser type; ``tf32`` rounds operands of products alone."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else PyTorch imports its compiler at the first call, which takes seconds; nothing is compiled in here

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.kind == "TF32":
            if func._schema.name.split("::")[-1] in _PRODUCTS:
                args = tree_map(self._round, args)
            return func(*args, **(kwargs or {}))
        if func._schema.is_mutable:
            return func(*args, **(kwargs or {}))
        return tree_map(self._round, func(*tree_map(self._round, args), **(kwargs or {})))

    def _round(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float32:
            return value
        if self.kind == "TF32":
            return ((value.contiguous().view(torch.int32) + 0xFFF + 1) & ~0x1FFF).view(torch.float32).view(value.shape)
        return value.to(torch.bfloat16 if self.kind == "bf16" else torch.float16).to(torch.float32)


_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "mv", "convolution", "linear", "_scaled_dot_product_flash_attention_for_cpu"})


def coarser(reference: Reference, inputs: Sequence[Any], kind: str) -> Outputs | None:
    """The reference's outputs when it computes in a coarser type; None where that can't be done."""
    try:
        with Rounded(kind):
            return [output.detach() for output in reference(*[clone(item) for item in inputs])]
    except Exception:
        return None
