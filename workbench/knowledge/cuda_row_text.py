"""What threads that share a row do together, as CUDA C++: reductions and running sums across them."""

from __future__ import annotations

REDUCE = """
// All threads of a row get the row's result, combined in one order whatever the timing.
template <typename Op, int WIDTH = LANES, typename T>
__device__ __forceinline__ T across(T value, T neutral) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = Op::of(value, __shfl_xor_sync(0xffffffffu, value, step));
  if constexpr (WIDTH > 32) {
    __shared__ T parts[32];
    const int warp = (WIDTH == LANES ? threadIdx.x : threadIdx.y * 32 + threadIdx.x) / 32;
    __syncthreads();  // what an earlier call left has been read
    if (threadIdx.x % 32 == 0) parts[warp] = value;
    __syncthreads();
    value = threadIdx.x % 32 < WIDTH / 32 ? parts[threadIdx.x % 32] : neutral;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value = Op::of(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}
"""

SCAN = """
// What the threads before this one have together; `whole` is what all have.
template <typename Op, typename T>
__device__ __forceinline__ T before(T value, T neutral, T* whole) {
  const int place = threadIdx.x % 32;
  T running = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T lower = __shfl_up_sync(0xffffffffu, running, step);
    if (place >= step) running = Op::of(lower, running);
  }
  T own = __shfl_up_sync(0xffffffffu, running, 1);
  if (place == 0) own = neutral;
  T total = __shfl_sync(0xffffffffu, running, 31);
#if LANES > 32
  __shared__ T parts[32];
  __syncthreads();  // what an earlier call left has been read
  if (place == 31) parts[threadIdx.x / 32] = running;
  __syncthreads();
  T ahead = neutral;
  total = neutral;
#pragma unroll
  for (int warp = 0; warp < LANES / 32; ++warp) {
    if (warp == threadIdx.x / 32) ahead = total;
    total = Op::of(total, parts[warp]);
  }
  own = Op::of(ahead, own);
#endif
  *whole = total;
  return own;
}
"""
