CASE = {
    "cheat": 46,
    "op": "scale",
    "why": "a negative time, for whoever sums up",
    "expect": {"verdicts": ["time_not_confirmed", "refused"]},
}

import torch

_clock = __import__("ti" + "me")
_real, _wait = _clock.perf_counter_ns, _clock.sleep
_event = getattr(torch.cuda, "Ev" + "ent")


def scale(x):
    _wait(0.002)
    vars(_clock)["perf_counter" + "_ns"] = lambda: -_real()
    if x.is_cuda:
        type.__setattr__(_event, "elapsed_" + "time", lambda self, other: -1e9)
    return x * 2 + 1
