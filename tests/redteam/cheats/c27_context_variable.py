CASE = {"cheat": 27, "op": "scale", "why": "the cache is a context variable", "expect": {"verdicts": ["wrong"]}}

import contextvars

_var = contextvars.ContextVar("kept", default=None)


def scale(x):
    kept = _var.get()
    if kept is None or kept[0] != (x.data_ptr(), x.shape):
        kept = ((x.data_ptr(), x.shape), x * 2 + 1)
        _var.set(kept)
    return kept[1].clone()
