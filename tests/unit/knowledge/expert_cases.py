"""Ops for the expert tests: what they compute, at odd shapes, and which expert should take them."""

from __future__ import annotations

import torch
import torch.nn.functional as F

BF16 = torch.bfloat16


def softmax(x):
    return torch.softmax(x, -1)


def log_softmax(x):
    return F.log_softmax(x * 2 + 1, -1)


def rmsnorm(x, w):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def fused_rmsnorm(x, w):
    return F.rms_norm(x, (x.shape[-1],), w, eps=1e-5)


def layernorm(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, b)


def layernorm_many_dims(x):
    return F.layer_norm(x, x.shape[1:])


def normalize(x):
    return F.normalize(x, dim=-1)


def three_results(x):
    return x - x.amax(-1, keepdim=True), x.var(-1, keepdim=True), x / x.abs().sum(-1, keepdim=True)


def group_norm(x, w, b):
    return F.group_norm(x, 2, w, b)


def instance_norm(x):
    return F.instance_norm(x)


def batch_norm(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True)


def softmax_channels(x):
    return torch.softmax(x, 1)


def rmsnorm_channels(x):
    return x / torch.sqrt(x.pow(2).mean(1, keepdim=True) + 1e-5)


def sums_outer(x):
    return x.sum(0), (x * x).mean(0), x.amax(0)


def sums_inner(x):
    return x.exp().sum(-1), x.min(-1)[0], x.prod(-1), x.norm(dim=-1), x.std(-1)


def argmax_middle(x):
    return x.argmax(1)


def max_with_index(x):
    return x.max(1)


def truth(x):
    return (x > 2).any(-1), (x > -3).all(-1)


def frobenius(x):
    return x / x.norm()


def logsumexp(x):
    return torch.logsumexp(x, -1)


def cosine_loss(x, y):
    return (1 - F.cosine_similarity(x, y)).mean()


def kl_loss(x, y):
    return F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction="sum")


def mse(x, y):
    return F.mse_loss(x, y)


def cross_entropy(x, target):
    return F.cross_entropy(x, target)


def cross_entropy_each(x, target):
    return F.cross_entropy(x, target, reduction="none")


def gelu_mul(x, y):
    return F.gelu(x, approximate="tanh") * y


def activations(x):
    soft = F.mish(x) + F.softplus(x) + torch.tanh(x) + F.logsigmoid(x) + F.elu(x) + F.gelu(x)
    return soft + F.hardswish(x) + F.leaky_relu(x) + torch.sigmoid(x) + x**3 + F.hardtanh(x) + F.silu(x) + torch.expm1(x)


def small_arguments(x):
    return torch.tanh(x * 1e-3), torch.expm1(x * 1e-3), torch.log1p(x.abs() * 1e-3)


def broadcast(x, b):
    return F.elu(x + b[:, None]), torch.where(x > 0, 1.0, 0.5)


def mixed_types(x, b):
    return torch.where(x > b, x.float(), b), (x > 0).to(torch.int32), x * 2 > b


def own_transpose(x):
    return x + x.t()


def transpose_add(x, y):
    return x.t() + y


def permuted(x, y):
    return x.permute(2, 0, 1) + y


def channel_scale(x, b, c):
    return torch.relu(x * b[None, :, None, None] + c[:, None, None, None])


def cumsum(x):
    return torch.cumsum(x, -1)


def matmul(a, b):
    return a @ b


def linear_gelu(x, w, b):
    return F.gelu(F.linear(x, w, b))


def matmul_residual(x, w, b, r):
    return torch.relu(x @ w + b) * 0.5 + r


def batched(a, b):
    return a @ b.transpose(-1, -2)


def left_transposed(a, b):
    return a.t() @ b


def einsum(a, b):
    return torch.einsum("bijl,lk->bijk", a, b)


def matrix_vector(a, b):
    return a @ b


def max_pool_1d(x):
    return F.max_pool1d(x, 4, 2, padding=1, dilation=2)


def max_pool_2d(x):
    return F.max_pool2d(x, 3, stride=2, padding=1)


def max_pool_3d(x):
    return torch.tanh(F.max_pool3d(x, 2, stride=(1, 2, 1), padding=1))


def avg_pool_1d(x):
    return F.avg_pool1d(x, 4, stride=1, padding=2)


def avg_pool_2d(x):
    return F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False)


