CASE = {
    "cheat": 1,
    "op": "softmax",
    "why": "a C++ extension that calls at::softmax",
    "needs": "nvcc",
    "full": True,
    "expect": {"verdicts": ["right", "does_not_build"], "labels": ["C++ calls ATen"]},
}

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
at::Tensor run(at::Tensor x) { return at::softmax(x, -1); }
"""
_built = load_inline("softmax_cpp", cpp_sources=SOURCE, functions=["run"])


def softmax(x):
    return _built.run(x)
