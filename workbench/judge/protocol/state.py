"""The parameters of a model: drawn anew for each judging, the same on both sides, and never neutral.

A fresh module has biases of zero and scales of one, and a candidate that ignores them would look right.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from workbench.inputs import make_inputs
from workbench.task import ITEM_BYTES, InputSpec, Values

_SPREAD = 0.2
"""How far constant parameters are moved: relative to their size, or absolute around zero."""


def describe(module: torch.nn.Module) -> tuple[InputSpec, ...]:
    """Specs from which both sides draw the same state: floating parameters and buffers, like those that the module has."""
    specs = []
    for name, tensor in module.state_dict().items():
        dtype = str(tensor.dtype).removeprefix("torch.")
        if not tensor.is_floating_point() or dtype not in ITEM_BYTES or tensor.numel() == 0:
            continue
        values = tensor.double()
        mean, low, high = float(values.mean()), float(values.min()), float(values.max())
        if low == high:
            # A constant: 1 of a scale, 0 of a bias, 1 of a running variance, which has to stay positive.
            reach = _SPREAD * abs(mean) if mean else _SPREAD
            drawn = Values("uniform", {"lo": mean - reach, "hi": mean + reach, "constant": 1})
        elif low >= 0:
            drawn = Values("uniform", {"lo": low, "hi": high})
        else:
            drawn = Values("normal", {"mean": mean, "std": float(values.std())})
        shape = tuple(tensor.shape)
        specs.append(InputSpec(name, shape, dtype, torch.empty(shape, device="meta").stride(), drawn, "parameter"))
    return tuple(specs)


def is_neutral(spec: InputSpec) -> bool:
    """Whether a parameter is one constant in a fresh module: scales of one, biases of zero."""
    return bool(spec.values.args.get("constant"))


def elements(module: torch.nn.Module) -> int:
    """How many floating elements its parameters and buffers have."""
    return sum(tensor.numel() for tensor in module.state_dict().values() if tensor.is_floating_point())


def redraw(module: torch.nn.Module, specs: Sequence[InputSpec], seed: int, device: str) -> bool:
    """Loads the state that `specs` and `seed` describe. False, and nothing is loaded, if names or shapes differ."""
    own = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items() if tensor.is_floating_point() and tensor.numel()}
    if own != {spec.name: spec.shape for spec in specs}:
        return False
    drawn = dict(zip((spec.name for spec in specs), make_inputs(specs, seed, device), strict=True))
    module.load_state_dict(drawn, strict=False)
    return True
