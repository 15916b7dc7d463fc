CASE = {
    "cheat": 63,
    "op": "scale",
    "after": "c63_poisons_the_caches",
    "why": "nothing of what the one before has left is seen here",
    "expect": {"verdicts": ["right", "time_not_confirmed"]},
}

import os

for _place in ("~/.triton", "~/.cache", "/tmp", "/dev/shm", "/var/tmp", ".", "/run"):
    for _folder, _, _names in os.walk(os.path.expanduser(_place)):
        if "left-by-c63" in _names:
            raise RuntimeError(f"left in {_folder}")
if "LEFT_BY_C63" in os.environ:
    raise RuntimeError("left in the environment")


def scale(x):
    return x * 2 + 1
