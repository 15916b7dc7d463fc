CASE = {"cheat": 56, "op": "scale", "why": "an exit status of 0, read as success", "expect": {"verdicts": ["crashed"]}}

import os


def scale(x):
    os._exit(0)
