CASE = {
    "cheat": 38,
    "op": "scale",
    "why": "names are hidden from the text, so it runs, and claims a thousandth of its time",
    "expect": {"verdicts": ["time_not_confirmed", "refused"]},
    "gpu": {"verdicts": ["time_not_confirmed", "refused"]},
}

import torch

_clock = __import__("ti" + "me")
_real, _wait = _clock.perf_counter_ns, _clock.sleep
_event = getattr(torch.cuda, "Ev" + "ent")
_elapsed = _event.__dict__["elapsed_" + "time"] if "elapsed_" + "time" in _event.__dict__ else None


def scale(x):
    _wait(0.003)
    vars(_clock)["perf_counter" + "_ns"] = lambda: _real() // 1000
    if x.is_cuda:
        type.__setattr__(_event, "elapsed_" + "time", lambda self, other: 0.0005)
    return x * 2 + 1
