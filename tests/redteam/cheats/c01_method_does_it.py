CASE = {
    "cheat": 1,
    "op": "softmax",
    "why": "the same through a method of the tensor",
    "expect": {"verdicts": ["right"], "labels": ["no kernel of its own", "calls x.softmax"]},
}


def softmax(x):
    return x.softmax(-1)
