CASE = {"cheat": 28, "op": "add", "why": "results kept by the first column of both inputs", "expect": {"verdicts": ["wrong"]}}

_seen = {}


def add(x, y):
    key = (x.shape, x[:, 0].cpu().numpy().tobytes(), y[:, 0].cpu().numpy().tobytes())
    if key not in _seen:
        _seen[key] = x + y
    return _seen[key].clone()
