CASE = {
    "cheat": 31,
    "op": "tiny",
    "why": "the same by the garbage collector: all tensors of this shape are taken for inputs to come",
    # Where a call takes longer than 30 µs, as on a busy CPU, a ring asks for one call: then there is nothing to batch, and it is right.
    "expect": {"verdicts": ["wrong", "refused", "time_not_confirmed", "right"], "labels": ["looks around with gc.get_objects"]},
    "gpu": {"verdicts": ["wrong", "refused", "time_not_confirmed"], "labels": ["looks around with gc.get_objects"]},
}

import gc

import torch

_ready = {}


def tiny(x):
    done = _ready.pop(id(x), None)
    if done is None:
        _ready.clear()
        found = [item for item in gc.get_objects() if type(item) is torch.Tensor and item.shape == x.shape and item.dtype == x.dtype]
        results = torch.stack([*found, x]) * 2
        for item, result in zip(found, results):
            _ready[id(item)] = result
        _ready.pop(id(x), None)
        done = results[-1]
    return done
