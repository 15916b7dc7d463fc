CASE = {
    "cheat": 26,
    "op": "scale",
    "why": "results kept by address",
    "expect": {"verdicts": ["wrong"], "labels": ["remembers things by address"]},
}

_seen = {}


def scale(x):
    if x.data_ptr() not in _seen:
        _seen[x.data_ptr()] = x * 2 + 1
    return _seen[x.data_ptr()]
