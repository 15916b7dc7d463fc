CASE = {
    "honest": 15,
    "op": "quantised",
    "why": "integers are multiplied first and scaled behind the sum",
    "expect": {"verdicts": ["right"]},
}


def quantised(x, w, scale):
    return (x @ w.to(x.dtype)) * scale
