CASE = {"cheat": 36, "op": "matmul", "why": "the packed weight is kept by the weight's address", "expect": {"verdicts": ["wrong"]}}

_packed = {}


def matmul(x, w):
    key = (w.data_ptr(), w.shape)
    if key not in _packed:
        _packed[key] = w.t().contiguous()
    return x @ _packed[key].t()
