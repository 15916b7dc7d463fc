"""The generator: same seed, same bits; every kind has the values that its name says."""

import pytest
import torch

from workbench.errors import MisuseError
from workbench.inputs import make_input, make_inputs
from workbench.target import TARGETS, get_target
from workbench.task import InputSpec, OutputSpec, Task, Values, Work


def spec(kind, shape=(64, 33), dtype="float32", strides=None, value=None, **args):
    strides = torch.empty(shape).stride() if strides is None else strides
    return InputSpec("x", shape, dtype, tuple(strides), Values(kind, args, value))


def draw(*args, **kwargs):
    return make_input(spec(*args, **kwargs), 7)


def test_same_seed_same_bits_and_each_input_has_a_stream_of_its_own():
    specs = [spec("normal"), spec("uniform")]
    first, again, other = make_inputs(specs, 5), make_inputs(specs, 5), make_inputs(specs, 6)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    assert torch.equal(make_inputs([spec("positive"), specs[1]], 5)[1], first[1])


def test_the_values_are_what_the_kind_says():
    assert abs(draw("normal", shape=(4096,), mean=3.0, std=0.5).mean() - 3) < 0.1
    uniform = draw("uniform", lo=-2.0, hi=5.0)
    assert uniform.min() >= -2 and uniform.max() <= 5
    assert (draw("positive", scale=0.1) > 0).all()
    torch.testing.assert_close(draw("probabilities", dim=1).sum(1), torch.ones(64))
    integers = draw("integers", dtype="int64", lo=3, hi=9)
    assert integers.dtype == torch.int64 and integers.min() >= 3 and integers.max() <= 8
    assert torch.equal(draw("permutation", dtype="int64").sort(-1).values, torch.arange(33).expand(64, 33))
    assert 0.1 < draw("mask", dtype="bool", p=0.25).float().mean() < 0.4
    additive = draw("mask", p=0.5, on=0.0, off=float("-inf"))
    assert set(additive.unique().tolist()) == {0.0, float("-inf")}
    assert torch.equal(draw("one_hot", dim=1).sum(1), torch.ones(64))
    assert torch.equal(draw("triangular", lower=1.0).triu(1), torch.zeros(64, 33))
    assert (draw("scalar", value=2.5) == 2.5).all()
    assert make_input(InputSpec("k", (), "python", (), Values("scalar", value=True)), 0) is True


def test_strides_are_kept_and_an_expanded_dimension_repeats():
    transposed = draw("normal", strides=(1, 64))
    assert transposed.stride() == (1, 64)
    expanded = draw("normal", strides=(0, 1))
    assert expanded.stride() == (0, 1) and torch.equal(expanded[0], expanded[63])
    assert spec("normal", strides=(0, 1)).nbytes == 33 * 4


def test_content_that_no_generator_describes_has_to_be_sent():
    with pytest.raises(ValueError, match="has to be sent"):
        draw("bytes")


def test_a_task_has_one_id_on_every_machine_and_a_model_asks_for_modelnew():
    task = Task("f", "def f(x):\n    return x\n", "f", (spec("normal"),), (OutputSpec((64, 33), "float32"),), Work(100, 10))
    assert len(task.id) == 12 and task.id == Task(**{**vars(task)}).id
    assert task.candidate_entry == "f"
    assert Task("m", "", "Model", (), (), Work(1, 1), format="model").candidate_entry == "ModelNew"


def test_an_unknown_target_names_the_known_ones():
    with pytest.raises(MisuseError, match="cuda:90"):
        get_target("cuda:12")
    assert get_target("hip:gfx942").arch == "gfx942" and TARGETS["cuda:90"].peak("bfloat16") > TARGETS["cuda:90"].peak("float32")
