"""Modules of the shape that Inductor generates, written for these tests: the same frame, kernels of our own in its idiom."""

from __future__ import annotations

import textwrap

FRAME = """\
import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.select_algorithm import extern_kernels
import triton
import triton.language as tl
from torch._C import _cuda_getCurrentRawStream as get_raw_stream

aten = torch.ops.aten
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor
async_compile = AsyncCompile()

{kernels}
async_compile.wait(globals())
del async_compile

class Runner:
    def __init__(self, partitions):
        self.partitions = partitions

    def call(self, args):
        {arguments} = args
        args.clear()
        with torch.cuda._DeviceGuard(0):
            torch.cuda.set_device(0)
{body}
        return ({results}, )

runner = Runner(partitions=[])
call = runner.call
"""

KERNEL = """\
{name} = async_compile.triton('{name}', '''
import triton
import triton.language as tl

from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
from torch._inductor.runtime.hints import DeviceProperties
triton_helpers.set_driver_to_gpu()
{before}
@triton_heuristics.{heuristic}(
    size_hints={{'x': 64}},
    filename=__file__,
    triton_meta={{'signature': {{}}, 'device': DeviceProperties(type='cuda', index=0), 'constants': {{}}{triton_meta}}},
    inductor_meta={{'grid_type': '{grid}', 'kernel_name': '{name}'{meta}}}
)
@triton.jit
def {name}({parameters}):
{body}
''', device_str='cuda')

"""


def kernel(name, parameters, body, *, grid="Grid1D", heuristic="pointwise", before="", meta="", triton_meta=""):
    """An ``async_compile.triton`` statement."""
    return KERNEL.format(
        name=name, parameters=parameters, body=textwrap.indent(textwrap.dedent(body).strip("\n"), "    "), grid=grid,
        heuristic=heuristic, before=textwrap.dedent(before), meta=meta, triton_meta=triton_meta,
    )  # fmt: skip


def module(arguments, body, results, *kernels):
    """A whole generated module."""
    text = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 12)
    return FRAME.format(arguments=arguments, body=text, results=results, kernels="".join(kernels))


# softmax of 6 rows of 200 floats: one looped reduction with a running maximum and sum
SOFTMAX = module(
    "arg0_1,",
    """
    assert_size_stride(arg0_1, (6, 200), (200, 1), 'input')
    buf2 = empty_strided_cuda((6, 200), (200, 1), torch.float32)
    # Topologically Sorted Source Nodes: [softmax], Original ATen: [aten._softmax]
    raw_stream0 = get_raw_stream(0)
    triton_red_fused_0.run(arg0_1, buf2, 6, 200, stream=raw_stream0)
    del arg0_1
    """,
    "buf2",
    kernel(
        "triton_red_fused_0", "in_ptr0, out_ptr2, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr",
        """
        xnumel = 6
        r0_numel = 200
        xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
        xmask = xindex < xnumel
        r0_base = tl.arange(0, R0_BLOCK)[None, :]
        _tmp3_max = tl.full([XBLOCK, R0_BLOCK], float('-inf'), tl.float32)
        _tmp3_sum = tl.zeros([XBLOCK, R0_BLOCK], tl.float32)
        for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
            r0_index = r0_offset + r0_base
            r0_mask = r0_index < r0_numel
            tmp0 = tl.load(in_ptr0 + (r0_index + 200*xindex), r0_mask & xmask, eviction_policy='evict_last', other=0.0)
            tmp2 = tl.broadcast_to(tmp0, [XBLOCK, R0_BLOCK])
            next_max, next_sum = triton_helpers.online_softmax_combine(_tmp3_max, _tmp3_sum, tmp2, False)
            _tmp3_max = tl.where(r0_mask & xmask, next_max, _tmp3_max)
            _tmp3_sum = tl.where(r0_mask & xmask, next_sum, _tmp3_sum)
        tmp3, tmp4 = triton_helpers.online_softmax_reduce(_tmp3_max, _tmp3_sum, 1, False)
        tmp3 = tmp3[:, None]
        tmp4 = tmp4[:, None]
        for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
            r0_index = r0_offset + r0_base
            r0_mask = r0_index < r0_numel
            tmp5 = tl.load(in_ptr0 + (r0_index + 200*xindex), r0_mask & xmask, other=0.0)
            tmp6 = libdevice.exp(tmp5 - tmp3) / tmp4
            tl.store(out_ptr2 + (r0_index + 200*xindex), tmp6, r0_mask & xmask)
        """,
        heuristic="reduction",
    ),
)  # fmt: skip
SOFTMAX_CONFIGS = {"triton_red_fused_0": {"XBLOCK": 2, "R0_BLOCK": 64, "num_warps": 4, "num_stages": 1}}

