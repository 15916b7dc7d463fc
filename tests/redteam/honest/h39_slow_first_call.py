CASE = {"honest": 39, "op": "scale", "why": "compiles in its first call", "expect": {"verdicts": ["right"]}}

import time

_ready = []


def scale(x):
    if not _ready:
        time.sleep(1.5)
        _ready.append(True)
    return x * 2 + 1
