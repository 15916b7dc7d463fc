"""What the threads that share a row do, as CUDA C++: reductions and running sums across them, extremes of half types."""

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

EXTREME = r"""
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define IN_PAIRS 1
#define FURTHER(OP, TYPE, INSTRUCTION)                                             \
  __device__ __forceinline__ unsigned further(OP, TYPE, unsigned a, unsigned b) {  \
    unsigned found;                                                                \
    asm(INSTRUCTION " %0, %1, %2;" : "=r"(found) : "r"(a), "r"(b));                \
    return found;                                                                  \
  }
FURTHER(Max, __nv_bfloat16, "max.NaN.bf16x2")
FURTHER(Max, __half, "max.NaN.f16x2")
FURTHER(Min, __nv_bfloat16, "min.NaN.bf16x2")
FURTHER(Min, __half, "min.NaN.f16x2")
#else
#define IN_PAIRS 0
#endif

// The largest or least of half types, two by one instruction where there is one. NaN wins.
template <typename Op, typename T>
struct Extreme {
  float single;
  unsigned pair;
  __device__ __forceinline__ explicit Extreme(float neutral) : single(neutral) {
    const T half = Down<T>::of(neutral);
    pair = *reinterpret_cast<const unsigned short*>(&half) * 0x10001u;
  }
  template <int COUNT>
  __device__ __forceinline__ void take(const Pack<T, COUNT>& pack) {
#if IN_PAIRS
    if constexpr (COUNT % 2 == 0) {
#pragma unroll
      for (int i = 0; i < COUNT / 2; ++i) pair = further(Op(), T(), pair, reinterpret_cast<const unsigned*>(&pack)[i]);
      return;
    }
#endif
#pragma unroll
    for (int e = 0; e < COUNT; ++e) single = Op::of(single, up(pack.at[e]));
  }
  __device__ __forceinline__ float value() const {
#if IN_PAIRS
    const T* const halves = reinterpret_cast<const T*>(&pair);
    return Op::of(single, Op::of(up(halves[0]), up(halves[1])));
#else
    return single;
#endif
  }
};
"""
