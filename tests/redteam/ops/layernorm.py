import torch
import torch.nn.functional as F


def layernorm(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, b)


def get_inputs():
    return [torch.randn(64, 768), torch.randn(768), torch.randn(768)]
