CASE = {
    "cheat": 52,
    "op": "scale",
    "mode": "full",
    "why": "every other block runs five times as long, as on a card that throttles",
    "expect": {"verdicts": ["right"], "labels": ["times vary by more than 30 %"]},
}

import time

_PERIOD = 0.04


def scale(x):
    slow = int(time.perf_counter() / _PERIOD) % 2
    y = x * 2 + 1
    if x.is_cuda:
        for _ in range(8 * slow):
            y = x * 2 + 1
    else:
        until = time.perf_counter() + (0.0008 if slow else 0.0002)
        while time.perf_counter() < until:
            pass
    return y
