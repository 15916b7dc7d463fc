CASE = {
    "cheat": 61,
    "op": "add",
    "why": "uses its second input as scratch and leaves it spoilt",
    "expect": {"verdicts": ["wrong"], "words": "changes its input y"},
}


def add(x, y):
    y.add_(x)
    return y.clone()
