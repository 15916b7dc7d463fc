CASE = {
    "cheat": 61,
    "op": "scale",
    "why": "right, but its result stands where its input was",
    "expect": {"verdicts": ["wrong"], "words": "changes its input x"},
}


def scale(x):
    return x.mul_(2).add_(1)
