"""Runs CUDA C++ on the CPU, thread for thread, so that what a kernel computes can be compared where there is no GPU.

The text is compiled by g++ as it is, with CUDA's own headers for the half types. Each CUDA thread is a thread; barriers and shuffles are
real meetings. The blocks of a cluster run at once, others one after the other, in their order or in any; the copy engine is a copy that
counts its bytes. It is slow, so shapes are small. Races between threads that meet no barrier, what a multiprocessor's L1 still
has of what others wrote, alignment and the device's own rounding of fast functions are not covered.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
import types
from pathlib import Path

import torch

from workbench.build.nvrtc import include_directories

SHIM = r"""
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
struct Place { int x, y, z; };
struct Block {  // one block's meeting places, and its dynamic shared memory
  std::barrier<> everyone;
  std::vector<std::unique_ptr<std::barrier<>>> warps;
  unsigned char exchanged[32][32][16];
  std::vector<unsigned char> shared;
  Block(int threads, int bytes) : everyone(threads), shared(bytes + 128) {
    for (int left = threads; left > 0; left -= 32) warps.emplace_back(new std::barrier<>(left < 32 ? left : 32));
  }
  unsigned char* memory() { return shared.data() + (128 - reinterpret_cast<size_t>(shared.data()) % 128) % 128; }
};
static thread_local Place threadIdx, blockIdx;
static Place gridDim, blockDim;
static thread_local Block* own;
static std::vector<std::unique_ptr<Block>> team;
static std::unique_ptr<std::barrier<>> together;
static inline int linear() { return threadIdx.y * blockDim.x + threadIdx.x; }
static inline void __syncthreads() { own->everyone.arrive_and_wait(); }
static inline void __syncwarp() { own->warps[linear() / 32]->arrive_and_wait(); }
template <typename T> T exchange(T value, int from, bool keep) {
  const int warp = linear() / 32, lane = linear() % 32;
  std::memcpy(own->exchanged[warp][lane], &value, sizeof(T));
  __syncwarp();
  T found = value;
  if (!keep) std::memcpy(&found, own->exchanged[warp][from], sizeof(T));
  __syncwarp();
  return found;
}
template <typename T> T __shfl_xor_sync(unsigned, T value, int step) { return exchange(value, (linear() % 32) ^ step, false); }
template <typename T> T __shfl_up_sync(unsigned, T value, int step) {
  const int lane = linear() % 32;
  return exchange(value, lane - step, lane < step);
}
template <typename T> T __shfl_sync(unsigned, T value, int lane) { return exchange(value, lane, false); }
#define __expf(x) std::exp(static_cast<float>(x))
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __int_as_float(int x) { float y; std::memcpy(&y, &x, 4); return y; }
static inline float __int_as_float(unsigned x) { return __int_as_float(static_cast<int>(x)); }
static inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
template <typename T> T __ldcs(const T* at) { return *at; }
template <typename T> void __stcs(T* at, T value) { *at = value; }
template <typename T> T __ldcg(const T* at) { return *at; }
static int atomicAdd(int* at, int more) { return std::atomic_ref<int>(*at).fetch_add(more); }
static void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
#undef __shared__
#define __shared__ static
#undef __global__
#define __global__
#undef __launch_bounds__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
"""

ENGINE = r"""
typedef unsigned long long word;
#define room (own->memory())
#ifndef TEAM  // a block that shares nothing
#define TEAM 1
#endif
// A barrier as one word: how often it opened, what it waits for: announced bytes above the one arrival.
struct Bar { std::atomic<int> opened, missing; };
static Bar& bar_of(word* at) { return *reinterpret_cast<Bar*>(at); }
static void make_barrier(word* at) { new (at) Bar{0, 1}; }
static void show_barriers() {}
static void less(word* at, int amount) {
  Bar& bar = bar_of(at);
  if (bar.missing.fetch_sub(amount) == amount) { bar.missing = 1; ++bar.opened; }
}
static void announce(word* at, unsigned bytes) {
  bar_of(at).missing += static_cast<int>(bytes);
  less(at, 1);
}
static void bring(void* to, const void* from, unsigned bytes, word* at) {
  if (bytes % 16 || reinterpret_cast<size_t>(to) % 16 || reinterpret_cast<size_t>(from) % 16) std::abort();
  unsigned char* const first = room;
  if (to < first || static_cast<unsigned char*>(to) + bytes > first + own->shared.size() - 128) std::abort();
  std::memcpy(to, from, bytes);
  less(at, static_cast<int>(bytes));
}
static void await(word* at, unsigned parity) {
  while (static_cast<unsigned>(bar_of(at).opened.load() % 2) == parity) std::this_thread::yield();
}
static int cluster_rank() { return blockIdx.x % TEAM; }
static void push(word* to, int rank, word value) {
  unsigned char* const there = team[rank]->memory() + (reinterpret_cast<unsigned char*>(to) - room);
  *reinterpret_cast<word*>(there) = value;
}
static void cluster_arrive() {}
static void cluster_wait() { together->arrive_and_wait(); }
"""
"""In the place of the copy engine and of clusters (see `knowledge.cuda_team_text`): the same meetings, by threads."""

PAIRS = r"""
template <typename Op, typename T> static unsigned further(Op, T, unsigned a, unsigned b) {
  T left[2], right[2];
  std::memcpy(left, &a, 4);
  std::memcpy(right, &b, 4);
  for (int i = 0; i < 2; ++i) left[i] = Down<T>::of(Op::of(up(left[i]), up(right[i])));
  std::memcpy(&a, left, 4);
  return a;
}
#define IN_PAIRS 1
"""
"""In the place of the instructions that compare two half types at once (see `knowledge.cuda_row_text`)."""

RUN = r"""
#undef room
extern "C" void run(int gx, int gy, int bx, int by, int blocks, int bytes, int seed, void** args) {
  gridDim = {gx, gy, 1}; blockDim = {bx, by, 1};
  std::vector<int> order(gx / blocks * gy);
  std::iota(order.begin(), order.end(), 0);
  if (seed) std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  for (int place : order) {
    const int i = place % (gx / blocks) * blocks, j = place / (gx / blocks);
    together = std::make_unique<std::barrier<>>(blocks * bx * by);
    std::vector<std::thread> threads;
    for (int b = 0; b < blocks; ++b) team.emplace_back(new Block(bx * by, bytes));
    for (int b = 0; b < blocks; ++b) for (int t = 0; t < bx * by; ++t) threads.emplace_back([=] {
      threadIdx = {t % bx, t / bx, 0};
      blockIdx = {i + b, j, 0};
      own = team[b].get();
      CALL;
      own->everyone.arrive_and_drop();
    });
    for (auto& thread : threads) thread.join();
    team.clear();
  }
}
"""

_HARDWARE = re.compile(r"typedef unsigned long long word;.*?// End of what touches the hardware\.", re.DOTALL)


class HostCompiler:
    """In the place of ``torch.cuda._compile_kernel``. With a `seed` blocks run in another order than theirs."""

    def __init__(self, directory: Path, seed: int = 0) -> None:
        self.directory, self.seed = directory, seed
        self.launches: list[str] = []

    def __call__(self, source, name, *, nvcc_options=(), **rest):
        assert not rest
        parameters = re.search(rf"\b{name}\((.*?)\)\s*{{", source, re.DOTALL)[1].split(",")
        kinds = [re.sub(r"(__restrict__)?\s*\b\w+\s*$", "", parameter.strip()).strip() for parameter in parameters]
        plain = [kind if "*" in kind else kind.removeprefix("const ") for kind in kinds]
        call = f"{name}({', '.join(f'*({kind}*)args[{at}]' for at, kind in enumerate(plain))})"
        plain_source = _HARDWARE.sub(lambda _: ENGINE, re.sub(r"#include <cuda_\w+\.h>", "", source))
        plain_source = plain_source.replace("#define IN_PAIRS 0", PAIRS)
        text = SHIM + plain_source + RUN.replace("CALL", call)
        macros = dict(option.removeprefix("-D").split("=") for option in nvcc_options)
        key = hashlib.sha256(f"{text}{nvcc_options}".encode()).hexdigest()[:16]
        file = self.directory / f"{key}.cpp"
        library = file.with_suffix(".so")
        if not library.exists():
            file.write_text(text)
            includes = [f"-I{place}" for place in include_directories()]
            command = ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", *includes, *nvcc_options, str(file), "-o", str(library)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
            assert done.returncode == 0, done.stderr[:4000]
        run = ctypes.CDLL(str(library)).run

        def launch(grid, block, args, shared_mem=0):
            assert shared_mem <= max(configured, default=48 << 10)
            assert len(args) == len(kinds) and len(grid) == len(block) == 3 and all(size >= 1 for size in (*grid, *block))
            held = [
                ctypes.c_void_p(arg.data_ptr()) if isinstance(arg, torch.Tensor)
                else ctypes.c_double(arg) if isinstance(arg, float) else ctypes.c_int(arg)
                for arg in args
            ]  # fmt: skip
            pointers = (ctypes.c_void_p * len(held))(*[ctypes.addressof(item) for item in held])
            together = int(macros["TEAM"]) if "__cluster_dims__" in source else 1
            assert grid[0] % together == 0
            run(grid[0], grid[1], block[0], block[1], together, shared_mem, self.seed, pointers)
            self.launches.append(name)

        configured: list[int] = []
        launch.set_shared_memory_config = configured.append
        return launch


def load(source: str, entry: str, parameters: dict, directory: Path, monkeypatch, seed: int = 0):
    """A candidate's function for CPU tensors, and the list of the kernels that its calls launch; on a card of three multiprocessors."""
    from workbench.build.tune import load_candidate

    compiler = HostCompiler(directory, seed)
    monkeypatch.setattr(torch.cuda, "_compile_kernel", compiler)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: types.SimpleNamespace(multi_processor_count=3))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: types.SimpleNamespace(cuda_stream=0))
    return load_candidate(source, entry, parameters, directory=directory, name="cuda_on_host_candidate"), compiler.launches


def run(source: str, entry: str, parameters: dict, arguments, directory: Path, monkeypatch, seed: int = 0) -> tuple[object, list[str]]:
    """What a candidate's module computes on CPU tensors, and the kernels that it launched."""
    made, launches = load(source, entry, parameters, directory, monkeypatch, seed)
    return made(*arguments), launches
