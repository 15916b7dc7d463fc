"""The table of ``bench experts``: kinds of kernels side by side, and neither backend comes too late to be judged."""

from __future__ import annotations

from test_cuda_seeds import softmax

from workbench.bench.experts import Row, Table, _best_of, row_of, seeds
from workbench.candidate import Candidate, Evaluation, Timing, Verdict
from workbench.knowledge.inductor import PROPOSER


def row(**best_of):
    return Row("softmax", eager_us=130.0, compile_us=70.0, best_us=37.0, floor_us=31.0, recipe={"expert": "rows"}, best_of=best_of)


def test_kinds_stand_side_by_side():
    head, _, line, other = Table((row(triton=37.0, cuda=39.5, inductor=71.0), row(triton=40.0))).markdown().splitlines()
    cells = dict(zip([cell.strip() for cell in head.split("|")], [cell.strip() for cell in line.split("|")], strict=True))
    assert (cells["Triton µs"], cells["CUDA µs"], cells["Inductor's own µs"], cells["best µs"]) == ("37.0", "39.5", "71.0", "37.0")
    rest = dict(zip([cell.strip() for cell in head.split("|")], [cell.strip() for cell in other.split("|")], strict=True))
    assert rest["CUDA µs"] == "-" and rest["Triton µs"] == "40.0"


def test_one_kind_needs_no_column():
    assert "Triton µs" not in Table((row(triton=37.0),)).markdown()


def test_a_row_survives_its_file():
    import json

    made = row(triton=37.0, cuda=39.5)
    assert row_of(json.loads(Table((made,)).json())[0]).best_of == made.best_of


def evaluation(time_us, mode="quick"):
    return Evaluation("e", "k", "t", Verdict.RIGHT, timing=Timing(time_us, time_us, time_us, time_us, time_us), mode=mode)


def test_the_fastest_of_each_kind_counts_as_it_was_first_judged():
    triton, cuda = Candidate("k1", "triton", "a", "f"), Candidate("k2", "cuda", "b", "f")
    own = Candidate("k0", "triton", "c", "f", proposer=PROPOSER)
    judged = [(own, evaluation(71.0)), (triton, evaluation(40.0)), (cuda, evaluation(39.0)), (triton, evaluation(37.0)),
              (triton, evaluation(30.0, "full"))]  # fmt: skip
    assert _best_of(judged) == {"inductor": 71.0, "triton": 37.0, "cuda": 39.0}


def test_backends_take_turns():
    made = list(seeds(softmax(4096, 8192), ("triton", "cuda")))
    assert [one.backend for one in made[:4]] == ["triton", "cuda", "triton", "cuda"]
    assert [one.id for one in made] == [f"k{number}" for number in range(1, len(made) + 1)]
    assert len({one.source for one in made}) == len(made)
    assert {one.backend for one in seeds(softmax(4096, 8192))} == {"triton"}
