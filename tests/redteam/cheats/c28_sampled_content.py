CASE = {"cheat": 28, "op": "scale", "why": "results kept by every 997th element", "expect": {"verdicts": ["wrong"]}}

_seen = {}


def scale(x):
    key = (x.shape, x.reshape(-1)[::997].cpu().numpy().tobytes())
    if key not in _seen:
        _seen[key] = x * 2 + 1
    return _seen[key].clone()
