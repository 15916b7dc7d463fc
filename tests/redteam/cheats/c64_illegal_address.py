CASE = {"cheat": 64, "op": "scale", "why": "reads from where there is no memory", "expect": {"verdicts": ["crashed"], "words": "SIGSEGV"}}

import ctypes


def scale(x):
    return ctypes.string_at(16, 8) and x
