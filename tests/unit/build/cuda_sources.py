"""CUDA sources that use one feature each; every one must compile for sm_80 and sm_90."""

from __future__ import annotations


def module(text: str, *kernels: str, tune: str = "") -> str:
    """A candidate's module around a CUDA text."""
    return f'import torch\n\n{tune}\nKERNELS = {kernels!r}\nCUDA = r"""\n{text}"""\n\n\ndef f(x):\n    return x\n'


VECTORS = module(
    """
extern "C" __global__ void copy(const float4* __restrict__ x, float4* __restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { float4 v = x[i]; v.x += 1.f; v.w *= 2.f; y[i] = v; }
}
""",
    "copy",
)

HALVES = module(
    """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void convert(const __nv_bfloat16* x, __half2* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __floats2half2_rn(__bfloat162float(x[2 * i]), __bfloat162float(x[2 * i + 1]));
}
""",
    "convert",
)

GROUPS = module(
    """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void total(const float* x, float* y, int n) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  float sum = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  sum = cg::reduce(warp, sum, cg::plus<float>());
  if (warp.thread_rank() == 0) atomicAdd(y, sum);
}
""",
    "total",
)

MMA_SYNC = module(
    """
#include <cuda_bf16.h>
extern "C" __global__ void product(const unsigned* a, const unsigned* b, float* d) {
  int lane = threadIdx.x;
  float c0 = 0.f, c1 = 0.f, c2 = 0.f, c3 = 0.f;
  unsigned a0 = a[lane], a1 = a[32 + lane], a2 = a[64 + lane], a3 = a[96 + lane], b0 = b[lane], b1 = b[32 + lane];
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  reinterpret_cast<float4*>(d)[lane] = make_float4(c0, c1, c2, c3);
}
""",
    "product",
)

WMMA = module(
    """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void product(const half* a, const half* b, float* d) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
  wmma::fill_fragment(z, 0.0f);
  wmma::load_matrix_sync(x, a, 16);
  wmma::load_matrix_sync(y, b, 16);
  wmma::mma_sync(z, x, y, z);
  wmma::store_matrix_sync(d, z, 16, wmma::mem_row_major);
}
""",
    "product",
)

TEMPLATE = module(
    """
template <typename T, int N>
__global__ void scale(T* x) {
#pragma unroll
  for (int i = 0; i < N; ++i) x[threadIdx.x * N + i] *= T(2);
}
""",
    "scale<float, 4>",
    "scale<double, WIDTH>",
    tune='TUNE = {"WIDTH": [2, 8]}',
)

SHARED = module(
    """
extern "C" __global__ void reverse(float* x, int n) {
  extern __shared__ float row[];
  __shared__ float first[64];
  for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = x[i];
  if (threadIdx.x < 64) first[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = row[n - 1 - i] + first[i % 64];
}
""",
    "reverse",
)

SEVERAL = module(
    """
__device__ __forceinline__ float twice(float x) { return x + x; }
extern "C" __global__ void one(float* x) { x[threadIdx.x] = twice(x[threadIdx.x]); }
extern "C" __global__ void two(float* x, const float* y) { x[threadIdx.x] = twice(y[threadIdx.x]); }
""",
    "one",
    "two",
)

STANDARD = module(
    """
#include <cuda/std/limits>
#include <math_constants.h>
extern "C" __global__ void most(float* x) {
  x[threadIdx.x] = fminf(x[threadIdx.x], cuda::std::numeric_limits<float>::max()) + CUDART_PI_F;
}
""",
    "most",
)

FEATURES = {
    "vectors": VECTORS, "halves": HALVES, "groups": GROUPS, "mma_sync": MMA_SYNC, "wmma": WMMA, "template": TEMPLATE, "shared": SHARED,
    "several": SEVERAL, "standard": STANDARD,
}  # fmt: skip
