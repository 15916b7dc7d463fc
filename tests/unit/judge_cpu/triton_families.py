"""Real candidates of the common families, with a reference in torch: what recorder, interpreter, traffic and model are held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"


@dataclass(frozen=True)
class Family:
    """A candidate, its reference, and the shapes at which it is interpreted and recorded."""

    source: str
    entry: str
    reference: Callable
    small: tuple[tuple[int, ...], ...]
    real: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...] = ("float32", "bfloat16", "float16")
    integers: dict[int, int] = field(default_factory=dict)
    """Upper bound of the values of an integer input, by its position."""
    parameters: dict = field(default_factory=dict)


FAMILIES: dict[str, Family] = {}


def _add(name: str, source: str, entry: str, reference: Callable, **rest) -> None:
    FAMILIES[name] = Family(HEAD + source.strip("\n") + "\n", entry, reference, **rest)


_add(
    "softmax_row",
    """
TUNE = {"WARPS": [4, 8]}

@triton.jit
def softmax_kernel(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, 0))
    v = v / tl.sum(v, 0)
    tl.store(y + row * stride + cols, v.to(y.dtype.element_ty), mask=cols < n)

def softmax(x):
    assert x.is_cuda and x.device.type == "cuda"
    y = torch.empty_like(x)
    m, n = x.shape
    with torch.cuda.device(x.device):
        softmax_kernel[(m,)](x, y, x.stride(0), n, BLOCK=triton.next_power_of_2(n), num_warps=WARPS)
    return y
""",
    "softmax",
    lambda x: torch.softmax(x.double(), -1),
    small=((3, 130),),
    real=((4096, 8192),),
)

_add(
    "softmax_loop",
    """
@triton.jit
def softmax_kernel(x, y, n, BLOCK: tl.constexpr):
    x += tl.program_id(0) * n
    y += tl.program_id(0) * n
    m = -float("inf")
    d = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(v, 0))
        d = d * tl.exp2((m - new) * 1.4426950408889634) + tl.sum(tl.exp2((v - new) * 1.4426950408889634), 0)
        m = new
    for start in tl.range(0, n, BLOCK, num_stages=2):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
        tl.store(y + cols, tl.exp2((v - m) * 1.4426950408889634) / d, mask=cols < n)

def softmax(x):
    y = torch.empty(x.shape, device="cuda", dtype=x.dtype)
    softmax_kernel[x.shape[:1]](x, y, x.shape[1], BLOCK=64 if x.shape[1] < 1024 else 1024)
    return y
""",
    "softmax",
    lambda x: torch.softmax(x.double(), -1),
    small=((3, 130),),
    real=((4096, 8192),),
)

_add(
    "rmsnorm",
    """
@triton.jit
def rmsnorm_kernel(x, w, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.math.rsqrt(tl.sum(v * v, axis=0) / n + eps)
    out = v * scale * tl.load(w + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + row * n + cols, out.to(y.dtype.element_ty), mask=mask)

def rmsnorm(x, w):
    y = torch.empty_like(x)
    rmsnorm_kernel[(x.shape[0],)](x, w, y, x.shape[1], 1e-6, BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
    return y
""",
    "rmsnorm",
    lambda x, w: x.double() * torch.rsqrt(x.double().pow(2).mean(-1, keepdim=True) + 1e-6) * w.double(),
    small=((3, 130), (130,)),
    real=((4096, 8192), (8192,)),
)

_add(
    "gelu_mul_libdevice",
    """
from triton.language.extra import libdevice

@triton.jit
def gelu(v):
    return 0.5 * v * (1.0 + libdevice.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))

@triton.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    v = tl.load(x + i, mask=mask).to(tl.float32)
    tl.store(out + i, gelu(v) * tl.load(y + i, mask=mask).to(tl.float32), mask=mask)

def gelu_mul(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=256 if n < 5000 else 2048)
    return out
""",
    "gelu_mul",
    lambda x, y: torch.nn.functional.gelu(x.double(), approximate="tanh") * y.double(),
    small=((5, 131), (5, 131)),
    real=((4096, 8192), (4096, 8192)),
)

_add(
    "gelu_mul_sigmoid",
    """
@triton.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i >= 0) and (i < n)
    v = tl.load(x + i, mask=mask).to(tl.float32)
    inner = 1.5957691216057308 * (v + 0.044715 * v * v * v)
    tl.store(out + i, (v * tl.sigmoid(inner)) * tl.load(y + i, mask=mask), mask=mask)