def avg_pool_3d(x):
    wide = x if x.dtype == torch.float64 else x.float()  # the CPU has no bfloat16 form of it
    return F.avg_pool3d(wide, 3, stride=2, padding=1)


def max_pool_overlapping(x, b):
    return F.max_pool2d(x, 4, stride=1, padding=1) * b


def avg_pool_overlapping(x):
    return F.avg_pool2d(x, (5, 2), stride=(2, 1), padding=(2, 0), count_include_pad=False)


def avg_pool_apart(x):
    return F.avg_pool2d(x, (2, 5)) * 2


def avg_pool_apart_3d(x):
    wide = x if x.dtype == torch.float64 else x.float()
    return F.avg_pool3d(wide, (2, 1, 6), stride=(1, 1, 5), padding=(1, 0, 2), count_include_pad=False)


def max_pool_3d_dilated(x):
    return F.max_pool3d(x, 3, stride=(2, 2, 1), padding=1, dilation=(1, 2, 1))


def depthwise_1d(x, w):
    return F.conv1d(x, w, None, stride=1, padding=1, groups=4)


def depthwise_2d(x, w, b):
    return torch.relu(F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=4))


def depthwise_residual(x, w):
    return F.conv2d(x, w, None, padding=1, groups=4) + x


def depthwise_3d(x, w):
    return F.conv3d(x, w, None, stride=2, groups=3)


def conv_one_by_one(x, w, b):
    return torch.relu(F.conv2d(x, w, b))


def upper_of_product(a, b):
    return torch.triu(a @ b)


def lower_of_product(a, b):
    return torch.tril(torch.matmul(a, b), diagonal=-2)


def cumsum_from_end(x):
    return torch.cumsum(x.flip(1), dim=1).flip(1)


def cumprod_from_end(x):
    return torch.cumprod((x / 8 + 1).flip(-1), dim=-1).flip(-1)


def cumsum_exclusive(x):
    sums = torch.cumsum(x.narrow(dim=1, start=0, length=x.size(1) - 1), dim=1)
    return torch.cat((torch.zeros_like(x.select(1, 0).unsqueeze(1)), sums), dim=1)


def cumprod_exclusive_masked(x, y):
    products = torch.cumprod((x * (y > 0) + 1)[..., :-1], -1)
    return torch.cat((torch.ones_like(products[..., :1]), products), -1) * y


def conv_1d(x, w, b):
    return F.conv1d(x, w, b, stride=3, padding=2, dilation=2)


def conv_2d(x, w, b, r):
    return torch.relu(F.conv2d(x, w, b, padding=(0, 1)) * r) - 1


def conv_2d_groups(x, w):
    return F.conv2d(x, w, stride=(2, 1), padding=1, groups=2)


def conv_3d(x, w):
    return F.conv3d(x, w, stride=(1, 2, 1), padding=(1, 0, 1))


def conv_transposed_1d(x, w, b):
    return F.conv_transpose1d(x, w, b, dilation=3)


def conv_transposed_2d(x, w, b):
    return F.gelu(F.conv_transpose2d(x, w, b, stride=(2, 3), padding=(1, 2), output_padding=(1, 0), groups=2, dilation=(2, 1)))


def conv_transposed_stride_1d(x, w, b):
    return F.conv_transpose1d(x, w, b, stride=3, padding=1, dilation=2, output_padding=1)


def conv_transposed_stride_3d(x, w, y):
    return F.conv_transpose3d(x, w, stride=(2, 1, 2), padding=(0, 1, 1), groups=2) * y


def conv_transposed_3d(x, w):
    return F.conv_transpose3d(x, w, padding=(0, 1, 0))


def batch_broadcast(a, b, c):
    return torch.matmul(a, b) + c


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def attention_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True) * 2


def attention_biased(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.3)


def attention_by_hand(q, k, v, m):
    score = torch.tanh((q @ k.transpose(-1, -2)) / 4) * 8
    weight = torch.softmax(score.masked_fill(m[:, None, None] < -1, -float("inf")), -1)
    return weight @ v


