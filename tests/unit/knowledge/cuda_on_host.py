"""Runs CUDA C++ on the CPU, thread for thread, so that what a kernel computes can be compared where there is no GPU.

The text is compiled by g++ as it is, with CUDA's own headers for the half types. Each CUDA thread is a thread; barriers and shuffles are
real meetings. It is slow, so shapes are small. Races between threads that meet no barrier, alignment and the device's own rounding
of fast functions are not covered.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
from pathlib import Path

import torch

from workbench.build.nvrtc import include_directories

SHIM = r"""
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
struct Place { int x, y, z; };
static thread_local Place threadIdx;
static Place blockIdx, gridDim, blockDim;
static std::barrier<>* everyone;
static std::vector<std::barrier<>*> warps;
static unsigned char room[64][32][16];
static inline int linear() { return threadIdx.y * blockDim.x + threadIdx.x; }
static inline void __syncthreads() { everyone->arrive_and_wait(); }
template <typename T> T exchange(T value, int from, bool keep) {
  const int warp = linear() / 32, lane = linear() % 32;
  std::memcpy(room[warp][lane], &value, sizeof(T));
  warps[warp]->arrive_and_wait();
  T found = value;
  if (!keep) std::memcpy(&found, room[warp][from], sizeof(T));
  warps[warp]->arrive_and_wait();
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
#undef __shared__
#define __shared__ static
#undef __global__
#define __global__
#undef __launch_bounds__
#define __launch_bounds__(...)
"""

RUN = r"""
extern "C" void run(int gx, int gy, int bx, int by, void** args) {
  gridDim = {gx, gy, 1}; blockDim = {bx, by, 1};
  for (int j = 0; j < gy; ++j) for (int i = 0; i < gx; ++i) {
    blockIdx = {i, j, 0};
    std::barrier<> block(bx * by);
    everyone = &block;
    std::vector<std::thread> threads;
    for (int w = 0; w < (bx * by + 31) / 32; ++w) warps.push_back(new std::barrier<>(std::min(32, bx * by - 32 * w)));
    for (int t = 0; t < bx * by; ++t) threads.emplace_back([=] {
      threadIdx = {t % bx, t / bx, 0};
      CALL;
      everyone->arrive_and_drop();
    });
    for (auto& thread : threads) thread.join();
    for (auto* warp : warps) delete warp;
    warps.clear();
  }
}
"""


class HostCompiler:
    """In the place of ``torch.cuda._compile_kernel``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.launches: list[str] = []

    def __call__(self, source, name, *, nvcc_options=(), **rest):
        assert not rest
        parameters = re.search(rf"\b{name}\((.*?)\)\s*{{", source, re.DOTALL)[1].split(",")
        kinds = [re.sub(r"(__restrict__)?\s*\b\w+\s*$", "", parameter.strip()).strip() for parameter in parameters]
        plain = [kind if "*" in kind else kind.removeprefix("const ") for kind in kinds]
        call = f"{name}({', '.join(f'*({kind}*)args[{at}]' for at, kind in enumerate(plain))})"
        text = SHIM + re.sub(r"#include <cuda_\w+\.h>", "", source) + RUN.replace("CALL", call)
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
            assert len(args) == len(kinds) and len(grid) == len(block) == 3 and all(size >= 1 for size in (*grid, *block))
            held = [
                ctypes.c_void_p(arg.data_ptr()) if isinstance(arg, torch.Tensor)
                else ctypes.c_double(arg) if isinstance(arg, float) else ctypes.c_int(arg)
                for arg in args
            ]  # fmt: skip
            pointers = (ctypes.c_void_p * len(held))(*[ctypes.addressof(item) for item in held])
            run(grid[0], grid[1], block[0], block[1], pointers)
            self.launches.append(name)

        return launch


def run(source: str, entry: str, parameters: dict, arguments, directory: Path, monkeypatch) -> tuple[object, list[str]]:
    """What a candidate's module computes on CPU tensors, and the kernels that it launched."""
    from workbench.build.tune import load_candidate

    compiler = HostCompiler(directory)
    monkeypatch.setattr(torch.cuda, "_compile_kernel", compiler)
    made = load_candidate(source, entry, parameters, directory=directory, name="cuda_on_host_candidate")
    return made(*arguments), compiler.launches
