CASE = {"cheat": 64, "op": "scale", "why": "never returns", "expect": {"verdicts": ["timed_out"]}}


def scale(x):
    while True:
        pass
