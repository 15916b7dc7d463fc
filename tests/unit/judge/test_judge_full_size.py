"""Without a GPU, kernels that are right on small shapes and wrong at the real one alone."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import candidate, make_task, spec
from triton_candidates import REFERENCES, RIGHT

from workbench.candidate import Verdict
from workbench.judge.judge import Judge
from workbench.judge.recording.coverage import _chosen, _mark
from workbench.judge.stages.full_size import NOT_SHOWN

TASKS = {
    "softmax": make_task("softmax", REFERENCES["softmax"], [spec("x", (640, 8192))], [((640, 8192), "float32")]),
    "gated": make_task(
        "gated", REFERENCES["gated"], [spec("x", (256, 1024), "bfloat16"), spec("y", (256, 1024), "bfloat16")], [((256, 1024), "bfloat16")],
    ),
    "linear": make_task(
        "linear", REFERENCES["linear"], [spec("x", (384, 256)), spec("w", (256, 192)), spec("b", (192,))], [((384, 192), "float32")],
    ),
}  # fmt: skip
SIZE = "at the task's own shapes"
WRONG = {
    "rows beyond a constant are left out": (
        "softmax", "softmax_kernel[(x.shape[0],)]", "softmax_kernel[(min(x.shape[0], 600),)]",
        "no program of the grid writes element [600, 0]",
    ),
    "columns beyond a constant are left out": ("softmax", "mask = cols < n", "mask = cols < tl.minimum(n, 7000)", SIZE),
    "another result where the row is long": (
        "softmax", "    e = tl.exp(v - tl.max(v, 0))\n", "    e = tl.exp(v - tl.max(v, 0))\n    if n > 4200:\n        e = e * e\n",
        "right on small shapes, wrong at the task's own",
    ),
    "a grid with a constant": ("gated", "triton.cdiv(x.numel(), BLOCK)", "min(triton.cdiv(x.numel(), BLOCK), 200)", SIZE),
}  # fmt: skip


@pytest.fixture(scope="module")
def judges(nursery):
    made = {}

    def judge(name):
        if name not in made:
            made[name] = Judge(TASKS[name], device="cpu", seed=7, nursery=nursery)
        return made[name]

    yield judge
    for other in made.values():
        other.close()


@pytest.mark.parametrize("name", TASKS)
def test_right_kernels_are_shown_to_cover_the_real_shape(judges, name):
    found = judges(name).evaluate(candidate(RIGHT[name], name), {}, id="k1.0")
    assert found.verdict is Verdict.RIGHT, found
    assert NOT_SHOWN not in found.labels, found.labels


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_at_the_real_shape_alone_is_found(judges, case):
    name, before, after, words = WRONG[case]
    assert before in RIGHT[name], RIGHT[name]
    found = judges(name).evaluate(candidate(RIGHT[name].replace(before, after), name), {}, id="k1.0")
    assert found.verdict is Verdict.WRONG and words in found.reason, found
    assert found.witness is not None and found.witness.input_set == "the task's own shapes"


def test_what_a_whole_grid_stores_is_told_from_a_few_programs():
    written = np.zeros(1000, bool)
    tiles = {(x, 0, 0): np.arange(64 * x, min(64 * x + 64, 1000)) for x in (0, 1, 7, 15)}
    assert _mark(written, tiles, (16, 1, 1)) and written.all()
    written[:] = False
    assert _mark(written, tiles, (15, 1, 1)) and int(np.argmin(written)) == 960
    odd = tiles | {(3, 0, 0): np.arange(5, 69)}
    assert not _mark(written, odd, (16, 1, 1))


def test_tiles_of_a_matrix_that_overhang_its_edge():
    rows, columns, tile = 100, 130, 32
    written = np.zeros(rows * columns, bool)

    def stored(x, y):
        r, c = np.arange(32 * x, min(32 * x + tile, rows)), np.arange(32 * y, min(32 * y + tile, columns))
        return (r[:, None] * columns + c[None]).reshape(-1)

    import random

    grid = (4, 5, 1)
    tiles = {place: stored(*place[:2]) for place in _chosen(grid, random.Random(1))}
    assert _mark(written, tiles, grid) and written.all()
    written[:] = False
    assert _mark(written, {place: found for place, found in tiles.items() if place[0] < 3}, (3, 5, 1))
    assert not written[-1]
