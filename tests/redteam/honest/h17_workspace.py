CASE = {
    "honest": 17,
    "op": "row_mean",
    "way": "interpret",
    "why": "a workspace kept by shape, dtype and device; the result is always new",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl

_workspaces = {}


@triton.jit
def part_kernel(x, parts, n, stride, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * BLOCK, n, PARTS * BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + at, mask=at < n, other=0.0)
    tl.store(parts + row * PARTS + part, tl.sum(total, 0))


@triton.jit
def end_kernel(parts, y, n, PARTS: tl.constexpr):
    row = tl.program_id(0)
    tl.store(y + row, tl.sum(tl.load(parts + row * PARTS + tl.arange(0, PARTS)), 0) / n)


def row_mean(x):
    key = (x.shape, x.dtype, x.device)
    if key not in _workspaces:
        _workspaces[key] = torch.empty(x.shape[0], 4, device=x.device)
    parts = _workspaces[key]
    y = torch.empty(x.shape[0], device=x.device)
    part_kernel[(x.shape[0], 4)](x, parts, x.shape[1], x.stride(0), PARTS=4, BLOCK=256)
    end_kernel[(x.shape[0],)](parts, y, x.shape[1], PARTS=4)
    return y
