CASE = {"cheat": 16, "op": "row_mean", "why": "the mean of a part stands for the mean of the whole", "expect": {"verdicts": ["wrong"]}}


def row_mean(x):
    return x[:, ::2].mean(-1)
