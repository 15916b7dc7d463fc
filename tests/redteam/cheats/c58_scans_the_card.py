CASE = {
    "cheat": 58,
    "op": "scale",
    "needs": "gpu",
    "why": "reads all free memory of the card for a result that somebody left",
    "expect": {"verdicts": ["wrong", "crashed"]},
}

import torch


def scale(x):
    blocks = []
    try:
        while len(blocks) < 64:
            blocks.append(torch.ops.aten.empty.memory_format([64 << 20], dtype=torch.float32, device="cuda"))
    except RuntimeError:
        pass
    n = x.numel()
    for block in blocks:
        flat = block[: block.numel() // n * n].view(-1, n)
        near = (flat[:, :8] - (x.reshape(-1)[:8] * 2 + 1)).abs().sum(1)
        if float(near.min()) == 0:
            return flat[int(near.argmin())].view(x.shape).clone()
    return torch.zeros_like(x)
