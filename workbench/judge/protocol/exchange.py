"""Two elements of an input change places: almost the same content, another result.

A cache that knows its inputs by a part of their content (the first elements, every thousandth, a sum) is never hit while each call's
content is new all over. An exchange leaves what such a cache looks at, keeps sums and ranges, and makes no index invalid.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from workbench.task import InputSpec

_EXCHANGEABLE = frozenset({"normal", "uniform", "positive", "integers", "permutation", "mask"})
EDGE = 64
"""Elements at both ends of a tensor that stay: what a lazy fingerprint looks at."""

_TRIES = 64


class Exchange(NamedTuple):
    """Which input, and the positions of the two elements among its elements in order."""

    place: int
    one: int
    other: int


def possible(specs: Sequence[InputSpec], inputs: Sequence[Any]) -> list[int]:
    """Positions of the inputs that can be exchanged: those whose elements are alike, with a middle."""
    return [
        place
        for place, (spec, item) in enumerate(zip(specs, inputs, strict=True))
        if spec.values.kind in _EXCHANGEABLE and isinstance(item, torch.Tensor) and item.numel() > 4 * EDGE and 0 not in item.stride()
    ]


def choose(inputs: Sequence[Any], place: int, seed: int) -> Exchange:
    """Two elements far from the ends of the tensor and of its rows, as unlike each other as a few tries find."""
    tensor, source = inputs[place], random.Random(seed)
    width = tensor.shape[-1]
    rows = tensor.numel() // width
    inner = (1, width - 1) if width > 8 else (0, width)

    def position() -> int:
        place: int = min(max(source.randrange(rows) * width + source.randrange(*inner), EDGE), tensor.numel() - EDGE - 1)
        return place

    pairs = [(position(), position()) for _ in range(_TRIES)]
    axes = zip(*(_index(at, tensor.shape) for pair in pairs for at in pair), strict=True)
    values = tensor[tuple(torch.tensor(axis, device=tensor.device) for axis in axes)].double().reshape(-1, 2)
    return Exchange(place, *pairs[int((values[:, 0] - values[:, 1]).abs().argmax())])


def apply(inputs: Sequence[Any], exchange: Sequence[int]) -> list[Any]:
    """The inputs after it; the one that it changes is a new tensor with the same strides."""
    place, one, other = exchange
    out = list(inputs)
    old = out[place]
    new = out[place] = torch.empty_strided(old.shape, old.stride(), dtype=old.dtype, device=old.device).copy_(old)
    first, second = _index(one, old.shape), _index(other, old.shape)
    new[first], new[second] = old[second], old[first]
    return out


def _index(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    """An element's place along each dimension. PyTorch's own ``unravel_index`` imports SymPy first: seconds in each new worker."""
    index: list[int] = []
    for size in reversed(shape):
        position, at = divmod(position, size)
        index.append(at)
    return tuple(reversed(index))
