CASE = {
    "cheat": 22,
    "op": "matmul_bf16",
    "why": "a common factor of 0.4 %, just under half a unit of bfloat16, hides in every single bound",
    "expect": {"verdicts": ["wrong"]},
}


def matmul_bf16(x, w):
    return (x.float() @ w.float() * 1.004).to(x.dtype)
