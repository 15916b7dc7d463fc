"""Blocks that stay and walk rows, and the block that is the last to finish: played thread for thread, and compiled for the card."""

from __future__ import annotations

import types

import pytest
import torch
import torch.nn.functional as F
from cuda_on_host import load, run
from expert_lab import trace

from workbench.build.tune import read_tune
from workbench.judge.recording.recorder import record
from workbench.judge.text import labels
from workbench.knowledge import experts
from workbench.knowledge.experts import cuda_ring, cuda_rows
from workbench.target import TARGETS

BF16, HALF = torch.bfloat16, torch.float16


def layernorm(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b)


def rmsnorm(x, w):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def add_rmsnorm(x, y, w):
    h = x + y
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * w, h


def scaled_softmax(x, s, m):
    return torch.softmax(x * s[:, None] + m, -1)


def group_scale(x, s, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w + s[:, None, None]


def cross_entropy(x, t):
    return F.cross_entropy(x, t)


def weighted_loss(x, w, t):
    return F.cross_entropy(x * w, t)


def log_sums(x):
    return torch.logsumexp(x, -1).sum(), torch.logsumexp(x, -1)


def spread(x):
    return x.amax(-1).var()


def tensors(*shapes, dtype=torch.float32):
    torch.manual_seed(0)
    return tuple(torch.randn(shape).to(dtype) for shape in shapes)


def classes(rows, columns):
    torch.manual_seed(1)
    found = torch.randint(0, columns, (rows,))
    found[rows // 2] = -100  # left out of the mean
    return found


# Fewer rows than blocks, as many, more, and no multiple of them; rows that end anywhere.
STAY = {
    "layernorm": (layernorm, tensors((25, 1288), (1288,), (1288,), dtype=BF16)),
    "layernorm, few": (layernorm, tensors((2, 1288), (1288,), (1288,), dtype=BF16)),
    "layernorm, ragged": (layernorm, tensors((13, 1027), (1027,), (1027,))),
    "rmsnorm": (rmsnorm, tensors((7, 1032), (1032,), dtype=HALF)),
    "add_rmsnorm": (add_rmsnorm, tensors((11, 1283), (11, 1283), (1283,))),
    "scaled_softmax": (scaled_softmax, tensors((9, 1193), (9,), (1193,))),
    "group_scale": (group_scale, tensors((5, 3, 1040), (5,), (1040,), dtype=BF16)),
}
LAST = {
    "cross_entropy": (cross_entropy, (*tensors((23, 1259), dtype=BF16), classes(23, 1259))),
    "cross_entropy, two rows": (cross_entropy, (*tensors((2, 1288)), torch.tensor([7, 9]))),
    "cross_entropy, short": (cross_entropy, (*tensors((259, 193)), classes(259, 193))),
    "weighted_loss": (weighted_loss, (*tensors((26, 1032), (1032,), dtype=BF16), classes(26, 1032))),
    "log_sums": (log_sums, tensors((700, 65))),
    "spread": (spread, tensors((19, 1100))),
}
QUICK = ("layernorm", "layernorm, ragged", "cross_entropy", "cross_entropy, short")


def names_of(found):
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in found]


def assert_right(found, op, arguments):
    truth = op(*[argument.double() if argument.is_floating_point() else argument for argument in arguments])
    for got, want, plain in zip(*map(_flat, (found, truth, op(*arguments))), strict=True):
        assert got.dtype == plain.dtype and got.shape == plain.shape
        rounding = {torch.float32: 2.0**-20, HALF: 2.0**-9, BF16: 2.0**-6}[got.dtype]
        torch.testing.assert_close(got.double(), want, rtol=rounding, atol=rounding * max(1.0, want.abs().max().item() / 4))


@pytest.fixture
def any_rows(monkeypatch):
    monkeypatch.setattr(cuda_rows, "ROWS_TO_STAY", 1)


@pytest.mark.parametrize("name", names_of(STAY))
def test_blocks_that_stay_compute_what_pytorch_does(name, any_rows, tmp_path, monkeypatch):
    op, arguments = STAY[name]
    task = trace(op, *arguments, name=op.__name__)
    assert experts.choices("cuda_rows", task)["grid"] == ("stay", "one")
    source = experts.write("cuda_rows", task, {})
    for seed, lanes in ((0, 256), (3, 512)) if name == "layernorm" else ((3, 512),):  # several blocks a multiprocessor, and few
        found, launches = run(source, task.candidate_entry, {"LANES": lanes}, arguments, tmp_path, monkeypatch, seed)
        assert_right(found, op, arguments)
        assert len(launches) == 1


def test_nan_stays_in_its_row(any_rows, tmp_path, monkeypatch):
    x, w, b = tensors((17, 1288), (1288,), (1288,), dtype=BF16)
    x[5, 1287] = float("nan")
    task = trace(layernorm, x, w, b, name="layernorm")
    found, _ = run(experts.write("cuda_rows", task, {}), task.candidate_entry, {"LANES": 512}, (x, w, b), tmp_path, monkeypatch)
    assert found[5].isnan().all() and not found[torch.arange(17) != 5].isnan().any()


@pytest.mark.parametrize("name", names_of(LAST))
def test_the_last_block_makes_the_last_sum_whichever_it_is(name, any_rows, tmp_path, monkeypatch):
    op, arguments = LAST[name]
    task = trace(op, *arguments, name=op.__name__)
    space = experts.choices("cuda_rows", task)
    assert set(space["finish"]) == {"last", "kernel"}
    point = {"ROWS": 2} if space["rows"][0] == "several" else {"LANES": 128}
    for passes in space["passes"]:
        for grid in space.get("grid", ("",)):
            source = experts.write("cuda_rows", task, {"finish": "last", "passes": passes} | ({"grid": grid} if grid else {}))
            found = []
            for seed in (0, 1, 2):  # the blocks' order
                made, launches = load(source, task.candidate_entry, point, tmp_path, monkeypatch, seed)
                found += [_flat(made(*arguments)), _flat(made(*arguments))]  # the counter has been set back
                assert_right(found[-1], op, arguments)
                assert len(launches) == 2
            assert all(torch.equal(got, first) for one in found for got, first in zip(one, found[0], strict=True)), "one order of sums"


def test_the_last_block_sees_nan(tmp_path, monkeypatch):
    x, t = tensors((23, 1288), dtype=BF16)[0], classes(23, 1288)
    x[3, 5] = float("nan")
    task = trace(cross_entropy, x, t, name="cross_entropy")
    found, _ = run(experts.write("cuda_rows", task, {"finish": "last"}), "cross_entropy", {"LANES": 128}, (x, t), tmp_path, monkeypatch, 4)
    assert found.isnan()


@pytest.mark.parametrize("expert", ["cuda_rows", "cuda_ring"])
def test_streams_never_share_a_counter(expert, tmp_path, monkeypatch):
    monkeypatch.setattr(cuda_ring, "LEAST", 0)
    monkeypatch.setattr(cuda_ring, "ROWS_EACH", 0)
    x, t = tensors((9, 1288), dtype=BF16)[0], classes(9, 1288)
    task = trace(cross_entropy, x, t, name="cross_entropy", target="cuda:90")
    source = experts.write(expert, task, {"finish": "last"})
    point = {"LANES": 128} if expert == "cuda_rows" else {"WARPS": 2, "STEPS": 1, "RESIDENT": 2}
    made, launches = load(source, task.candidate_entry, point, tmp_path, monkeypatch)
    kept = made.__globals__["kept_counter"]
    for stream in (11, 12, 11):
        monkeypatch.setattr(torch.cuda, "current_stream", lambda stream=stream: types.SimpleNamespace(cuda_stream=stream))
        assert_right(made(x, t), cross_entropy, (x, t))
    counters = [kept(x.device, stream) for stream in (11, 12)]
    assert kept.cache_info().currsize == 2 and counters[0].data_ptr() != counters[1].data_ptr()
    assert all(counter.dtype == torch.int32 and counter.item() == 0 for counter in counters)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert_right(made(x, t), cross_entropy, (x, t))
    assert kept.cache_info().currsize == 2 and launches == ["cross_entropy_kernel"] * 4


def meta(*shape, dtype=BF16):
    return torch.empty(shape, dtype=dtype, device="meta")


FP32, INT64 = torch.float32, torch.int64
LARGE = {
    "layernorm": (layernorm, (meta(4096, 8192), meta(8192), meta(8192)), {}),
    "layernorm float32": (layernorm, (meta(4096, 8192, dtype=FP32), meta(8192, dtype=FP32), meta(8192, dtype=FP32)), {}),
    "layernorm 16384": (layernorm, (meta(4096, 16384), meta(16384), meta(16384)), {}),
    "layernorm 1600": (layernorm, (meta(16384, 1600), meta(1600), meta(1600)), {}),
    "rmsnorm": (rmsnorm, (meta(4096, 8192), meta(8192)), {"cache": "stream"}),
    "add_rmsnorm": (add_rmsnorm, (meta(4096, 4096), meta(4096, 4096), meta(4096)), {}),
    "cross_entropy": (cross_entropy, (meta(4096, 32000), meta(4096, dtype=INT64)), {"finish": "last"}),
    "cross_entropy, walked": (cross_entropy, (meta(4096, 32000), meta(4096, dtype=INT64)), {"finish": "last", "passes": "loop"}),
    "cross_entropy 1000": (cross_entropy, (meta(4096, 1000, dtype=FP32), meta(4096, dtype=INT64)), {"finish": "last"}),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in ("layernorm", "cross_entropy") else pytest.mark.full) for n in LARGE])
