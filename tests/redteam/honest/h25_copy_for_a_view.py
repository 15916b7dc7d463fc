CASE = {"honest": 25, "op": "turned", "why": "a copy where the reference returns a view", "expect": {"verdicts": ["right"]}}


def turned(x):
    return x.t().contiguous()
