CASE = {"cheat": 27, "op": "scale", "why": "the cache hides in a partial", "expect": {"verdicts": ["wrong"]}}

import functools


def _run(kept, x):
    key = (x.data_ptr(), x.stride(), x.shape)
    if key not in kept:
        kept.clear()
        kept[key] = x * 2 + 1
    return kept[key].clone()


scale = functools.partial(_run, {})
