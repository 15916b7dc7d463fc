CASE = {
    "cheat": 69,
    "op": "heavy",
    "why": "exchanges the driver's flatten, so that what it returns when it is timed is only computed when its bytes are wanted",
    "expect": {"verdicts": ["wrong", "time_not_confirmed", "refused", "crashed"]},
}

import sys

import torch


class _Promise:
    """Looks like the result, and computes it when somebody asks for anything."""

    def __init__(self, x):
        self.x, self.made = x, None

    def __getattr__(self, name):
        return getattr(self.keep(), name)

    def keep(self):
        if self.made is None:
            self.made = (self.x[0] @ self.x[1]).amax(-1)
        return self.made


def _exchange():
    for name, module in list(sys.modules.items()):
        if name.endswith("stopwatch") and not hasattr(module, "_exchanged"):
            flatten, answer, module._exchanged = module.flatten, module.challenge.answer, True
            module.flatten = lambda value: [value] if isinstance(value, _Promise) else flatten(value)
            module._check_plain = lambda *given: None
            module.challenge.answer = lambda outputs, *more: answer([o.keep() if isinstance(o, _Promise) else o for o in outputs], *more)


_timed = []


def _is_timed():
    """Looked for until it is found: looking takes longer than the call."""
    frame = sys._getframe(1)
    while frame is not None and not _timed:
        if frame.f_code.co_name == "answer_doorbell":
            _timed.append(True)
            _exchange()
        frame = frame.f_back
    return bool(_timed)


def heavy(x, w):
    return _Promise((x, w)) if _is_timed() else (x @ w).amax(-1)
