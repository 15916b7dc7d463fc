CASE = {
    "cheat": 43,
    "op": "softmax",
    "why": "plain when it is checked, lazy when it is timed",
    "expect": {"verdicts": ["wrong", "time_not_confirmed", "refused", "crashed"]},
}

import torch


class _Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_subclass(cls, x)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if "detach" in getattr(func, "__name__", ""):
            return torch.softmax(args[0].as_subclass(torch.Tensor), -1)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def softmax(x):
    probe = torch.empty(64, dtype=torch.uint8, device=x.device)
    if int(probe[0]) in (0xFF, 0x5A) and bool((probe == probe[0]).all()):
        return torch.softmax(x, -1)
    return _Lazy(x)
