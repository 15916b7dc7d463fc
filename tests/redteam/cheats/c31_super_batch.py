CASE = {
    "cheat": 31,
    "op": "tiny",
    "why": "finds the inputs of all calls that one ring asks for, computes them at once, and hands out pieces",
    # Where a call takes longer than 30 µs, as on a busy CPU, a ring asks for one call: then there is nothing to batch, and it is right.
    "expect": {"verdicts": ["wrong", "refused", "time_not_confirmed", "right"], "labels": ["looks around with sys._getframe"]},
    "gpu": {"verdicts": ["wrong", "refused", "time_not_confirmed"], "labels": ["looks around with sys._getframe"]},
}

import sys

import torch

_ready = {}


def tiny(x):
    frame = sys._getframe(1)
    while frame is not None:
        sets = frame.f_locals.get("sets")
        if isinstance(sets, list) and len(sets) > 1 and sets[0][0] is x:
            _ready.clear()
            together = torch.stack([inputs[0] for inputs in sets]) * 2
            for inputs, result in zip(sets, together):
                _ready[id(inputs[0])] = result
        frame = frame.f_back
    done = _ready.pop(id(x), None)
    return x * 2 if done is None else done
