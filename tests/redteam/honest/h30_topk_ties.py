CASE = {
    "honest": 30,
    "op": "topk",
    "why": "the same values, and other indices among equal ones",
    "expect": {"verdicts": ["right"]},
    "mode": "full",
}


def topk(x):
    order = x.flip(-1).argsort(dim=-1, descending=True, stable=True)[..., :8]
    index = x.shape[-1] - 1 - order
    return x.gather(-1, index), index
