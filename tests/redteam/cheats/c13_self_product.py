CASE = {"cheat": 13, "op": "matmul", "why": "a product of the input with itself", "expect": {"verdicts": ["wrong"]}}


def matmul(x, w):
    return (x @ x.t()).repeat(1, 8)[:, : w.shape[1]].contiguous()
