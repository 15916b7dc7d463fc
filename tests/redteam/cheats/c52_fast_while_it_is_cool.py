CASE = {
    "cheat": 52,
    "op": "scale",
    "mode": "full",
    "why": "every other block runs five times as long, as on a card that throttles",
    "expect": {"verdicts": ["right"], "labels": ["times vary by more than 30 %"]},
}

import time

_count = [0]


def scale(x):
    _count[0] += 1
    y = x * 2 + 1
    until = time.perf_counter() + (0.0008 if _count[0] // 4 % 2 else 0.0002)
    while time.perf_counter() < until:
        pass
    return y
