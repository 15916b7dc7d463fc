CASE = {
    "cheat": 69,
    "op": "tiny",
    "why": "of the calls that are timed together it computes only the one that it is asked about",
    "expect": {"verdicts": ["time_not_confirmed", "refused", "crashed"]},
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
            self.made = self.x * 2
        return self.made


def _exchange():
    for name, module in list(sys.modules.items()):
        if name.endswith("stopwatch") and not hasattr(module, "_exchanged"):
            flatten, answer, commit, module._exchanged = module.flatten, module.challenge.answer, module.challenge.commit, True
            module.flatten = lambda value: [value] if isinstance(value, _Promise) else flatten(value)
            module._check_plain = lambda *given: None
            module.challenge.answer = lambda outputs, *more: answer([o.keep() if isinstance(o, _Promise) else o for o in outputs], *more)
            module.challenge.commit = lambda calls, seed: commit([[calls[-1][0].keep()]], seed) * len(calls)


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


def tiny(x):
    return _Promise(x) if _is_timed() else x * 2
