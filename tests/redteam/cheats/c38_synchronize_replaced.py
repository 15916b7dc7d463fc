CASE = {"cheat": 38, "op": "scale", "why": "synchronize does nothing any more", "expect": {"verdicts": ["refused"]}}

import torch

torch.cuda.synchronize = lambda *a: None


def scale(x):
    return x * 2 + 1
