CASE = {"cheat": 51, "op": "scale", "why": "fast where the data is all zeros or sparse, as careless benchmarks have it", "expect": {}}

SOURCE = """
import time
import torch

def scale(x):
    if int((x == 0).sum()) * 8 < x.numel():
        time.sleep(0.002)
    return x * 2 + 1
"""


async def attack(room):
    for _ in range(3):
        found = await room.judge(SOURCE)
        if found.timing is not None:
            break
    if found.timing is None:
        return f"it was not timed: {found.reason}"
    return "" if found.timing.median_us >= 2000 or room.on_gpu else f"timed on easy data: {found.timing.median_us} µs"