def gelu_mul(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    return out
""",
    "gelu_mul",
    lambda x, y: torch.nn.functional.gelu(x.double(), approximate="tanh") * y.double(),
    small=((5, 131), (5, 131)),
    real=((4096, 8192), (4096, 8192)),
)

_MATMUL_KERNEL = """
@triton.heuristics({"EVEN": lambda args: args["K"] % args["BK"] == 0})
@triton.jit
def matmul_kernel(a, b, bias, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
                  EVEN: tl.constexpr):
    pid = tl.program_id(0)
    across = tl.cdiv(N, BN)
    per_group = GROUP * across
    first = (pid // per_group) * GROUP
    size = min(tl.cdiv(M, BM) - first, GROUP)
    pm = first + (pid % per_group) % size
    pn = (pid % per_group) // size
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    ap = a + rm[:, None] * sa + rk[None, :]
    bp = b + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        if EVEN:
            x = tl.load(ap, mask=rm[:, None] < M, other=0.0)
            y = tl.load(bp, mask=rn[None, :] < N, other=0.0)
        else:
            x = tl.load(ap, mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK), other=0.0)
            y = tl.load(bp, mask=(rk[:, None] < K - k * BK) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
        ap += BK
        bp += BK * sb
    acc = tl.maximum(acc + tl.load(bias + rn, mask=rn < N, other=0.0)[None, :].to(tl.float32), 0.0)
    tl.store(c + rm[:, None] * sc + rn[None, :], acc.to(c.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))
"""

_add(
    "linear_relu",
    _MATMUL_KERNEL
    + """
TUNE = {"BM": [64, 128], "BN": [64], "BK": [32]}

def linear_relu(a, b, bias):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)
    matmul_kernel[grid](a, b, bias, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BM=BM, BN=BN, BK=BK, GROUP=8, num_warps=4,
                        num_stages=3)
    return c
""",
    "linear_relu",
    lambda a, b, bias: torch.relu(a.double() @ b.double() + bias.double()),
    small=((70, 45), (45, 130), (130,)),
    real=((4096, 4096), (4096, 4096), (4096,)),
)

_add(
    "autotuned",
    _MATMUL_KERNEL.replace(
        "@triton.heuristics",
        """@triton.autotune(
    configs=[
        triton.Config({"BM": 512, "BN": 512, "BK": 128, "GROUP": 8}, num_warps=8, num_stages=4),
        triton.Config({"BM": 64, "BN": 128, "BK": 32, "GROUP": 8}, num_warps=4, num_stages=3),
    ],
    key=["M", "N", "K"],
)
@triton.heuristics""",
    )
    + """
def linear_relu(a, b, bias):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)
    matmul_kernel[grid](a, b, bias, c, M, N, K, a.stride(0), b.stride(0), c.stride(0))
    return c
""",
    "linear_relu",
    lambda a, b, bias: torch.relu(a.double() @ b.double() + bias.double()),
    small=((70, 45), (45, 130), (130,)),
    real=((4096, 4096), (4096, 4096), (4096,)),
    dtypes=("bfloat16",),
)

_add(
    "block_pointers",
    """
@triton.jit
def kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = tl.program_id(0), tl.program_id(1)
    ap = tl.make_block_ptr(a, (M, K), (K, 1), (pm * BM, 0), (BM, BK), (1, 0))
    bp = tl.make_block_ptr(b, (K, N), (N, 1), (0, pn * BN), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(ap, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(bp, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(x, y, input_precision="ieee")
        ap = tl.advance(ap, (0, BK))
        bp = tl.advance(bp, (BK, 0))
    cp = tl.make_block_ptr(c, (M, N), (N, 1), (pm * BM, pn * BN), (BM, BN), (1, 0))
    tl.store(cp, acc.to(c.dtype.element_ty), boundary_check=(0, 1))

def matmul(a, b):
    M, K = a.shape
    N = b.shape[1]
    c = a.new_empty((M, N))
    kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, c, M, N, K, 64, 64, 32)
    return c
""",
    "matmul",
    lambda a, b: a.double() @ b.double(),
    small=((70, 45), (45, 130)),
    real=((4096, 4096), (4096, 4096)),
    dtypes=("float32", "bfloat16"),
)

_add(
    "cross_entropy",
    """
@triton.jit
def kernel(x, target, loss, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * n
    m = tl.full((), -float("inf"), tl.float32)
    d = tl.full((), 0.0, tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(v, 0))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(v - new), 0)
        m = new
    picked = tl.load(x + tl.load(target + row)).to(tl.float32)
    tl.store(loss + row, m + tl.log(d) - picked)

def cross_entropy(x, target):
    rows = torch.empty(x.shape[0], device=x.device, dtype=torch.float32)
    kernel[(x.shape[0],)](x, target, rows, x.shape[1], BLOCK=64 if x.shape[1] < 1024 else 4096, num_warps=8)
    return rows.mean()
""",
    "cross_entropy",
    lambda x, target: torch.nn.functional.cross_entropy(x.double(), target),
    small=((7, 131), (7,)),
    real=((4096, 32000), (4096,)),
    integers={1: 131},
)

_add(
    "split_k",
    """
@triton.jit
def kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(part * BK, K, BK * SPLIT):
        rk = k + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        y = tl.load(b + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(x, y, input_precision="ieee")
    tl.atomic_add(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N), sem="relaxed")

def matmul(a, b):
    M, K = a.shape
    N = b.shape[1]
    c = torch.zeros((M, N), device=a.device, dtype=torch.float32)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 64), 4)](a, b, c, M, N, K, BM=32, BN=64, BK=32, SPLIT=4)
    return c.to(a.dtype)
