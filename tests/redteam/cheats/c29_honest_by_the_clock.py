CASE = {
    "cheat": 29,
    "op": "scale",
    "mode": "full",
    "why": "computes in its first 0.2 seconds and replays later",
    "expect": {"verdicts": ["wrong"]},
}

import time

_begun = []
_kept = {}


def scale(x):
    _begun.append(time.monotonic())
    if _begun[-1] - _begun[0] < 0.2 or x.shape not in _kept:
        _kept[x.shape] = x * 2 + 1
    return _kept[x.shape].clone()