def test_every_point_fits_the_card_without_spilling(name, tmp_path):
    op, arguments, choices = LARGE[name]
    task = trace(op, *arguments, name=op.__name__)
    source = experts.write("cuda_rows", task, choices)
    reading = labels.read(source)
    assert not reading.tampering and "CUDA C++" in reading.labels
    (numbers,) = read_tune(source).items()
    blocks_of = {}
    for value in numbers[1]:
        found = record(source, task.candidate_entry, {numbers[0]: value}, task.inputs, TARGETS["cuda:90"], directory=tmp_path)
        assert found.error is None, found.error
        (launch,) = found.launches
        used = launch.resources
        print(f"{name} {numbers[0]}={value}: {used.registers} registers, {launch.blocks} blocks, grid {used.grid[0]}")
        assert used.spill_bytes == 0 and used.vector_bytes == 16, value
        if numbers[0] == "LANES":
            blocks_of[value] = used.grid[0] // TARGETS["cuda:90"].multiprocessors
            assert launch.blocks >= blocks_of[value], "all blocks that stay have to fit at once"


def test_where_nothing_is_shared_nothing_stays():
    def softmax(x):
        return torch.softmax(x, -1)

    def space(op, *arguments):
        return experts.choices("cuda_rows", trace(op, *arguments, name=op.__name__))

    assert "grid" not in space(softmax, meta(4096, 8192)) and "finish" not in space(softmax, meta(4096, 8192))
    assert "grid" not in space(layernorm, meta(512, 8192), meta(8192), meta(8192))
    assert "grid" not in space(layernorm, meta(4096, 768), meta(768), meta(768)), "a warp a row"
    assert "grid" not in space(layernorm, meta(4096, 32768), meta(32768), meta(32768)), "its registers don't hold the next row"
    assert "finish" not in space(cross_entropy, meta(16384, 1000), meta(16384, dtype=INT64)), "too many rows for one block"


def _flat(value):
    return value if isinstance(value, tuple) else (value,)
