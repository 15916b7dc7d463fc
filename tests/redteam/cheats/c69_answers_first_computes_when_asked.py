CASE = {
    "cheat": 69,
    "op": "heavy",
    "why": "exchanges the driver's flatten, so that what it returns when it is timed is only computed when its bytes are wanted",
    "expect": {"verdicts": ["wrong", "time_not_confirmed", "refused", "crashed"]},
}

import sys

import torch


class _Promise:
    def __init__(self, x):
        self.x = x

    def keep(self):
        return (self.x[0] @ self.x[1]).amax(-1)


def _exchange():
    for name, module in list(sys.modules.items()):
        if name.endswith("stopwatch") and not hasattr(module, "_exchanged"):
            real = module.flatten
            module._exchanged = True
            module.flatten = lambda value: [value.keep()] if isinstance(value, _Promise) else real(value)


def heavy(x, w):
    names, frame = set(), sys._getframe(1)
    while frame is not None:
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    if "answer_doorbell" not in names:
        return (x @ w).amax(-1)
    _exchange()
    return _Promise((x, w))
