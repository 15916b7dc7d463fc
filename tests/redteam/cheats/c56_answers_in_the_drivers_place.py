CASE = {
    "cheat": 56,
    "op": "scale",
    "why": "writes answers onto every open descriptor",
    "expect": {"verdicts": ["wrong", "refused", "crashed"]},
}

import json
import os

import torch

_claim = {"shape": [96, 160], "dtype": "float32", "plain": True, "strides": [160, 1], "device": "cpu"}


def scale(x):
    for number in range(1, 40):
        answer = {"number": number, "outputs": [_claim], "changed": [], "stray": "", "seconds": 0, "aliases": [], "verdict": "right"}
        for file in range(3, 32):
            try:
                os.write(file, json.dumps(answer).encode() + b"\n")
            except OSError:
                pass
    return torch.zeros_like(x)
