"""Is the op judgeable at all? Bad answers that the checker must be able to refuse, tried before any search.

If a canary passes, so would a cheat: the output hardly depends on the inputs, or its values are so small that nothing is a good answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from workbench.capture.references import Reference
from workbench.inputs import make_inputs
from workbench.judge.compare import compare
from workbench.judge.expected import Expected, expect
from workbench.task import InputSpec

OWN_NOISE = 1e-6


def degenerate(reference: Reference, specs: Sequence[InputSpec], seeds: tuple[int, int], device: str) -> str:
    """The canary that the checker lets pass, or nothing."""
    first = expect(reference, make_inputs(specs, seeds[0], device))
    other = [output.detach() for output in reference(*make_inputs(specs, seeds[1], device))]
    for name, make in _CANARIES.items():
        outputs = make(first, other)
        if outputs is not None and all(
            compare(output, right).right for output, right in zip(outputs, first.outputs, strict=True) if right.reference.numel()
        ):
            return name
    return ""


def noisy(reference: Reference, specs: Sequence[InputSpec], seed: int, device: str) -> bool:
    """Whether two runs on the same inputs differ by more than rounding: a random op, which this comparison can't judge."""
    runs = [reference(*make_inputs(specs, seed, device)) for _ in range(2)]
    for one, two in zip(*runs, strict=True):
        if one.is_floating_point() and one.numel():
            apart = (torch.nan_to_num(one.double()) - torch.nan_to_num(two.double())).abs().max()
            if float(apart) > OWN_NOISE * max(1.0, float(torch.nan_to_num(one.double()).abs().max())) * (
                2**13 if one.element_size() < 4 else 1
            ):
                return True
        elif one.dtype != torch.bool and not one.is_floating_point() and not torch.equal(one, two):
            return True
    return False


def _zeros(expected: Expected, other: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.zeros_like(output.reference) for output in expected.outputs]


def _mean(expected: Expected, other: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    if all(output.reference.numel() == 1 for output in expected.outputs):
        return None
    return [
        torch.full_like(output.reference, float(output.truth.mean())) if output.reference.is_floating_point() else output.reference * 0
        for output in expected.outputs
    ]


def _stale(expected: Expected, other: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return list(other)


def _tail(expected: Expected, other: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    out = []
    touched = False
    for output in expected.outputs:
        values = output.reference.clone(memory_format=torch.contiguous_format)
        flat = values.view(-1)
        tail = flat[-max(1, flat.numel() // 200) :]
        touched |= bool((tail != 0).any())  # where zero is right, as often behind a ReLU, this canary says nothing
        tail.zero_()
        out.append(values)
    return out if touched else None


def _spike(expected: Expected, other: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    out = []
    for output in expected.outputs:
        if not output.reference.is_floating_point():
            return None
        values = output.reference.clone(memory_format=torch.contiguous_format)
        flat = values.view(-1)
        flat[flat.numel() // 2] += 3 * output.scale
        out.append(values)
    return out


_CANARIES: Mapping[str, Callable[[Expected, Sequence[torch.Tensor]], list[torch.Tensor] | None]] = {
    "zeros": _zeros, "the mean everywhere": _mean, "the result of other inputs": _stale, "the last 0.5 % left at zero": _tail,
    "one element off by three sigma": _spike,
}  # fmt: skip
