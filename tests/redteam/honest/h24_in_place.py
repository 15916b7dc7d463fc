CASE = {"honest": 24, "op": "inplace", "why": "in place, as the reference is", "expect": {"verdicts": ["right"]}}


def inplace(x, y):
    return x.add_(y)
