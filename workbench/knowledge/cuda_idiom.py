"""How a CUDA C++ candidate is written: the one idiom, as text that experts, prompts and tests share.

A module has the literals ``CUDA`` and ``KERNELS``, and gets its kernels from PyTorch's own run-time compiler, at the first launch:

- ``kernel(name, device)`` compiles one kernel for the current GPU and keeps it. Names of ``TUNE`` go in as macros, ``-DBLOCK=256``.
- It is launched as ``kernel(…)(grid, block, [arguments], shared_mem=bytes)`` on the current stream; grid and block have three sizes each.
- Of arguments, tensors arrive as pointers to their first element, an int as a 32-bit ``int``, and a float as ``double`` (never ``float``).
- More than 48 KiB of shared memory are ``extern __shared__``, and asked for before the launch: ``k.set_shared_memory_config(bytes)``.
- PyTorch's compiler switches the operators and implicit conversions of half types off: convert by ``__bfloat162float`` and its like.
- ``headers()`` finds ``cuda_bf16.h``, ``mma.h`` and others where no toolkit is installed: PyTorch's own wheels bring them, and Triton's.
"""

from __future__ import annotations

from collections.abc import Sequence

IMPORTS = """\
import functools
import importlib.util
import pathlib

import torch
"""

HEADERS = '''\
def headers():
    """Where no CUDA toolkit is installed, points PyTorch's kernel compiler to the headers that wheels bring."""
    from torch.utils import cpp_extension

    if cpp_extension.CUDA_HOME is None:
        for package, below in (("nvidia", "cu13"), ("nvidia", "cuda_runtime"), ("triton", "backends/nvidia")):
            spec = importlib.util.find_spec(package)
            for place in (spec.submodule_search_locations or ()) if spec else ():
                if pathlib.Path(place, below, "include", "cuda_bf16.h").is_file():
                    cpp_extension.CUDA_HOME = str(pathlib.Path(place, below))
                    return
'''


def compile_function(macros: Sequence[str]) -> str:
    """``kernel(name, device)`` for a module whose globals `macros` are macros of its source."""
    options = ", ".join(f'f"-D{name}={{{name}}}"' for name in macros)
    return f'''\
@functools.cache
def kernel(name, device):
    """One kernel, compiled for the current GPU at its first launch."""
    headers()
    return torch.cuda._compile_kernel(CUDA, name, nvcc_options=[{options}])
'''


_EXAMPLE_CUDA = '''\
TUNE = {"BLOCK": [256, 512]}
KERNELS = ("add_scaled",)
CUDA = r"""
#include <cuda_bf16.h>

extern "C" __global__ void __launch_bounds__(BLOCK) add_scaled(
    const uint4* __restrict__ x, const uint4* __restrict__ y, uint4* __restrict__ out, double factor, int groups) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= groups) return;
  float f = static_cast<float>(factor);
  uint4 a = x[i], b = y[i], c;  // 16 bytes at once: a struct of halves would be moved piece by piece
  const __nv_bfloat162* p = reinterpret_cast<const __nv_bfloat162*>(&a);
  const __nv_bfloat162* q = reinterpret_cast<const __nv_bfloat162*>(&b);
  __nv_bfloat162* r = reinterpret_cast<__nv_bfloat162*>(&c);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    float2 u = __bfloat1622float2(p[k]), v = __bfloat1622float2(q[k]);
    r[k] = __floats2bfloat162_rn(u.x + f * v.x, u.y + f * v.y);
  }
  out[i] = c;
}
"""
'''

_EXAMPLE_LAUNCHER = """\
def add_scaled(x, y):
    if x.dtype != torch.bfloat16 or y.shape != x.shape or x.numel() % 8 or not x.is_contiguous() or not y.is_contiguous():
        raise NotImplementedError("contiguous bfloat16 tensors of one shape, a multiple of 8 elements")
    out = torch.empty_like(x)
    groups = x.numel() // 8
    if groups:
        kernel("add_scaled", x.device.index)((-(-groups // BLOCK), 1, 1), (BLOCK, 1, 1), [x, y, out, 0.5, groups])
    return out
"""

EXAMPLE = "\n\n".join((f"{IMPORTS}\n{_EXAMPLE_CUDA}", HEADERS, compile_function(["BLOCK"]), _EXAMPLE_LAUNCHER))
"""A whole candidate for ``add_scaled(x, y) = x + 0.5 * y`` on bfloat16."""