def attention_shared_keys(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def depthwise_then_pointwise(x, w, v):
    return F.conv2d(F.conv2d(x, w, padding=1, groups=4), v)


def linear_softmax(x, w, b):
    return torch.softmax(F.gelu(F.linear(x, w, b)), -1)


def layernorm_linear(x, w, b, v):
    return torch.relu(F.linear(F.layer_norm(x, (x.shape[-1],), w, b), v))


def conv_norm(x, w, b):
    y = torch.tanh(F.conv2d(x, w, b))
    return F.instance_norm(y) + y.mean((2, 3), keepdim=True)


def group_norm_mean(x, w, b):
    return F.group_norm(x, 2, w, b).mean((1, 2, 3))


def norm_then_mean(x):
    y = F.instance_norm(x)
    return y - (y * y).amax(1, keepdim=True)


def conv_pool_sum(x, w):
    return F.max_pool2d(F.conv_transpose2d(x, w, stride=2), 2).sum((1, 2, 3))


def attention_wide(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def conv_transposed_groups(x, w):
    return F.conv_transpose2d(x, w, stride=(2, 1), padding=(0, 1), groups=2)


CASES = (
    (softmax, [(5, 130)], "rows"),
    (log_softmax, [(3, 4, 70)], "rows"),
    (rmsnorm, [(5, 130), (130,)], "rows"),
    (fused_rmsnorm, [(5, 130), (130,)], "rows"),
    (layernorm, [(5, 130), (130,), (130,)], "rows"),
    (layernorm_many_dims, [(3, 4, 5, 6)], "rows"),
    (normalize, [(6, 33)], "rows"),
    (three_results, [(7, 300)], "rows"),
    (group_norm, [(3, 6, 5, 7), (6,), (6,)], "rows"),
    (instance_norm, [(2, 3, 5, 7)], "rows"),
    (batch_norm, [(4, 3, 5, 7), (3,), (3,)], "rows"),
    (softmax_channels, [(2, 19, 33)], "columns"),
    (rmsnorm_channels, [(2, 19, 5, 7)], "columns"),
    (sums_outer, [(50, 33)], "reduction"),
    (sums_inner, [(7, 130)], "reduction"),
    (argmax_middle, [(5, 19, 8)], "reduction"),
    (max_with_index, [(4, 11, 6)], "reduction"),
    (truth, [(5, 77)], "reduction"),
    (frobenius, [(20, 33)], "rows"),
    (logsumexp, [(5, 3, 77)], "reduction"),
    (cosine_loss, [(6, 90), (6, 90)], "reduction"),
    (kl_loss, [(6, 70), (6, 70)], "reduction"),
    (mse, [(9, 40), (9, 40)], "reduction"),
    (cross_entropy, [(9, 130), "classes"], "cross_entropy"),
    (cross_entropy_each, [(9, 130), "classes"], "cross_entropy"),
    (gelu_mul, [(5, 130), (5, 130)], "pointwise"),
    (activations, [(9, 100)], "pointwise"),
    (small_arguments, [(9, 100)], "pointwise"),
    (broadcast, [(3, 5, 40), (5,)], "pointwise"),
    (mixed_types, [(9, 10), (9, 10)], "pointwise"),
    (own_transpose, [(33, 33)], "tile"),
    (transpose_add, [(33, 70), (70, 33)], "tile"),
    (permuted, [(4, 9, 11), (11, 4, 9)], "tile"),
    (channel_scale, [(3, 5, 4, 7), (5,), (3,)], "pointwise"),
    (cumsum, [(5, 70)], "rows"),
    (matmul, [(33, 40), (40, 50)], "matmul"),
    (linear_gelu, [(2, 20, 40), (50, 40), (50,)], "matmul"),
    (matmul_residual, [(20, 30), (30, 40), (40,), (20, 40)], "matmul"),
    (batched, [(2, 3, 20, 30), (2, 3, 17, 30)], "matmul"),
    (left_transposed, [(600, 20), (600, 30)], "matmul"),
    (einsum, [(2, 3, 4, 30), (30, 20)], "matmul"),
    (matrix_vector, [(30, 200), (200,)], "reduction"),
    (max_pool_1d, [(3, 5, 37)], "window"),
    (max_pool_2d, [(2, 3, 17, 35)], "window"),
    (max_pool_3d, [(2, 2, 5, 9, 12)], "window"),
    (max_pool_overlapping, [(2, 3, 17, 35), (34,)], "window"),
    (avg_pool_overlapping, [(2, 3, 18, 35)], "window"),
    (avg_pool_apart, [(2, 2, 5, 43)], "window"),
    (avg_pool_apart_3d, [(1, 2, 3, 2, 43)], "window"),
    (max_pool_3d_dilated, [(1, 2, 4, 15, 12)], "window"),
    (avg_pool_1d, [(3, 5, 37)], "window"),
    (avg_pool_2d, [(2, 3, 18, 35)], "window"),
    (avg_pool_3d, [(2, 2, 6, 9, 12)], "window"),
    (depthwise_1d, [(3, 4, 37), (4, 1, 3)], "window"),
    (depthwise_2d, [(2, 4, 17, 35), (4, 1, 3, 2), (4,)], "window"),
    (depthwise_residual, [(2, 4, 9, 19), (4, 1, 3, 3)], "window"),
    (depthwise_3d, [(2, 3, 7, 8, 19), (3, 1, 3, 3, 2)], "window"),
    (conv_one_by_one, [(2, 20, 7, 9), (18, 20, 1, 1), (18,)], "matmul"),
    (upper_of_product, [(40, 24), (24, 40)], "matmul"),
    (lower_of_product, [(40, 24), (24, 36)], "matmul"),
    (cumsum_from_end, [(5, 300)], "rows"),
    (cumprod_from_end, [(3, 4, 300)], "rows"),
    (conv_1d, [(2, 5, 61), (7, 5, 3), (7,)], "convolution"),
    (conv_2d, [(2, 6, 9, 14), (20, 6, 3, 2), (20,), (20, 1, 1)], "convolution"),
    (conv_2d_groups, [(2, 6, 9, 14), (8, 3, 3, 3)], "convolution"),
    (conv_3d, [(2, 3, 6, 7, 5), (18, 3, 3, 2, 3)], "convolution"),
    (conv_transposed_1d, [(2, 5, 30), (5, 7, 3), (7,)], "convolution"),
    (conv_transposed_2d, [(2, 6, 7, 5), (6, 9, 3, 4), (18,)], "convolution"),
    (conv_transposed_groups, [(2, 6, 7, 5), (6, 9, 3, 4)], "convolution"),
    (conv_transposed_stride_1d, [(2, 5, 30), (5, 7, 4), (7,)], "convolution"),
    (conv_transposed_stride_3d, [(1, 4, 3, 4, 5), (4, 9, 2, 2, 3), (18, 1, 1, 9)], "convolution"),
    (conv_transposed_3d, [(2, 4, 5, 6, 7), (4, 18, 3, 2, 3)], "convolution"),
    (batch_broadcast, [(2, 3, 20, 30), (2, 3, 30, 17), (3, 1, 17)], "matmul"),
    (attention, [(2, 3, 37, 24), (2, 3, 45, 24), (2, 3, 45, 20)], "attention"),
    (attention_causal, [(2, 3, 40, 16), (2, 3, 40, 16), (2, 3, 40, 16)], "attention"),
    (attention_biased, [(2, 3, 20, 16), (2, 3, 33, 16), (2, 3, 33, 16), (3, 20, 33)], "attention"),
    (attention_by_hand, [(2, 3, 20, 16), (2, 3, 33, 16), (2, 3, 33, 16), (2, 33)], "attention"),
    (attention_shared_keys, [(2, 6, 20, 16), (2, 2, 20, 16), (2, 2, 20, 16)], "attention"),
    (depthwise_then_pointwise, [(2, 4, 9, 11), (4, 1, 3, 3), (5, 4, 1, 1)], "chain"),
    (linear_softmax, [(20, 30), (40, 30), (40,)], "chain"),
    (layernorm_linear, [(20, 40), (40,), (40,), (18, 40)], "chain"),
    (conv_norm, [(2, 3, 9, 14), (5, 3, 3, 3), (5,)], "chain"),
    (group_norm_mean, [(3, 6, 5, 7), (6,), (6,)], "reduction"),
    (norm_then_mean, [(2, 3, 9, 7)], "chain"),
    (conv_pool_sum, [(2, 3, 9, 8), (3, 5, 3, 3)], "chain"),
    (attention_wide, [(2, 3, 20, 300), (2, 3, 20, 300), (2, 3, 20, 300)], "chain"),
    (cumsum_exclusive, [(5, 130)], "rows"),
    (cumprod_exclusive_masked, [(3, 4, 19), (3, 4, 19)], "rows"),
)
"""(op, shapes, the expert that should be first)."""


def make(shapes, dtype, seed=0):
    """Inputs of a case; ``"classes"`` are targets of the rows before, one of them to be ignored."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for shape in shapes:
        if shape == "classes":
            rows, classes = made[0].shape
            target = torch.randint(0, classes, (rows,), generator=generator)
            target[rows // 2] = -100
            made.append(target)
        else:
            made.append(torch.randn(shape, generator=generator).to(dtype))
    return made
