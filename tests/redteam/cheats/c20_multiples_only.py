CASE = {
    "cheat": 20,
    "op": "row_mean",
    "why": "right where the row is a multiple of the block; it does not say so elsewhere",
    "expect": {"verdicts": ["wrong"]},
}


def row_mean(x):
    n = x.shape[1] // 64 * 64
    return x[:, :n].sum(-1) / max(1, n)
