CASE = {
    "cheat": 50,
    "op": "scale",
    "needs": "gpu",
    "why": "emptying the caches takes longer than a small op, and must not be in its time",
    "expect": {},
}

SOURCE = """
import torch

def scale(x):
    return torch.add(torch.mul(x, 2), 1)
"""


async def attack(room):
    found = await room.judge(SOURCE)
    if found.timing is None:
        return f"it was not timed: {found.reason}"
    return "" if found.timing.median_us < 45 else f"two launches on 60 KB take {found.timing.median_us} µs: the flush is in there"
