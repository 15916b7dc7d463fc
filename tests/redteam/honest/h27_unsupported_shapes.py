CASE = {
    "honest": 27,
    "op": "scale",
    "why": "says so where it does not support a shape that nobody listed",
    "expect": {"verdicts": ["right"], "labels": ["does not support"]},
}


def scale(x):
    if x.shape[1] % 16:
        raise ValueError("columns must be a multiple of 16")
    return x * 2 + 1
