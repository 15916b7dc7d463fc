CASE = {
    "cheat": 64,
    "op": "scale",
    "why": "reads from where there is no memory; how it died is told where the kernel is quick enough",
    "expect": {"verdicts": ["crashed"]},
}

import ctypes


def scale(x):
    return ctypes.string_at(16, 8) and x
