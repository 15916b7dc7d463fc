CASE = {
    "cheat": 1,
    "op": "softmax",
    "why": "ATen called from another thread, where no dispatch mode sees it",
    "expect": {"verdicts": ["right"], "labels": ["no kernel of its own", "starts threads", "calls torch.softmax"]},
}

import threading

import torch


def softmax(x):
    box = []
    worker = threading.Thread(target=lambda: box.append(torch.softmax(x, -1)))
    worker.start()
    worker.join()
    return box[0]
