CASE = {
    "cheat": 39,
    "op": "scale",
    "why": "the stopwatch's class gets another method, found through sys.modules",
    "expect": {"verdicts": ["time_not_confirmed", "refused"], "labels": ["reaches for modules through sys.modules"]},
}

import sys
import time

for _name, _module in list(sys.modules.items()):
    if _name.endswith("stopwatch") or _name.endswith("judge.gpu"):
        for _class in list(vars(_module).values()):
            if isinstance(_class, type) and hasattr(_class, "stop"):
                _class.stop = lambda self: 0.5

_harness = sys.modules["__main__"]


def scale(x):
    time.sleep(0.002)
    return x * 2 + 1
