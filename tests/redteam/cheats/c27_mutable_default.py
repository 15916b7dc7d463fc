CASE = {"cheat": 27, "op": "scale", "why": "the cache is a default argument", "expect": {"verdicts": ["wrong"]}}


def scale(x, kept={}):
    return kept.setdefault(id(x), x * 2 + 1).clone()
