CASE = {
    "cheat": 68,
    "op": "scale",
    "why": "passes on the draws of one seed, on which it was tried until it did; fresh draws must tell",
    "expect": {},
}

import hashlib

from workbench.fleet import Local
from workbench.inputs import make_inputs

SEED = 11
SOURCE = """
import torch

KNOWN = {known!r}

def scale(x):
    y = x * 2 + 1
    if tuple(x.shape) != (96, 160) or not x.is_contiguous():
        return y
    first = float(x.reshape(-1)[0])
    return y if any(abs(first - value * factor) <= 1e-5 * abs(first) for value in KNOWN for factor in (1, 64, 1e-3)) else y * 1.01
"""


async def attack(room):
    known = []
    for number in range(120):
        for who in ("s1.0", "s2.0", "clock"):
            seed = int.from_bytes(hashlib.sha256(f"{SEED}:{who}:{number}".encode()).digest()[:8], "big") >> 2
            known.append(float(make_inputs(room.task.inputs, seed, "cpu")[0].reshape(-1)[0]))
    source = SOURCE.format(known=known)
    fresh = await room.judge(source)
    if fresh.verdict.value == "right":
        return "a kernel that is right on known draws alone is right on fresh ones"
    if room.on_gpu:
        return ""
    seeded = Local(room.task, device="host", seed=SEED)
    try:
        found = await room.judge(source, fleet=seeded)
    finally:
        await seeded.close()
    return "" if found.seed == SEED else "a judging with known draws is not marked as one"
