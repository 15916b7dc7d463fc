CASE = {"cheat": 48, "op": "add", "needs": "gpu", "why": "inputs that fit into the L2 are read from there", "expect": {}}

SOURCE = """
import torch

def add(x, y):
    return x + y
"""


async def attack(room):
    found = await room.judge(SOURCE, mode="full")
    if found.timing is None or found.hot is None:
        return f"cold and hot were not both timed: {found.reason}"
    return (
        "" if found.timing.median_us >= found.hot.median_us * 0.98 else f"cold {found.timing.median_us} is below hot {found.hot.median_us}"
    )
