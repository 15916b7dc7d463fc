CASE = {
    "cheat": 9,
    "op": "softmax",
    "why": "a finished kernel from a library",
    "expect": {"verdicts": ["does_not_build"], "labels": ["imports the library liger_kernel"]},
}

from liger_kernel.ops.softmax import LigerSoftmaxFunction


def softmax(x):
    return LigerSoftmaxFunction.apply(x)
