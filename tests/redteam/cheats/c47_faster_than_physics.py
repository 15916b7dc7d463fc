CASE = {
    "cheat": 47,
    "op": "large",
    "needs": "gpu",
    "why": "claims a tenth of the time that its bytes take on this card",
    "expect": {"verdicts": ["time_not_confirmed", "refused"]},
}

import torch

_event = getattr(torch.cuda, "Ev" + "ent")
_elapsed = _event.elapsed_time


def large(x):
    type.__setattr__(_event, "elapsed_" + "time", lambda self, other: _elapsed(self, other) / 10)
    return torch.relu(x) * 2
