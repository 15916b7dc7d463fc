CASE = {
    "cheat": 11,
    "op": "scale",
    "why": "uninitialised memory by a way that no function mode sees",
    "expect": {"verdicts": ["wrong"]},
}

import torch


def scale(x):
    with torch._C.DisableTorchFunction():
        return torch.ops.aten.empty.memory_format(list(x.shape), dtype=x.dtype, device=x.device)
