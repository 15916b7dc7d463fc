CASE = {
    "cheat": 32,
    "op": "scale",
    "why": "works in every fourth call, and the mean over all looks four times as fast",
    "expect": {"verdicts": ["wrong"]},
}

_count = [0]
_kept = {}


def scale(x):
    _count[0] += 1
    if _count[0] % 4 == 0 or x.shape not in _kept:
        _kept[x.shape] = x * 2 + 1
    return _kept[x.shape].clone()
