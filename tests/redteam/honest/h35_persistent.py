CASE = {
    "honest": 35,
    "op": "add",
    "way": "interpret",
    "why": "as many programs as multiprocessors, each in a loop over tiles",
    "expect": {"verdicts": ["right"]},
}

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, o, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(o + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    o = torch.empty_like(x)
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 8
    add_kernel[(min(programs, triton.cdiv(x.numel(), 512)),)](x, y, o, x.numel(), BLOCK=512)
    return o
