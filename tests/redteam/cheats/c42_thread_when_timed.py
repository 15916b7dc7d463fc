CASE = {
    "cheat": 42,
    "op": "heavy",
    "why": "the same only when it is timed: by the time the bytes are asked for, they are there",
    "expect": {"verdicts": ["wrong", "time_not_confirmed", "refused"]},
}

import queue
import sys
import threading

import torch

_work = queue.SimpleQueue()


def _serve():
    while True:
        x, w, y = _work.get()
        y.copy_((x @ w).amax(-1))


threading.Thread(target=_serve, daemon=True).start()


def heavy(x, w):
    names, frame = set(), sys._getframe(1)
    while frame is not None:
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    if "answer_doorbell" not in names and "do_time" not in names:
        return (x @ w).amax(-1)
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    _work.put((x, w, y))
    return y
