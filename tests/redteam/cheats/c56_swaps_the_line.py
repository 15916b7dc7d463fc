CASE = {
    "cheat": 56,
    "op": "scale",
    "why": "puts a pipe of its own in the place of the judge's line",
    "expect": {"verdicts": ["crashed", "timed_out", "refused"]},
}

import os
import socket

import torch


def scale(x):
    ours, theirs = socket.socketpair()
    for file in range(3, 32):
        try:
            if os.readlink(f"/proc/self/fd/{file}").startswith("socket:") and file not in (ours.fileno(), theirs.fileno()):
                os.dup2(theirs.fileno(), file)
        except OSError:
            pass
    ours.sendall(b'{"number": 1, "verdict": "right"}\n')
    os._exit(0)
