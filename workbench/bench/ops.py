"""The ops that benchmarks run: realistic sizes, each a reference file's text as the command line takes it."""

from __future__ import annotations

from collections.abc import Mapping


def _op(name: str, arguments: str, body: str, inputs: str) -> str:
    return (
        f"import torch\nimport torch.nn.functional as F\n\n\ndef {name}({arguments}):\n    {body}\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n"
    )


def _both(name: str, arguments: str, body: str, inputs: str) -> dict[str, str]:
    """The op in bfloat16 and in float32; `inputs` has ``DTYPE`` where the dtype goes."""
    return {
        f"{name}_{short}": _op(name, arguments, body, inputs.replace("DTYPE", f"dtype=torch.{dtype}"))
        for short, dtype in (("bf16", "bfloat16"), ("fp32", "float32"))
    }


OPS: Mapping[str, str] = {
    **_both(
        "rmsnorm", "x, weight",
        "h = x.float()\n    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight",
        "torch.randn(4096, 8192, DTYPE), torch.randn(8192, DTYPE)",
    ),
    **_both("softmax", "x", "return torch.softmax(x, dim=-1)", "torch.randn(4096, 8192, DTYPE)"),
    **_both(
        "layernorm", "x, weight, bias", "return F.layer_norm(x, (x.shape[-1],), weight, bias)",
        "torch.randn(4096, 8192, DTYPE), torch.randn(8192, DTYPE), torch.randn(8192, DTYPE)",
    ),
    **_both(
        "gelu_mul", "x, y", 'return F.gelu(x, approximate="tanh") * y',
        "torch.randn(4096, 8192, DTYPE), torch.randn(4096, 8192, DTYPE)",
    ),
    **_both(
        "cross_entropy", "logits, target", "return F.cross_entropy(logits, target)",
        "torch.randn(4096, 32000, DTYPE), torch.randint(0, 32000, (4096,))",
    ),
    "cumsum_fp32": _op("cumsum", "x", "return torch.cumsum(x, dim=-1)", "torch.randn(4096, 8192)"),
    "argmax_fp32": _op("argmax", "x", "return torch.argmax(x, dim=1)", "torch.randn(16, 256, 256)"),
    "transpose_add_fp32": _op("transpose_add", "x, y", "return x.t() + y", "torch.randn(8192, 8192), torch.randn(8192, 8192)"),
    "linear_gelu_bf16": _op(
        "linear_gelu", "x, weight, bias", "return F.gelu(F.linear(x, weight, bias))",
        "torch.randn(4096, 4096, dtype=torch.bfloat16), torch.randn(4096, 4096, dtype=torch.bfloat16) / 64, "
        "torch.randn(4096, dtype=torch.bfloat16)",
    ),
    **_both(
        "matmul_bias_relu", "x, weight, bias", "return torch.relu(x @ weight + bias)",
        "torch.randn(4096, 2048, DTYPE), torch.randn(2048, 4096, DTYPE) / 45, torch.randn(4096, DTYPE)",
    ),
    "mean_square_error_fp32": _op(
        "mean_square_error", "x, y", "return F.mse_loss(x, y)", "torch.randn(8192, 8192), torch.randn(8192, 8192)"
    ),
    "rmsnorm_channels_fp32": _op(
        "rmsnorm_channels", "x", "return x / torch.sqrt(x.pow(2).mean(dim=1, keepdim=True) + 1e-5)", "torch.randn(112, 64, 512, 512)"
    ),
    "softmax_long_fp32": _op("softmax_long", "x", "return torch.softmax(x, dim=1)", "torch.rand(4096, 393216)"),
    "layernorm_large_fp32": _op(
        "layernorm_large", "x, weight, bias", "return F.layer_norm(x, (64, 256, 256), weight, bias)",
        "torch.randn(16, 64, 256, 256), torch.randn(64, 256, 256), torch.randn(64, 256, 256)",
    ),
}  # fmt: skip
"""By name; the end of the name is the dtype."""
