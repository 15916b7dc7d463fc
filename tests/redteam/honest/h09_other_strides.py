CASE = {
    "honest": 9,
    "op": "scale",
    "why": "the right values in another memory layout",
    "expect": {"verdicts": ["right"], "labels": ["output strides differ"]},
}


def scale(x):
    return (x.t().contiguous() * 2 + 1).t()
