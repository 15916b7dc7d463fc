"""Ops of several heavy steps: where they are cut, and what the module says of itself."""

from __future__ import annotations

import itertools

import pytest
import torch
from expert_cases import CASES, attention_wide, conv_norm, conv_pool_sum, depthwise_then_pointwise, layernorm_linear, linear_softmax, make
from expert_lab import trace

from workbench.bench.experts import seeds
from workbench.build.tune import read_tune
from workbench.knowledge import experts
from workbench.knowledge.chain_plan import cut
from workbench.knowledge.lowering import lower

SHAPES = {op: shapes for op, shapes, _ in CASES}


def task_of(op):
    return trace(op, *make(SHAPES[op], torch.float32), name=op.__name__)


@pytest.mark.parametrize(
    ("op", "library", "kinds"),
    [
        (linear_softmax, False, ("heavy", "rows")),
        (layernorm_linear, False, ("rows", "heavy")),
        (attention_wide, False, ("heavy", "rows", "heavy")),
        (depthwise_then_pointwise, False, ("heavy", "heavy")),
        (conv_norm, False, ("heavy", "rows")),
        (conv_norm, True, ("library", "rows")),
        (conv_pool_sum, False, ("heavy", "heavy", "rows")),
    ],
)
def test_it_is_cut_where_a_step_needs_anothers_whole_result(op, library, kinds):
    links = cut(lower(task_of(op)), library)
    assert tuple(link.kind for link in links) == kinds
    for earlier, later in itertools.pairwise(links):
        assert set(earlier.results) & {access.input for access in later.program.accesses}


def test_the_librarys_convolution_is_called_what_it_is():
    task = task_of(conv_norm)
    own, library = (experts.write("chain", task, {"convolution": name}) for name in ("own", "library"))
    assert "torch.nn.functional.conv2d(" in library and "The convolution itself is PyTorch's own" in library
    assert "torch.nn.functional" not in own and "PyTorch's own" not in own
    assert library.count("_kernel[(") == 1 and own.count("_kernel[(") == 2


def test_each_stage_has_tunable_numbers_of_its_own():
    tune = read_tune(experts.write("chain", task_of(linear_softmax), {}))
    assert {"TILE_1", "NUM_WARPS_1", "NUM_WARPS_2"} <= set(tune)


def test_one_step_is_no_chain():
    task = trace(torch_matmul, torch.randn(20, 30), torch.randn(30, 20), name="torch_matmul")
    assert [match.expert for match in experts.match(task)] == ["matmul"]


def torch_matmul(a, b):
    return torch.relu(a @ b)


def test_a_short_look_sees_every_choice_before_combinations():
    task = trace(torch_matmul, torch.randn(256, 256), torch.randn(256, 256), name="torch_matmul")
    first, *others = [candidate.recipe for candidate in itertools.islice(seeds(task), 6)]
    assert first["precision"] == "bf16x6"
    assert [other["precision"] for other in others[:3]].count("bf16x6") <= 1
    assert all(sum(other[name] != first[name] for name in first) == 1 for other in others[:4])
