import torch


def matmul_bf16(x, w):
    return x @ w


def get_inputs():
    return [torch.randn(128, 256, dtype=torch.bfloat16), torch.randn(256, 192, dtype=torch.bfloat16)]
