CASE = {
    "honest": 36,
    "op": "scale",
    "why": "asks the environment for the architecture to compile for",
    "expect": {"verdicts": ["right"], "labels": ["reads the environment"]},
}

import os

_ARCH = os.environ.get("TORCH_CUDA_ARCH_LIST", "9.0a")


def scale(x):
    return x * 2 + 1 if _ARCH else x + x + 1
