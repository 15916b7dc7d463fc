CASE = {"cheat": 64, "op": "scale", "why": "as many processes as it can get", "expect": {"verdicts": ["crashed", "timed_out"]}}

import os
import time


def scale(x):
    made = 0
    for _ in range(600):
        try:
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
            made += 1
        except OSError:
            break
    raise RuntimeError(f"made {made}")
