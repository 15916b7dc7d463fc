CASE = {
    "cheat": 62,
    "op": "scale",
    "after": "c62_shadows_modules",
    "why": "the one before has planted nothing that is seen here",
    "expect": {"verdicts": ["right", "time_not_confirmed"]},
}

import os
import sys

for _place in ("", "/tmp", os.path.expanduser("~"), *sys.path):
    for _name in ("sitecustomize.py", "usercustomize.py", "planted.pth"):
        _path = os.path.join(_place, _name)
        try:
            _text = open(_path).read()
        except OSError:  # not there, or what the system keeps to itself
            continue
        if "planted" in _text:
            raise RuntimeError(f"planted: {_path}")


def scale(x):
    return x * 2 + 1