# relu(x @ w + b): a library's product, then one kernel in place, whose blocks cover everything and need no mask
PRODUCT = module(
    "arg0_1, arg1_1, arg2_1",
    """
    buf0 = empty_strided_cuda((8, 16), (16, 1), torch.float32)
    extern_kernels.mm(arg1_1, reinterpret_tensor(arg0_1, (4, 16), (1, 4), 0), out=buf0)
    buf1 = buf0; del buf0  # reuse
    raw_stream0 = get_raw_stream(0)
    triton_poi_fused_1.run(buf1, arg2_1, 128, stream=raw_stream0)
    """,
    "buf1",
    kernel(
        "triton_poi_fused_1", "in_out_ptr0, in_ptr0, xnumel, XBLOCK : tl.constexpr",
        """
        xnumel = 128
        x2 = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
        x0 = x2 % 16
        tmp0 = tl.load(in_out_ptr0 + (x2), None)
        tmp1 = tl.load(in_ptr0 + (x0), None, eviction_policy='evict_last')
        tmp3 = tl.full([1], 0, tl.int32)
        tmp4 = triton_helpers.maximum(tmp3, tmp0 + tmp1)
        tl.device_assert((0 <= x0) & (x0 < 16), "index out of bounds")
        tl.store(in_out_ptr0 + (x2), tmp4, None)
        """,
    ),
)  # fmt: skip
PRODUCT_CONFIGS = {"triton_poi_fused_1": {"XBLOCK": 64, "num_warps": 8, "num_stages": 1}}

# mean and variance of 5 rows of 96 by Welford in one kernel, then the rows centred by another, on a grid of two dimensions
CENTRED = module(
    "arg0_1,",
    """
    buf0 = empty_strided_cuda((5, 1), (1, 5), torch.float32)
    buf1 = empty_strided_cuda((5, 1), (1, 5), torch.float32)
    raw_stream0 = get_raw_stream(0)
    triton_red_fused_0.run(arg0_1, buf0, buf1, 5, 96, stream=raw_stream0)
    buf2 = empty_strided_cuda((5, 96), (96, 1), torch.float32)
    triton_poi_fused_1.run(arg0_1, buf0, buf2, 5, 96, stream=raw_stream0)
    del buf0
    """,
    "buf2, reinterpret_tensor(buf1, (5, ), (1, ), 0)",
    kernel(
        "triton_red_fused_0", "in_ptr0, out_ptr0, out_ptr1, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr",
        """
        xnumel = 5
        r0_numel = 96
        xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
        xmask = xindex < xnumel
        r0_base = tl.arange(0, R0_BLOCK)[None, :]
        mean = tl.zeros([XBLOCK, R0_BLOCK], tl.float32)
        m2 = tl.zeros([XBLOCK, R0_BLOCK], tl.float32)
        weight = tl.zeros([XBLOCK, R0_BLOCK], tl.float32)
        for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
            r0_index = r0_offset + r0_base
            r0_mask = r0_index < r0_numel
            tmp0 = tl.load(in_ptr0 + (r0_index + 96*xindex), r0_mask & xmask, other=0.0)
            mean_n, m2_n, weight_n = triton_helpers.welford_reduce(tmp0, mean, m2, weight, r0_offset == 0)
            mean = tl.where(r0_mask & xmask, mean_n, mean)
            m2 = tl.where(r0_mask & xmask, m2_n, m2)
            weight = tl.where(r0_mask & xmask, weight_n, weight)
        tmp3, tmp4, tmp5 = triton_helpers.welford(mean, m2, weight, 1)
        tl.store(out_ptr0 + (xindex), tmp3[:, None], xmask)
        tl.store(out_ptr1 + (xindex), tmp4[:, None] / 96.0, xmask)
        """,
        heuristic="reduction",
    ),
    kernel(
        "triton_poi_fused_1", "in_ptr0, in_ptr1, out_ptr0, ynumel, xnumel, YBLOCK : tl.constexpr, XBLOCK : tl.constexpr",
        """
        ynumel = 5
        xnumel = 96
        yindex = tl.program_id(1) * YBLOCK + tl.arange(0, YBLOCK)[:, None]
        ymask = yindex < ynumel
        xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[None, :]
        xmask = xindex < xnumel
        tmp0 = tl.load(in_ptr0 + (xindex + 96*yindex), xmask & ymask)
        tmp1 = tl.load(in_ptr1 + (yindex), ymask, eviction_policy='evict_last')
        tl.store(out_ptr0 + (xindex + 96*yindex), tmp0 - tmp1, xmask & ymask)
        """,
        grid="Grid2D",
    ),
)  # fmt: skip
CENTRED_CONFIGS = {
    "triton_red_fused_0": {"XBLOCK": 2, "R0_BLOCK": 32, "num_warps": 4, "num_stages": 1},
    "triton_poi_fused_1": {"YBLOCK": 4, "XBLOCK": 64, "num_warps": 2, "num_stages": 1},
}

