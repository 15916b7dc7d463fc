CASE = {
    "cheat": 9,
    "op": "softmax",
    "why": "the library where it is installed, PyTorch where not",
    "expect": {"verdicts": ["right"], "labels": ["imports the library flash_attn"]},
}

import torch

try:
    import flash_attn

    softmax = flash_attn.softmax
except (ImportError, AttributeError):

    def softmax(x):
        return torch.softmax(x, -1)
