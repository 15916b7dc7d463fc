"""``bench experts --kernelbench``: a folder of numbered tasks, each done by a process that goes on with the next one."""

from __future__ import annotations

import json

import pytest

from workbench.bench import kernelbench
from workbench.errors import MisuseError

TASK = """
import os

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return torch.relu(x) * self.factor


def get_inputs():
    {first}
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [2.0]
"""


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "KernelBench" / "level1"
    folder.mkdir(parents=True)
    for number, first in (
        (1, "pass"),
        (2, "os._exit(3)"),
        (3, "raise ValueError('no inputs today')"),
        (4, "os.write(2, b'first\\nlast words'); os._exit(4)"),
        (10, "pass"),
        (11, "pass"),
    ):
        (folder / f"{number}_Task.py").write_text(TASK.format(first=first))
    return tmp_path


def test_tasks_come_by_number_or_as_they_are_asked_for(checkout):
    assert [path.stem for path in kernelbench.tasks(checkout, 1)] == ["1_Task", "2_Task", "3_Task", "4_Task", "10_Task", "11_Task"]
    assert [path.stem for path in kernelbench.tasks(checkout, 1, (10, 2))] == ["10_Task", "2_Task"]
    with pytest.raises(MisuseError, match="no KernelBench tasks"):
        kernelbench.tasks(checkout, 2)


def test_one_that_ends_its_process_and_one_that_raises_cost_nobody_else(checkout, capsys):
    table = kernelbench.run(checkout, jobs=1, device="cpu", evaluations=1, out=checkout / "out")
    rows = {row.op: row for row in table.rows}
    assert list(rows) == ["1_Task", "2_Task", "3_Task", "4_Task", "10_Task", "11_Task"]
    for name in ("1_Task", "10_Task", "11_Task"):  # the last two in one process
        assert rows[name].verdicts == {"right": 2} and rows[name].modelled and not rows[name].error, rows[name]
    assert rows["2_Task"].error == "its process ended (3)"
    assert rows["4_Task"].error == "its process ended (4): last words"
    assert "no inputs today" in rows["3_Task"].error
    stored = json.loads((checkout / "out" / "level1.json").read_text())
    assert [row["op"] for row in stored] == list(rows)
    assert "right: 3 of 6 tasks" in (checkout / "out" / "level1.md").read_text()
    assert capsys.readouterr().err.count("| 1_Task |") == 1


def test_tasks_that_are_not_there_and_numbers_that_are_none_are_refused(checkout, capsys):
    from workbench.cli import main

    with pytest.raises(MisuseError, match=r"no task 7 in .*: there are 1 to 11"):
        kernelbench.tasks(checkout, 1, [1, 7])
    assert main(["bench", "experts", "--kernelbench", str(checkout), "--tasks", "one"]) == 2
    assert "give numbers of tasks" in capsys.readouterr().err
