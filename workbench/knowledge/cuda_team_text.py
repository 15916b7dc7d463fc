"""Device functions of kernels whose rows lie in shared memory: the copy engine's chunks, and reductions over a team of blocks.

All that a team shares lies in dynamic shared memory, `room`, so that a block's share of it is one stretch of bytes. What touches the
hardware beyond plain C++ stands in `ENGINE` and in the exchange alone.
"""

from __future__ import annotations

TAKE = """
// Neighbouring elements from shared memory, or from what is to stay in the cache.
template <typename T, int COUNT>
__device__ __forceinline__ Pack<T, COUNT> take(const unsigned char* at) {
  Pack<T, COUNT> found;
  using W = typename Word<sizeof(T) * COUNT>::type;
#pragma unroll
  for (int i = 0; i < int(sizeof(T) * COUNT / sizeof(W)); ++i) reinterpret_cast<W*>(&found)[i] = reinterpret_cast<const W*>(at)[i];
  return found;
}
"""
"""Accesses that follow no choice of cache hints."""

ENGINE = """
typedef unsigned long long word;

// Everything that the threads of a block share: words of the reductions, then barriers, then chunks of rows.
extern __shared__ __align__(128) unsigned char room[];

__device__ __forceinline__ unsigned inside(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

// A barrier that opens when its one arrival and all its announced bytes are there.
__device__ __forceinline__ void make_barrier(word* bar) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(inside(bar)) : "memory");
}
__device__ __forceinline__ void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void announce(word* bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(inside(bar)), "r"(bytes) : "memory");
}
// The copy engine brings bytes, a multiple of 16 of them, while the threads do something else.
__device__ __forceinline__ void bring(void* to, const void* from, unsigned bytes, word* bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(inside(to)), "l"(from), "r"(bytes), "r"(inside(bar)) : "memory");
}
__device__ __forceinline__ void await(word* bar, unsigned parity) {
  asm volatile("{\\n .reg .pred open;\\n again:\\n mbarrier.try_wait.parity.shared::cta.b64 open, [%0], %1;\\n @open bra done;\\n"
               " bra again;\\n done:\\n}" ::"r"(inside(bar)), "r"(parity) : "memory");
}

// A cluster's blocks: which one this is, a word into another one's memory, and a barrier of all their threads.
__device__ __forceinline__ int cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
__device__ __forceinline__ void push(word* to, int rank, word value) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(inside(to)), "r"(rank));
  asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(there), "l"(value) : "memory");
}
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// End of what touches the hardware.

template <typename T> __device__ __forceinline__ word pack(T value) { word kept = 0; memcpy(&kept, &value, sizeof(T)); return kept; }
template <typename T> __device__ __forceinline__ T unpack(word kept) { T value; memcpy(&value, &kept, sizeof(T)); return value; }

template <typename Op, typename T>
__device__ __forceinline__ T in_warp(T value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = Op::of(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
"""
"""The copy engine, barriers, and words between blocks."""

BY_CLUSTER = """
// All threads of a cluster get the row's result, combined in one order whatever the timing: each warp hands its share to every block.
// Two sets of words take turns, so that one barrier a reduction is enough.
template <typename Op, typename T>
__device__ __forceinline__ T across(T value, T neutral, int rank, unsigned& call) {
  word* words = reinterpret_cast<word*>(room) + (call++ % 2) * (TEAM * WARPS);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = in_warp<Op>(value);
  if (lane < TEAM) push(words + rank * WARPS + warp, lane, pack(value));
  cluster_arrive();
  cluster_wait();
  value = neutral;
#pragma unroll
  for (int i = lane; i < TEAM * WARPS; i += 32) value = Op::of(value, unpack<T>(words[i]));
  return in_warp<Op>(value);
}
"""
"""Reductions over the blocks of a cluster, through each other's shared memory."""

PAIR = """
// A maximum and the sum of exponentials below it, of two groups together.
__device__ __forceinline__ void join(float& peak, float& total, float other, float rest) {
  const float nothing = __int_as_float(0xff800000), higher = Max::of(peak, other);
  total = (peak == nothing ? 0.0f : total * fast_exp(peak - higher)) + (other == nothing ? 0.0f : rest * fast_exp(other - higher));
  peak = higher;
}

__device__ __forceinline__ void join_warp(float& peak, float& total) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    join(peak, total, __shfl_xor_sync(0xffffffffu, peak, step), __shfl_xor_sync(0xffffffffu, total, step));
}

struct Pair { float peak, total; };
"""
"""A maximum and a sum of exponentials that go together."""

ONLINE_BY_CLUSTER = """
// Both for all threads of a cluster, by one exchange: see `across`.
__device__ __forceinline__ void both_across(float& peak, float& total, int rank, unsigned& call) {
  word* words = reinterpret_cast<word*>(room) + (call++ % 2) * (TEAM * WARPS);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  join_warp(peak, total);
  if (lane < TEAM) push(words + rank * WARPS + warp, lane, pack(Pair{peak, total}));
  cluster_arrive();
  cluster_wait();
  peak = __int_as_float(0xff800000);
  total = 0.0f;
#pragma unroll
  for (int i = lane; i < TEAM * WARPS; i += 32) {
    const Pair share = unpack<Pair>(words[i]);
    join(peak, total, share.peak, share.total);
  }
  join_warp(peak, total);
}
"""
"""Both in one pass and one exchange."""

BY_BLOCK = """
// All threads of a block get the row's result. Two sets of words take turns, so that one barrier a reduction is enough.
template <typename Op, typename T>
__device__ __forceinline__ T across(T value, T neutral, unsigned& call) {
  value = in_warp<Op>(value);
#if WARPS > 1
  word* words = reinterpret_cast<word*>(room) + (call++ % 2) * WARPS;
  const int lane = threadIdx.x % 32;
  if (lane == 0) words[threadIdx.x / 32] = pack(value);
  __syncthreads();
  value = in_warp<Op>(lane < WARPS ? unpack<T>(words[lane]) : neutral);
#endif
  return value;
}
"""
"""Reductions over the warps of a block that shares nothing."""

ONLINE_BY_BLOCK = """
// Both for all threads of a block, by one exchange: see `across`.
__device__ __forceinline__ void both_across(float& peak, float& total, unsigned& call) {
  join_warp(peak, total);
#if WARPS > 1
  word* words = reinterpret_cast<word*>(room) + (call++ % 2) * WARPS;
  const int lane = threadIdx.x % 32;
  if (lane == 0) words[threadIdx.x / 32] = pack(Pair{peak, total});
  __syncthreads();
  const Pair share = unpack<Pair>(words[lane % WARPS]);
  peak = lane < WARPS ? share.peak : __int_as_float(0xff800000);
  total = lane < WARPS ? share.total : 0.0f;
  join_warp(peak, total);
#endif
}
"""
"""The same of a maximum with its sum of exponentials."""