# a running sum, with a combining function of the kernel's own, and the place of the largest element
SCAN = module(
    "arg0_1,",
    """
    buf0 = empty_strided_cuda((3, 128), (128, 1), torch.float32)
    buf1 = empty_strided_cuda((3, ), (1, ), torch.int64)
    raw_stream0 = get_raw_stream(0)
    triton_per_fused_0.run(arg0_1, buf0, buf1, 3, 128, stream=raw_stream0)
    """,
    "buf0, buf1",
    kernel(
        "triton_per_fused_0", "in_ptr0, out_ptr0, out_ptr1, xnumel, r0_numel, XBLOCK : tl.constexpr",
        """
        xnumel = 3
        r0_numel = 128
        R0_BLOCK: tl.constexpr = 128
        xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
        xmask = xindex < xnumel
        r0_index = tl.arange(0, R0_BLOCK)[None, :]
        tmp0 = tl.load(in_ptr0 + (r0_index + 128*xindex), xmask, other=0.0)
        tmp1, = tl.associative_scan((tmp0,), 1, _triton_helper_fn_add0)
        tl.store(out_ptr0 + (r0_index + 128*xindex), tmp1, xmask)
        index = tl.broadcast_to(r0_index, tmp0.shape)
        tmp2, tmp3 = triton_helpers.max_with_index(tmp0, index, 1)
        tl.store(out_ptr1 + (xindex), tmp3[:, None], xmask)
        """,
        heuristic="persistent_reduction",
        before="""
        @triton.jit
        def _triton_helper_fn_add0(arg0_0, arg1_0):
            tmp0 = arg0_0 + arg1_0
            return tmp0
        """,
    ),
)  # fmt: skip
SCAN_CONFIGS = {"triton_per_fused_0": {"XBLOCK": 2, "num_warps": 2, "num_stages": 1}}

# twice an argument, from a template: the grid is passed along
TEMPLATE = module(
    "arg0_1,",
    """
    buf0 = empty_strided_cuda((4, 32), (32, 1), torch.float32)
    raw_stream0 = get_raw_stream(0)
    triton_tem_fused_0.run(arg0_1, buf0, 2, 1, 1, stream=raw_stream0)
    """,
    "buf0",
    kernel(
        "triton_tem_fused_0", "arg_A, out_ptr0",
        """
        BLOCK : tl.constexpr = 64
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr0 + i, tl.load(arg_A + i) * 2)
        """,
        grid="FixedGrid", heuristic="template",
        meta=", 'fixed_grid': ['_grid_0', '_grid_1', '_grid_2'], 'extra_launcher_args': ['_grid_0', '_grid_1', '_grid_2']",
    ),
)  # fmt: skip
TEMPLATE_CONFIGS = {"triton_tem_fused_0": {"num_warps": 4, "num_stages": 3}}
