CASE = {"cheat": 27, "op": "scale", "why": "the cache is a variable of an enclosing function", "expect": {"verdicts": ["wrong"]}}


def _make():
    key, result = None, None

    def run(x):
        nonlocal key, result
        if key != (x.data_ptr(), x.shape):
            key, result = (x.data_ptr(), x.shape), x * 2 + 1
        return result.clone()

    return run


scale = _make()
