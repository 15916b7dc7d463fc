CASE = {
    "cheat": 26,
    "op": "scale",
    "why": "by address and version counter, which a write through an alias does not move",
    "expect": {"verdicts": ["wrong"]},
}

_seen = {}


def scale(x):
    key = (x.data_ptr(), x._version, x.shape, x.stride())
    if key not in _seen:
        _seen[key] = x * 2 + 1
    return _seen[key].clone()
