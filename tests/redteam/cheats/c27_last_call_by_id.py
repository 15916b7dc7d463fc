CASE = {"cheat": 27, "op": "scale", "why": "the last result, if the argument is the same object", "expect": {"verdicts": ["wrong"]}}

_last = [None, None]


def scale(x):
    if _last[0] is not x:
        _last[:] = [x, x * 2 + 1]
    return _last[1].clone()
