"""Hand-written Triton candidates, right ones and wrong ones, and the references that they answer."""

from __future__ import annotations

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"

REFERENCES = {
    "softmax": "import torch\n\ndef softmax(x):\n    return torch.softmax(x, dim=-1)\n",
    "rmsnorm": """import torch

def rmsnorm(x, w):
    s = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
    return x * s.to(x.dtype) * w
""",
    "gated": "import torch\nimport torch.nn.functional as F\n\ndef gated(x, y):\n    return F.gelu(x) * y\n",
    "linear": "import torch\n\ndef linear(x, w, b):\n    return torch.relu(x @ w + b)\n",
    "loss": "import torch\nimport torch.nn.functional as F\n\ndef loss(x, t):\n    return F.cross_entropy(x, t)\n",
}

SOFTMAX = (
    HEAD
    + """
@triton.jit
def softmax_kernel(x, y, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + cols, e / tl.sum(e, 0), mask=mask)


def softmax(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
    return y
"""
)

RMSNORM = (
    HEAD
    + """
@triton.jit
def rms_kernel(x, w, y, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + cols, mask=cols < n, other=0.0).to(tl.float32)
        total += v * v
    scale = tl.rsqrt(tl.sum(total, 0) / n + 1e-6)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        v = tl.load(x + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
        g = tl.load(w + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y + row * n + cols, (v * scale * g).to(y.dtype.element_ty), mask=mask)


def rmsnorm(x, w):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rms_kernel[(x.shape[0],)](x, w, y, x.shape[1], x.stride(0), BLOCK=1024)
    return y
"""
)

GATED = (
    HEAD
    + """
TUNE = {"BLOCK": [1024, 2048]}


@triton.jit
def gated_kernel(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    a = tl.load(x + i, mask=mask).to(tl.float32)
    b = tl.load(y + i, mask=mask).to(tl.float32)
    g = 0.5 * a * (1 + tl.math.erf(a * 0.7071067811865476))
    tl.store(o + i, (g * b).to(o.dtype.element_ty), mask=mask)


def gated(x, y):
    x, y = x.contiguous(), y.contiguous()
    o = torch.empty_like(x)
    gated_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, o, x.numel(), B=BLOCK)
    return o
"""
)

LINEAR = (
    HEAD
    + """
@triton.jit
def linear_kernel(x, w, b, y, M, N, K, xm, xk, wk, wn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(x + rm[:, None] * xm + rk[None, :] * xk, mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        c = tl.load(w + rk[:, None] * wk + rn[None, :] * wn, mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, c, acc, input_precision="ieee")
    acc += tl.load(b + rn, mask=rn < N, other=0.0).to(tl.float32)[None, :]
    acc = tl.maximum(acc, 0.0)
    tl.store(y + rm[:, None] * N + rn[None, :], acc.to(y.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


def linear(x, w, b):
    M, K = x.shape
    N = w.shape[1]
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    linear_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        x, w, b, y, M, N, K, x.stride(0), x.stride(1), w.stride(0), w.stride(1), BM=64, BN=64, BK=32
    )
    return y
"""
)

LOSS = (
    HEAD
    + """
@triton.jit
def loss_kernel(x, t, out, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
    top = tl.max(v, 0)
    lse = tl.log(tl.sum(tl.exp(v - top), 0)) + top
    label = tl.load(t + row)
    tl.store(out + row, lse - tl.load(x + row * stride + label).to(tl.float32))


def loss(x, t):
    rows = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    loss_kernel[(x.shape[0],)](x, t, rows, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]))
    return rows.mean().to(x.dtype)
"""
)

RIGHT = {"softmax": SOFTMAX, "rmsnorm": RMSNORM, "gated": GATED, "linear": LINEAR, "loss": LOSS}


def _replaced(source: str, old: str, new: str) -> str:
    assert old in source, old
    return source.replace(old, new)


_CACHED = """    key = x.data_ptr()
    if key in _seen:
        return _seen[key]
    o = _seen[key] = torch.empty_like(x)
"""

WRONG = {
    "no mask on the load": ("softmax", _replaced(SOFTMAX, 'cols, mask=mask, other=-float("inf"))', "cols)")),
    "no mask on the store": ("softmax", _replaced(SOFTMAX, "e / tl.sum(e, 0), mask=mask)", "e / tl.sum(e, 0))")),
    "zeros": ("softmax", _replaced(SOFTMAX, "    return y\n", "    return torch.zeros_like(y)\n")),
    "half the rows": ("softmax", _replaced(SOFTMAX, "[(x.shape[0],)]", "[(x.shape[0] // 2,)]")),
    "wrong scale": ("rmsnorm", _replaced(RMSNORM, "tl.sum(total, 0) / n", "tl.sum(total, 0) / (n + 1)")),
    "the weight forgotten": ("rmsnorm", _replaced(RMSNORM, "v * scale * g", "v * scale")),
    "stale": ("gated", _replaced(GATED, "    o = torch.empty_like(x)\n", _CACHED) + "\n\n_seen = {}\n"),
    "tanh for erf": ("gated", _replaced(GATED, "(1 + tl.math.erf(a * 0.7071067811865476))", "2 * tl.sigmoid(1.702 * a)")),
    "K cut short": ("linear", _replaced(LINEAR, "range(0, K, BK)", "range(0, K - BK, BK)")),
    "sum for mean": ("loss", _replaced(LOSS, "rows.mean()", "rows.sum()")),
}  # fmt: skip
