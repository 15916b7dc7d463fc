CASE = {
    "cheat": 26,
    "op": "scale",
    "needs": "gpu",
    "backend": "cuda",
    "why": "a static device variable remembers the address that it has served",
    "expect": {"verdicts": ["wrong"]},
}

import torch

CUDA = r"""
__device__ unsigned long long served[64];
__device__ float bank[64][1 << 15];
extern "C" __global__ void scale_kernel(const float* x, float* y, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    int place = (int)(((unsigned long long)x >> 9) % 64);
    if (at >= n) return;
    if (served[place] == (unsigned long long)x + n) { y[at] = bank[place][at % (1 << 15)]; return; }
    y[at] = bank[place][at % (1 << 15)] = x[at] * 2.0f + 1.0f;
    __threadfence();
    if (at == n - 1) served[place] = (unsigned long long)x + n;
}
"""
KERNELS = ("scale_kernel",)

_kernel = torch.cuda._compile_kernel(CUDA, "scale_kernel")


def scale(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    _kernel(((x.numel() + 255) // 256, 1, 1), (256, 1, 1), (x, y, x.numel()))
    return y
