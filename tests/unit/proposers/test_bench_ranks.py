"""``bench ranks``: measured variants modelled again, and how well the two orders agree."""

from __future__ import annotations

import json

import pytest

from workbench.bench import experts, ranks
from workbench.bench.ranks import Pair, Ranks
from workbench.errors import MisuseError

OP = "import torch\n\n\ndef scale(x):\n    return torch.softmax(x, -1)\n\n\ndef get_inputs():\n    return [torch.randn(64, 512)]\n"


def pairs(op, times):
    return [Pair(op, {"expert": "rows"}, {}, measured, modelled) for measured, modelled in times]


def test_the_figures_are_those_of_the_orders():
    falling, rising = pairs("a", [(1, 40), (2, 30), (3, 20), (4, 10)]), pairs("b", [(10, 1), (20, 2), (30, 3), (40, 4)])
    found = Ranks((*falling, *rising))
    assert ranks.spearman(falling) == pytest.approx(-1) and ranks.spearman(rising) == pytest.approx(1)
    assert found.within == pytest.approx(0) and found.ordered == (6, 12)
    assert found.overall == pytest.approx(1 - 6 * 148 / (8 * 63))  # 148: the squares of the differences of ranks, added up
    assert Ranks(tuple(rising)).overall == pytest.approx(1)


def test_equal_times_share_their_ranks_and_near_ones_are_not_told_apart():
    assert ranks.spearman(pairs("a", [(1, 5), (2, 5), (3, 5)])) is None
    assert ranks.spearman(pairs("a", [(1, 1), (2, 2), (2, 2), (3, 3)])) == pytest.approx(1)
    assert Ranks(tuple(pairs("a", [(100, 2), (103, 1), (200, 3)]))).ordered == (2, 2)
    assert "rank correlation over 0 variants of 0 ops: -" in Ranks(()).markdown()


def test_what_has_no_model_is_counted_with_its_reason():
    found = Ranks((*pairs("a", [(1, 1), (2, 2)]), Pair("a", {}, {}, 3.0, None, "it does not run here")))
    assert "without a model: 1 (it does not run here)" in found.markdown() and len(found.known) == 2
    assert json.loads(found.json())["pairs"][2]["reason"] == "it does not run here"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"op": "x", "modelled": true, "trials": [{"time_us": 3.0}]}]'])
def test_a_file_that_is_no_measured_table_is_said_in_one_line(tmp_path, text):
    path = tmp_path / "experts.json"
    path.write_text(text)
    with pytest.raises(MisuseError, match="on a machine with a GPU"):
        ranks.read(path)
    with pytest.raises(MisuseError, match="on a machine with a GPU"):
        ranks.read(tmp_path / "none.json")


def test_variants_of_a_table_are_written_and_modelled_again(tmp_path):
    reference = tmp_path / "1_Softmax.py"
    reference.write_text(OP)
    table = experts.run("cpu", mode="quick", references=[reference], evaluations=3)
    (row,) = json.loads(table.json())
    times = {trial["time_us"] for trial in row["trials"]}
    assert row["modelled"] and len(times) > 1
    row["modelled"] = False  # as if measured: the model has to find its own times again
    row["trials"] += [{"recipe": {"expert": "inductor"}, "parameters": {}, "verdict": "right", "time_us": 1.0}]
    row["trials"] += [{"recipe": {"expert": "rows", "no such choice": 1}, "parameters": {}, "verdict": "right", "time_us": 2.0}]
    path = tmp_path / "experts.json"
    path.write_text(json.dumps([row, {**row, "op": "2_Unknown"}]))
    found = ranks.run(ranks.read(path), checkout=tmp_path)
    known = found.by_op["1_Softmax"]
    assert {pair.modelled_us for pair in known} == {pair.measured_us for pair in known} == times
    reasons = [pair.reason for pair in found.pairs if pair.modelled_us is None]
    assert any("its expert writes it no more" in reason for reason in reasons) and any("name the checkout" in reason for reason in reasons)
    assert "1.00 |" in found.markdown() and not any(pair.recipe["expert"] == "inductor" for pair in found.pairs)
