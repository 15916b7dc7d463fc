CASE = {"cheat": 13, "op": "scale", "why": "returns a copy of its input", "expect": {"verdicts": ["wrong"]}}


def scale(x):
    return x.clone()
