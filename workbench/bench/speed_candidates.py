"""What `bench judge` has judged: one softmax in four ways, each a plain candidate as a model would write it."""

from __future__ import annotations

REFERENCE = """import torch


def softmax(x):
    return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn({rows}, {columns}, dtype=torch.bfloat16)]
"""

TRITON = """import torch
import triton
import triton.language as tl

TUNE = {"WARPS": [8, 4, 16]}


@triton.jit
def softmax_rows(x, y, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + place, mask=place < columns, other=float("-inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * columns + place, (power / tl.sum(power, 0)).to(y.dtype.element_ty), mask=place < columns)


def softmax(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_rows[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=WARPS)
    return y
"""

_KERNEL = r"""
#include <cuda_bf16.h>

constexpr float LOWEST = -3.4e38f;

__device__ float reduce(float value, float* shared, bool largest) {
    for (int offset = 16; offset > 0; offset /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = largest ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp) value = largest ? fmaxf(value, shared[warp]) : value + shared[warp];
    __syncthreads();
    return value;
}

extern "C" __global__ void softmax_rows(const __nv_bfloat16* x, __nv_bfloat16* y, int columns, int stride) {
    __shared__ float shared[32];
    const __nv_bfloat16* row = x + (long long)blockIdx.x * stride;
    float top = LOWEST, total = 0;
    for (int place = threadIdx.x; place < columns; place += blockDim.x) top = fmaxf(top, __bfloat162float(row[place]));
    top = reduce(top, shared, true);
    for (int place = threadIdx.x; place < columns; place += blockDim.x) total += expf(__bfloat162float(row[place]) - top);
    total = reduce(total, shared, false);
    for (int place = threadIdx.x; place < columns; place += blockDim.x)
        y[(long long)blockIdx.x * columns + place] = __float2bfloat16(expf(__bfloat162float(row[place]) - top) / total);
}
"""

NVRTC = f'''import torch

CUDA = r"""{_KERNEL}"""
KERNELS = ("softmax_rows",)

_compiled = {{}}


def softmax(x):
    if "kernel" not in _compiled:
        _compiled["kernel"] = torch.cuda._compile_kernel(CUDA, KERNELS[0])
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    _compiled["kernel"]((x.shape[0], 1, 1), (512, 1, 1), (x, y, x.shape[1], x.stride(0)))
    return y
'''

_BINDING = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

torch::Tensor softmax_cuda(torch::Tensor x) {
    auto y = torch::empty(x.sizes(), x.options());
    softmax_rows<<<x.size(0), 512, 0, c10::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const __nv_bfloat16*>(x.data_ptr()), reinterpret_cast<__nv_bfloat16*>(y.data_ptr()), x.size(1), x.stride(0));
    return y;
}
"""

EXTENSION = f'''import torch
from torch.utils.cpp_extension import load_inline

_made = load_inline(
    "softmax_extension",
    cpp_sources="torch::Tensor softmax_cuda(torch::Tensor x);",
    cuda_sources=r"""{_KERNEL}{_BINDING}""",
    functions=["softmax_cuda"],
)


def softmax(x):
    return _made.softmax_cuda(x)
'''

EAGER = """import torch


def softmax(x):
    return torch.softmax(x, dim=-1)
"""
"""The reference itself: judged against eager, nothing should be called faster."""

KERNELBENCH_REFERENCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn({rows}, {columns}, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
"""


def as_model(source: str) -> str:
    """A candidate in KernelBench's form, its first tunable values chosen."""
    source = source.replace('TUNE = {"WARPS": [8, 4, 16]}', "WARPS = 8")
    return f"{source}\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return softmax(x)\n"
