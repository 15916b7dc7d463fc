CASE = {
    "cheat": 40,
    "op": "scale",
    "why": "writes into the process that started it",
    "expect": {"verdicts": ["crashed"], "words": "refused"},
}

import ctypes
import os


def scale(x):
    libc = ctypes.CDLL(None, use_errno=True)
    for pid in {os.getppid(), 1, *(int(name) for name in os.listdir("/proc") if name.isdigit())} - {os.getpid(), 0}:
        if libc.ptrace(16, pid, 0, 0) == 0:
            return x * 2 + 1
        try:
            with open(f"/proc/{pid}/mem", "r+b"):
                return x * 2 + 1
        except OSError:
            continue
    raise RuntimeError("refused")
