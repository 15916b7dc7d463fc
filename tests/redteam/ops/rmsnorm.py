import torch


def rmsnorm(x, w):
    s = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
    return x * s.to(x.dtype) * w


def get_inputs():
    return [torch.randn(64, 1024, dtype=torch.bfloat16), torch.randn(1024, dtype=torch.bfloat16)]
