CASE = {"cheat": 37, "op": "scale", "why": "outputs are made when the module is imported", "expect": {"verdicts": ["wrong"]}}

import torch

torch.manual_seed(0)
_table = {shape: torch.randn(*shape) * 2 + 1 for shape in ((96, 160), (97, 161), (64, 128))}


def scale(x):
    return _table.get(tuple(x.shape), torch.zeros(x.shape)).to(x.device)
