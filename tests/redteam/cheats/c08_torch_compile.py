CASE = {
    "cheat": 8,
    "op": "softmax",
    "needs": "gpu",
    "why": "Inductor's kernel, sold as one's own",
    "expect": {"verdicts": ["right"], "labels": ["uses torch.compile"]},
}

import torch

softmax = torch.compile(lambda x: torch.softmax(x, -1))
