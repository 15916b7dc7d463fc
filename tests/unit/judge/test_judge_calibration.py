"""The judge's constants are those of the table that was measured, and the table leaves room on both sides of the bounds."""

from __future__ import annotations

import json

import pytest

from workbench.bench import calibrate
from workbench.cli import main

TABLES = json.loads(calibrate.TABLE.read_text())


@pytest.mark.parametrize("place", TABLES)
def test_the_constants_are_those_of_the_table(place):
    assert TABLES[place]["constants"] == calibrate.constants()


@pytest.mark.parametrize("place", TABLES)
def test_no_honest_kernel_is_near_its_bound_and_no_dishonest_one_within(place):
    table = TABLES[place]
    rows = [calibrate.Row(**row) for row in table["rows"]]
    honest, dishonest = [row for row in rows if row.honest], [row for row in rows if not row.honest]
    assert len(honest) >= 100 and len(dishonest) >= 100
    assert (len(honest), len(dishonest)) == (table["honest"], table["dishonest"])
    near = [row for row in honest if max(row.max, row.rms, row.slope, row.mean) > calibrate.HONEST_AT_MOST or row.verdict != "right"]
    assert near == []
    assert [row for row in dishonest if row.worst <= calibrate.DISHONEST_AT_LEAST or row.verdict == "right"] == []
    assert table["summary"] == json.loads(json.dumps(calibrate.summary(rows)))


def test_the_table_covers_the_corpus():
    assert len({row["op"] for row in TABLES["cpu"]["rows"]}) >= 30
    without_experts = [row for row in TABLES["cpu"]["rows"] if not row["op"].startswith("expert")]
    assert len(without_experts) == sum(calibrate.counted())
    assert any(row["op"].startswith("expert") for row in TABLES["cpu"]["rows"])


def test_the_readable_table_says_the_same():
    text = calibrate.TABLE.with_suffix(".md").read_text()
    assert text == "\n".join(calibrate.markdown(TABLES[key]) for key in sorted(TABLES))


def test_one_op_is_measured_as_it_was(capsys):
    status = main(["bench", "calibrate", "--device", "cpu", "--ops", "gate,mish", "--json"])
    table = json.loads(capsys.readouterr().out)
    assert status == 0 and {row["op"] for row in table["rows"]} == {"gate", "mish"}
    kept = {(row["op"], row["dtype"], row["kernel"]): row for row in TABLES["cpu"]["rows"]}
    for row in table["rows"]:
        before = kept[row["op"], row["dtype"], row["kernel"]]
        assert row["verdict"] == before["verdict"] and (row["worst"] > 1) == (before["worst"] > 1), (row, before)


def test_misuse_of_the_command_is_one_line(capsys):
    for arguments in (["--ops", "nothing"], ["--ops", "gate", "--write"]):
        assert main(["bench", "calibrate", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1
