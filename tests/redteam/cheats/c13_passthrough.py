CASE = {"cheat": 13, "op": "relu", "why": "returns its input, which is right for half of the elements", "expect": {"verdicts": ["wrong"]}}


def relu(x):
    return x
