"""What the experts write is right: run in Triton's interpreter against float64, by the judge's own rule."""

from __future__ import annotations

import pytest
import torch
from expert_cases import BF16, CASES, make
from expert_lab import run_interpreted, trace

from workbench.build.tune import defaults
from workbench.knowledge import experts

SMALL = {"BLOCK": 64, "SPLIT": 4, "TILE": (16, 16, 16), "ROWS": 4, "COLS": 32, "BLOCKS": (16, 16)}
"""Sizes that give several programs and a partial tile at these shapes."""


NUMERIC = ("passes", "rows", "grid", "online", "statistics", "split", "edges", "precision", "convolution", "tile")
"""Choices that change what is computed, or where; the others change caching and order alone."""

OTHER_SHAPES = {
    "layernorm": [(3, 77), (77,), (77,)], "rmsnorm_channels": [(3, 11, 2, 9)], "cross_entropy": [(4, 33), "classes"],
    "linear_gelu": [(3, 5, 24), (18, 24), (18,)], "mse": [(3, 7), (3, 7)], "transpose_add": [(9, 20), (20, 9)],
}  # fmt: skip


def variants(task):
    """The default of each fitting expert, and each choice that matters changed alone."""
    for match in experts.match(task):
        space = experts.choices(match.expert, task)
        default = {name: values[0] for name, values in space.items()}
        changed = [{**default, name: value} for name in NUMERIC for value in space.get(name, ())[1:]]
        sources = {}
        for recipe in (default, *changed):
            try:
                sources.setdefault(experts.write(match.expert, task, recipe), recipe)
            except experts.UnsupportedError:
                continue
        yield from ((match.expert, recipe, source) for source, recipe in sources.items())


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Every variant of every case, and all other calls of these tests, run in one process. By (name, dtype), and by (name, "other")."""
    jobs, known = [], []

    def add(key, expert, recipe, source, entry, inputs, parameters=None):
        jobs.append({"source": source, "entry": entry, "inputs": inputs, "parameters": parameters or {}})
        known.append((key, (expert, recipe, inputs)))

    for op, shapes, _ in CASES:
        for dtype in (torch.float32, BF16):
            inputs = make(shapes, dtype)
            task = trace(op, *inputs, name=op.__name__)
            for expert, recipe, source in list(variants(task))[: None if dtype == torch.float32 else 1]:
                parameters = {name: SMALL.get(name, value) for name, value in defaults(source).items()}
                add((op.__name__, dtype), expert, recipe, source, op.__name__, inputs, parameters)
        task = trace(op, *make(shapes, torch.float32), name=op.__name__)
        plain = (experts.match(task)[0].expert, {}, experts.write(experts.match(task)[0].expert, task, {}), op.__name__)
        if op.__name__ in OTHER_SHAPES:
            add((op.__name__, "other"), *plain, make(OTHER_SHAPES[op.__name__], torch.float32, seed=1))
        if op.__name__ == "softmax":
            add(("softmax", "rank"), *plain, [torch.randn(2, 3, 4)])
        if op.__name__ == "layernorm":
            add(("layernorm", "size"), *plain, [torch.randn(5, 130), torch.randn(7), torch.randn(130)])
    outputs = run_interpreted(jobs, tmp_path_factory.mktemp("interpreted"))
    found = {}
    for (key, run), output in zip(known, outputs, strict=True):
        found.setdefault(key, []).append((*run, output))
    return found


@pytest.mark.parametrize("dtype", [torch.float32, BF16], ids=["fp32", "bf16"])
@pytest.mark.parametrize(("op", "shapes", "expert"), CASES, ids=[case[0].__name__ for case in CASES])
def test_every_variant_is_within_the_error_of_the_reference(results, op, shapes, expert, dtype):
    runs = results[op.__name__, dtype]
    assert runs[0][0] == expert
    for name, recipe, inputs, output in runs:
        assert not isinstance(output, str), f"{name} {recipe}: {output}"
        exact = flat(op(*[x.double() if x.is_floating_point() else x for x in inputs]))
        eager = flat(op(*inputs))
        assert len(output) == len(eager)
        for got, reference, truth in zip(output, eager, exact, strict=True):
            assert got.shape == reference.shape and got.dtype == reference.dtype and got.stride() == reference.stride()
            if reference.is_floating_point():
                assert error_ratio(got, reference, truth) <= 1, f"{name} {recipe}"
            else:
                assert torch.equal(got, reference), f"{name} {recipe}"


@pytest.mark.parametrize("name", OTHER_SHAPES)
def test_a_variant_takes_other_shapes_than_the_captured_ones(results, name):
    """Sizes are read from the tensors, and means divide by the size at hand."""
    op = next(case[0] for case in CASES if case[0].__name__ == name)
    ((_, _, inputs, output),) = results[name, "other"]
    assert not isinstance(output, str), output
    torch.testing.assert_close(output[0], flat(op(*inputs))[0], rtol=1e-5, atol=1e-5)


def test_what_does_not_fit_is_refused_with_a_reason(results):
    assert results["softmax", "rank"][0][-1].startswith("ValueError: too many values to unpack")
    assert results["layernorm", "size"][0][-1].startswith("ValueError: layernorm: w must have shape (N,)")


def flat(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def error_ratio(got, reference, truth):
    """The judge's rule for every element: 4 times the reference's own worst error, and 8 units of round-off."""
    unit = torch.finfo(reference.dtype).eps / 2
    size = truth.double().pow(2).mean().sqrt()
    bound = 4 * (reference.double() - truth).abs().max() + 8 * unit * torch.maximum(truth.double().abs(), size)
    return float(((got.double() - truth).abs() / bound).max())