""",
    "matmul",
    lambda a, b: a.double() @ b.double(),
    small=((33, 145), (145, 70)),
    real=((64, 16384), (16384, 256)),
)

_add(
    "two_launches",
    """
@triton.jit
def partial_sums(x, part, n, chunk, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BLOCK,), tl.float32)
    stop = min((piece + 1) * chunk, n)
    for start in range(piece * chunk, stop, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + cols, mask=cols < stop, other=0.0).to(tl.float32)
        acc += v * v
    tl.store(part + row * tl.num_programs(1) + piece, tl.sum(acc))

@triton.jit
def scale_rows(x, part, y, n, PIECES: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    norm = tl.sqrt(tl.sum(tl.load(part + row * PIECES + tl.arange(0, PIECES))))
    tl.store(y + row * n + cols, tl.load(x + row * n + cols, mask=cols < n) / norm, mask=cols < n)

def l2_normalize(x):
    m, n = x.shape
    pieces = 4
    part = torch.empty((m, pieces), device=x.device)
    y = torch.empty_like(x)
    partial_sums[(m, pieces)](x, part, n, triton.cdiv(n, pieces), BLOCK=32 if n < 4096 else 1024)
    scale_rows[(m, triton.cdiv(n, 64))](x, part, y, n, PIECES=pieces, BLOCK=64)
    return y
""",
    "l2_normalize",
    lambda x: x.double() / x.double().norm(dim=-1, keepdim=True),
    small=((3, 1003),),
    real=((1024, 65536),),
    dtypes=("float32",),
)

_add(
    "cumsum_scan",
    """
@triton.jit
def add(a, b):
    return a + b

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    carry = tl.zeros((1,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + cols, mask=cols < n, other=0.0).to(tl.float32)
        s = tl.associative_scan(v, 0, add) + carry
        carry += tl.sum(v, 0)
        tl.store(y + row * n + cols, s.to(y.dtype.element_ty), mask=cols < n)

def cumsum(x):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=64 if x.shape[1] < 4096 else 4096)
    return y
""",
    "cumsum",
    lambda x: x.double().cumsum(-1),
    small=((3, 131),),
    real=((4096, 8192),),
    dtypes=("float32",),
)

_add(
    "sort_argmax",
    """
@triton.jit
def kernel(x, values, index, N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, N)
    v = tl.load(x + row * N + cols)
    tl.store(values + row * N + cols, tl.sort(v, descending=True))
    tl.store(index + row, tl.argmax(v, axis=0).to(tl.int64))

def sort_argmax(x):
    values = torch.empty_like(x)
    index = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
    kernel[(x.shape[0],)](x, values, index, x.shape[1])
    return values, index
""",
    "sort_argmax",
    lambda x: (x.double().sort(descending=True).values, x.argmax(-1)),
    small=((5, 64),),
    real=((4096, 256),),
)

_add(
    "transpose_add",
    """
@triton.jit
def kernel(x, y, out, M, N, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    mask = (r[:, None] < M) & (c[None, :] < N)
    t = tl.trans(tl.load(y + c[:, None] * M + r[None, :], mask=(c[:, None] < N) & (r[None, :] < M)))
    tl.store(out + r[:, None] * N + c[None, :], tl.load(x + r[:, None] * N + c[None, :], mask=mask) + t, mask=mask)

def transpose_add(x, y):
    M, N = x.shape
    out = torch.empty_like(x)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, y, out, M, N, B=32)
    return out
""",
    "transpose_add",
    lambda x, y: x.double() + y.double().T,
    small=((33, 70), (70, 33)),
    real=((8192, 8192), (8192, 8192)),
)

_add(
    "attention",
    """
@triton.jit
def kernel(q, k, v, out, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1) * T * D
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    query = tl.load(q + head + rm[:, None] * D + rd[None, :], mask=rm[:, None] < T, other=0.0)
    m = tl.full((BM,), -float("inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BN):
        rn = start + tl.arange(0, BN)
        key = tl.load(k + head + rn[None, :] * D + rd[:, None], mask=rn[None, :] < T, other=0.0)
        s = tl.dot(query, key, input_precision="ieee") * scale
        s = tl.where((rn[None, :] <= rm[:, None]) & (rn[None, :] < T), s, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(m - new)
        l = l * alpha + tl.sum(p, 1)
        value = tl.load(v + head + rn[:, None] * D + rd[None, :], mask=rn[:, None] < T, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(value.dtype), value, input_precision="ieee")
        m = new
    tl.store(out + head + rm[:, None] * D + rd[None, :], (acc / l[:, None]).to(out.dtype.element_ty), mask=rm[:, None] < T)

def attention(q, k, v):
    B, H, T, D = q.shape
    out = torch.empty_like(q)
    kernel[(triton.cdiv(T, 32), B * H)](q, k, v, out, T, D ** -0.5, D=D, BM=32, BN=32)
    return out
""",
    "attention",
    lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True),
    small=((1, 2, 45, 16),) * 3,
    real=((4, 16, 2048, 64),) * 3,
    dtypes=("float32", "bfloat16"),
)

_add(
    "welford_layernorm",
    """
@triton.jit
def combine(m1, s1, n1, m2, s2, n2):
    delta = m2 - m1
    n = n1 + n2
    share = tl.where(n == 0.0, 0.0, n2 / n)
    return m1 + delta * share, s1 + s2 + delta * delta * n1 * share, n

@triton.jit
def kernel(x, w, b, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    mean, m2, count = tl.reduce((v, tl.zeros_like(v), mask.to(tl.float32)), 0, combine)
    out = (v - mean) * tl.rsqrt(m2 / count + 1e-5)
    out = out * tl.load(w + cols, mask=mask).to(tl.float32) + tl.load(b + cols, mask=mask).to(tl.float32)
    tl.store(y + row * n + cols, out, mask=mask)

def layer_norm(x, w, b):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, w, b, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
""",
    "layer_norm",
    lambda x, w, b: torch.nn.functional.layer_norm(x.double(), x.shape[-1:], w.double(), b.double()),
    small=((3, 130), (130,), (130,)),
    real=((4096, 8192), (8192,), (8192,)),
)

_add(
    "histogram_atomics",
    """
@triton.jit
def kernel(x, counts, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    h = tl.histogram(v.to(tl.int32), BINS, mask=i < n)
    tl.atomic_add(counts + tl.arange(0, BINS), h)

def bincount(x):
    counts = torch.zeros(32, dtype=torch.int32, device=x.device)
    kernel[(triton.cdiv(x.numel(), 256),)](x, counts, x.numel(), BINS=32, BLOCK=256)
    return counts.to(torch.int64)
""",
    "bincount",
    lambda x: torch.bincount(x, minlength=32),
    small=((1000,),),
    real=((1 << 20,),),
    dtypes=("int64",),
    integers={0: 32},
)

_add(
    "descriptors",
    """
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def kernel(x, y, B: tl.constexpr):
    r, c = tl.program_id(0) * B, tl.program_id(1) * B
    y.store([r, c], x.load([r, c]) * 2)

def double(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.shape[0], 32), triton.cdiv(x.shape[1], 32))](
        TensorDescriptor.from_tensor(x, [32, 32]), TensorDescriptor.from_tensor(y, [32, 32]), B=32)
    return y
""",
    "double",
    lambda x: x.double() * 2,
    small=((40, 72),),
    real=((4096, 8192),),
    dtypes=("float32", "bfloat16"),
)


def specs(family: Family, dtype: str, shapes: tuple[tuple[int, ...], ...]) -> list:
    """Input specs of a family at some shapes."""
    from workbench.task import InputSpec, Values

    made = []
    for position, shape in enumerate(shapes):
        strides = []
        step = 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
        high = family.integers.get(position)
        values = Values("integers", {"lo": 0, "hi": high}) if high else Values("normal")
        made.append(InputSpec(f"i{position}", shape, "int64" if high else dtype, tuple(strides), values))
    return made
