CASE = {
    "cheat": 46,
    "op": "scale",
    "why": "one shape reported as 0 µs would make a geometric mean of 0",
    "expect": {"verdicts": ["time_not_confirmed", "refused"]},
}

import torch

_clock = __import__("ti" + "me")
_wait = _clock.sleep
_event = getattr(torch.cuda, "Ev" + "ent")


def scale(x):
    _wait(0.002)
    vars(_clock)["perf_counter" + "_ns"] = lambda: 0
    if x.is_cuda:
        type.__setattr__(_event, "elapsed_" + "time", lambda self, other: 0.0)
    return x * 2 + 1
