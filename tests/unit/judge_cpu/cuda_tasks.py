"""The task of the idiom's example, and candidates for it that are wrong in one way each."""

from __future__ import annotations

from workbench.task import InputSpec, OutputSpec, Task, Values, Work

ADD_SCALED = "import torch\n\n\ndef add_scaled(x, y):\n    return x + 0.5 * y\n"

EXTENSION = '''\
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>

__global__ void add(const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __float2bfloat16(__bfloat162float(x[i]) + 0.5f * __bfloat162float(y[i]));
}

torch::Tensor add_scaled(torch::Tensor x, torch::Tensor y) {
  auto out = torch::empty_like(x);
  int n = x.numel();
  if (n) {
    add<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const __nv_bfloat16*>(x.data_ptr()), reinterpret_cast<const __nv_bfloat16*>(y.data_ptr()),
        reinterpret_cast<__nv_bfloat16*>(out.data_ptr()), n);
  }
  return out;
}
"""

module = load_inline(
    name="add_scaled_module", cpp_sources="torch::Tensor add_scaled(torch::Tensor x, torch::Tensor y);", cuda_sources=CUDA,
    functions=["add_scaled"], verbose=False,
)


def add_scaled(x, y):
    return module.add_scaled(x.contiguous(), y.contiguous())
'''


def task_of(reference: str, rows: int = 1024, columns: int = 2048, target: str = "cuda:90") -> Task:
    """Two bfloat16 inputs of normal values, one output."""
    values = Values("normal", {"mean": 0.0, "std": 1.0})
    inputs = tuple(InputSpec(name, (rows, columns), "bfloat16", (columns, 1), values) for name in ("x", "y"))
    output = OutputSpec((rows, columns), "bfloat16", (columns, 1))
    work = Work(sum(spec.nbytes for spec in inputs) + output.nbytes, 2 * rows * columns)
    return Task("add_scaled", reference, "add_scaled", inputs, (output,), work, target=target)
