CASE = {
    "cheat": 30,
    "op": "scale",
    "why": "of the timed calls it works in two of five, so that a few samples may miss the others",
    "expect": {"verdicts": ["wrong"]},
}

import sys

_kept = {}
_count = [0]


def scale(x):
    names, frame = [], sys._getframe(1)
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    timing = "answer_doorbell" in names or "do_time" in names
    _count[0] += timing
    if not timing or x.shape not in _kept or _count[0] % 5 in (1, 3):
        _kept[x.shape] = x * 2 + 1
    return _kept[x.shape].clone()
