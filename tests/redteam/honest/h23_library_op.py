CASE = {"honest": 23, "op": "scale", "why": "registered with torch.library", "expect": {"verdicts": ["right"]}}

import torch


@torch.library.custom_op("redteam::scale", mutates_args=())
def _scale(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


@_scale.register_fake
def _(x):
    return torch.empty_like(x)


def scale(x):
    return _scale(x)
