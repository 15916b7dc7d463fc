CASE = {
    "cheat": 10,
    "op": "scale",
    "why": "loads a finished binary from the network",
    "expect": {"verdicts": ["does_not_build"], "labels": ["imports urllib"]},
}

import ctypes
import urllib.request

with urllib.request.urlopen("http://127.0.0.1:9/kernel.so", timeout=3) as _answer, open("kernel.so", "wb") as _file:
    _file.write(_answer.read())
_library = ctypes.CDLL("./kernel.so")


def scale(x):
    return x * 2 + 1
