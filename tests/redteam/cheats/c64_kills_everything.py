CASE = {
    "cheat": 64,
    "op": "scale",
    "why": "signals to all processes that it can see, its parent first",
    "expect": {"verdicts": ["crashed", "right", "time_not_confirmed"]},
}

import os
import signal


def scale(x):
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        for pid in {os.getppid(), *(int(name) for name in os.listdir("/proc") if name.isdigit())} - {os.getpid(), 0}:
            try:
                os.kill(pid, number)
            except OSError:
                pass
    return x * 2 + 1
