CASE = {"cheat": 27, "op": "scale", "why": "functools does the caching", "expect": {"verdicts": ["wrong"]}}

import functools


class _Key:
    def __init__(self, x):
        self.x = x

    def __hash__(self):
        return hash((self.x.data_ptr(), self.x.shape))

    def __eq__(self, other):
        return self.x.data_ptr() == other.x.data_ptr() and self.x.shape == other.x.shape


@functools.lru_cache(maxsize=8)
def _run(key):
    return key.x * 2 + 1


def scale(x):
    return _run(_Key(x)).clone()
