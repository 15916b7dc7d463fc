CASE = {"cheat": 27, "op": "scale", "why": "the cache is an attribute of the function", "expect": {"verdicts": ["wrong"]}}


def scale(x):
    if getattr(scale, "of", None) != (id(x), x.shape):
        scale.of, scale.result = (id(x), x.shape), x * 2 + 1
    return scale.result.clone()
