"""The CUDA C++ experts: every op has one beside its Triton expert, it compiles for both cards, and it computes what PyTorch does."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from cuda_on_host import run
from expert_lab import trace

from workbench.build.cuda import build_candidate
from workbench.judge.recording.recorder import record
from workbench.judge.text import labels
from workbench.knowledge import experts
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.experts import cuda_rows
from workbench.target import TARGETS

BF16, HALF = torch.bfloat16, torch.float16


def softmax(x):
    return torch.softmax(x, -1)


def log_softmax(x):
    return F.log_softmax(x * 2 + 1, -1)


def rmsnorm(x, w):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def layernorm(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, b)


def normalize(x):
    return F.normalize(x, dim=-1)


def gelu_mul(x, y):
    return F.gelu(x, approximate="tanh") * y


def bias_relu(x, b):
    return torch.relu(x + b)


def add_scalar(x, y):
    return (x + y * 0.5).clamp(-1.0, 1.0), torch.sigmoid(x) * torch.tanh(y)


def per_channel(x, s):
    return x * s[:, None, None] + 1.0


def transposed_add(x, y):
    return x + y.t() * 2


def heads(x, b):
    return torch.relu(x.transpose(1, 2) + b).contiguous()


def cumsum(x):
    return x.cumsum(-1)


def scaled_cumsum(x, s):
    return (x * 2).cumsum(-1) * s


def logsumexp(x):
    return torch.logsumexp(x, -1)


def row_sum(x):
    return x.sum(-1)


def row_mean(x):
    return x.mean(-1, keepdim=True)


def row_extremes(x):
    return x.amax(-1), x.amin(-1)


def row_var(x):
    return x.var(-1)


def cross_entropy(x, t):
    return F.cross_entropy(x, t)


def masked_softmax(x, m):
    return torch.softmax(x.masked_fill(m, float("-inf")), -1)


def many_results(x):
    return x - x.amax(-1, keepdim=True), x.var(-1, keepdim=True), x / x.abs().sum(-1, keepdim=True)


def tensors(*shapes, dtype=torch.float32):
    torch.manual_seed(0)
    return tuple(torch.randn(shape).to(dtype) for shape in shapes)


def targets(rows, classes):
    return torch.randint(0, classes, (rows,))


# op, arguments at which numbers are compared, shapes at which it is compiled
OPS = {
    "softmax": (softmax, tensors((3, 2056), dtype=BF16), tensors((4096, 8192), dtype=BF16)),
    "log_softmax": (log_softmax, tensors((3, 77)), tensors((4096, 1000))),
    "rmsnorm": (rmsnorm, tensors((3, 520), (520,), dtype=BF16), tensors((512, 8192), (8192,), dtype=BF16)),
    "layernorm": (layernorm, tensors((4, 2, 264), (264,), (264,), dtype=HALF), tensors((64, 8, 4096), (4096,), (4096,), dtype=HALF)),
    "normalize": (normalize, tensors((5, 300)), tensors((512, 300))),
    "gelu_mul": (gelu_mul, tensors((7, 129), (7, 129), dtype=BF16), tensors((512, 8192), (512, 8192), dtype=BF16)),
    "bias_relu": (bias_relu, tensors((7, 136), (136,), dtype=BF16), tensors((512, 4096), (4096,), dtype=BF16)),
    "add_scalar": (add_scalar, tensors((3, 50), (3, 50)), tensors((512, 4096), (512, 4096))),
    "per_channel": (per_channel, tensors((2, 3, 5, 8), (3,)), tensors((8, 64, 56, 56), (64,))),
    "transposed_add": (transposed_add, tensors((70, 33), (33, 70)), tensors((2048, 1024), (1024, 2048))),
    "heads": (heads, tensors((2, 5, 40, 24), (24,), dtype=BF16), tensors((8, 512, 16, 64), (64,), dtype=BF16)),
    "cumsum": (cumsum, tensors((2, 2100)), tensors((512, 8192))),
    "scaled_cumsum": (scaled_cumsum, tensors((3, 260), (260,)), tensors((512, 4096), (4096,))),
    "logsumexp": (logsumexp, tensors((5, 1000), dtype=BF16), tensors((512, 8192), dtype=BF16)),
    "row_sum": (row_sum, tensors((3, 4, 130)), tensors((64, 64, 512))),
    "row_mean": (row_mean, tensors((5, 2056), dtype=BF16), tensors((512, 8192), dtype=BF16)),
    "row_extremes": (row_extremes, tensors((5, 333)), tensors((512, 4096))),
    "row_var": (row_var, tensors((5, 640)), tensors((512, 4096))),
    "cross_entropy": (
        cross_entropy, (*tensors((6, 1000), dtype=BF16), targets(6, 1000)), (*tensors((512, 32000), dtype=BF16), targets(512, 32000)),
    ),
    "masked_softmax": (masked_softmax, (*tensors((4, 200)), torch.arange(800).view(4, 200) % 3 == 0), (
        *tensors((512, 2048)), torch.arange(512 * 2048).view(512, 2048) % 3 == 0)),
    "many_results": (many_results, tensors((4, 300), dtype=BF16), tensors((512, 300), dtype=BF16)),
}  # fmt: skip
SAMPLE = ("softmax", "gelu_mul", "cross_entropy", "cumsum")


def cases(sample=SAMPLE):
    for name in OPS:
        yield pytest.param(name, marks=() if name in sample else pytest.mark.full, id=name)


def task_of(name, arguments, target="cuda:90"):
    return trace(OPS[name][0], *arguments, name=name, target=target)


def cuda_expert(task):
    return experts.match(task, ("cuda",))[0].expert


def structures(expert, task):
    """The default choices, and each other value of one choice."""
    space = experts.choices(expert, task)
    default = {choice: values[0] for choice, values in space.items()}
    yield default
    for choice, values in space.items():
        for value in values[1:]:
            yield {**default, choice: value}


def small(source):
    """Numbers for which a block is few threads, so that the CPU can play them all."""
    return {
        name: value
        for name, value in (("LANES", 64), ("BLOCK", 64), ("UNROLL", 2), ("ROWS", 2), ("TILE", 32), ("THREADS", 64))
        if f'"{name}": [' in source
    }


@pytest.mark.parametrize("name", cases(("softmax", "transposed_add")))  # g++ takes seconds for each
def test_it_computes_what_pytorch_does(name, tmp_path, monkeypatch):
    op, arguments, _ = OPS[name]
    task = task_of(name, arguments)
    expert = cuda_expert(task)
    truth = op(*[arg.double() if arg.dtype.is_floating_point else arg for arg in arguments])
    usual = op(*arguments)
    checked = set()
    for choices in structures(expert, task):
        if choices.get("cache") == "stream" and checked:
            continue  # the host has no cache hints
        source = experts.write(expert, task, choices)
        found, launches = run(source, task.candidate_entry, small(source), arguments, tmp_path, monkeypatch)
        checked.add(tuple(choices.values()))
        assert launches
        for got, want, plain in zip(*map(_flat, (found, truth, usual)), strict=True):
            assert got.dtype == plain.dtype and got.shape == plain.shape
            rounding = {torch.float32: 2.0**-20, HALF: 2.0**-9, BF16: 2.0**-6}[got.dtype]
            torch.testing.assert_close(got.double(), want, rtol=rounding, atol=rounding * max(1.0, want.abs().max().item() / 4))


@pytest.mark.full
def test_a_long_row_computes_again_what_a_short_one_keeps(tmp_path, monkeypatch):
    op, arguments, _ = OPS["softmax"]
    task = task_of("softmax", arguments)
    kept = experts.write("cuda_rows", task, {})
    monkeypatch.setattr(cuda_rows, "MOST_KEPT", 0)
    source = experts.write("cuda_rows", task, {})
    assert "kept[k][e]" in kept and "kept[k][e]" not in source and "again(xs[k]);" in source
    found, _ = run(source, task.candidate_entry, {"LANES": 64}, arguments, tmp_path, monkeypatch)
    torch.testing.assert_close(found.double(), op(arguments[0].double()), rtol=2.0**-6, atol=2.0**-6)


@pytest.mark.parametrize("rows, columns", [(4096, 32768), (4096, 32000)])
def test_two_blocks_of_a_long_row_fit_a_multiprocessor(rows, columns, tmp_path):
    x = torch.empty(rows, columns, dtype=BF16, device="meta")
    task = trace(softmax, x, name="softmax")
    found = record(experts.write("cuda_rows", task, {}), "softmax", {}, task.inputs, TARGETS["cuda:90"], directory=tmp_path)
    (launch,) = found.launches
    assert launch.resources.spill_bytes == 0 and launch.resources.warps == 16 and launch.resources.occupancy >= 0.5


@pytest.mark.parametrize("name", cases())
def test_it_compiles_for_both_cards_beside_a_triton_expert(name, tmp_path):
    _, _, arguments = OPS[name]
    for target in ("cuda:90", "cuda:80"):
        task = task_of(name, arguments, target)
        assert experts.match(task), "a Triton expert takes it too"
        expert = cuda_expert(task)
        for choices in structures(expert, task):
            source = experts.write(expert, task, choices)
            found = record(source, task.candidate_entry, {}, task.inputs, TARGETS[target], directory=tmp_path)
            assert found.error is None, f"{choices}: {found.error}"
            assert all(launch.resources.spill_bytes == 0 for launch in found.launches), choices
            assert found.launches[0].resources.vector_bytes >= 8 or expert == "cuda_tile"
            reading = labels.read(source)
            assert not reading.tampering and "CUDA C++" in reading.labels


@pytest.mark.parametrize("name", SAMPLE)
def test_its_source_compiles_by_itself(name):
    """Each macro has a value for the captured shape, so that the text can be read and built without its launcher."""
    task = task_of(name, OPS[name][2])
    source = experts.write(cuda_expert(task), task, {})
    built = build_candidate(source, TARGETS["cuda:90"])
    assert all(kernel.registers > 0 for kernel in built.kernels)


def test_triton_runs_are_not_given_what_can_not_be_judged():
    task = task_of("softmax", OPS["softmax"][2])
    assert not any(fit.expert.startswith("cuda") for fit in experts.match(task))
    both = [fit.expert for fit in experts.match(task, ("triton", "cuda"))]
    assert both == ["rows", "cuda_rows", "cuda_ring"]


def test_what_it_is_not_made_for_is_refused():
    def columns(x):
        return torch.softmax(x, 0)

    def best(x):
        return x.argmax(-1)

    for op, argument in ((columns, torch.randn(64, 64)), (best, torch.randn(64, 64))):
        task = trace(op, argument)
        assert experts.match(task, ("cuda",)) == () and experts.match(task)
        with pytest.raises(UnsupportedError):
            experts.write("cuda_rows", task, {})


def _flat(value):
    return value if isinstance(value, tuple) else (value,)
