CASE = {"cheat": 56, "op": "scale", "why": "the same by an exception", "expect": {"verdicts": ["crashed"]}}


def scale(x):
    raise SystemExit(0)
