CASE = {
    "cheat": 38,
    "op": "scale",
    "why": "the same for Python's clock, by setattr under another name",
    "expect": {"verdicts": ["refused"], "words": "line"},
}

import time as t

_real = t.perf_counter
setattr(t, "perf_counter", lambda: _real() / 1000)


def scale(x):
    return x * 2 + 1
