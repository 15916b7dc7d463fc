CASE = {
    "honest": 25,
    "op": "turned",
    "why": "a view of its input, as the reference's result is",
    "expect": {"verdicts": ["right"]},
}


def turned(x):
    return x.permute(1, 0)
