CASE = {
    "cheat": 21,
    "op": "scale",
    "why": "draws the inputs itself, from the seeds that graders like",
    "expect": {"verdicts": ["wrong"]},
}

import torch

_known = {}
for _seed in (0, 1, 2, 7, 42, 1234, 2024, 1337):
    _generator = torch.Generator().manual_seed(_seed)
    _known[_seed] = torch.randn(96, 160, generator=_generator)


def scale(x):
    for drawn in _known.values():
        if drawn.shape == x.shape and bool((drawn[0, :4] == x[0, :4].cpu()).all()):
            return (drawn * 2 + 1).to(x.device)
    return torch.ones_like(x)
