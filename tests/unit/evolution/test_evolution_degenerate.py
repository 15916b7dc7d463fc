"""No search starts silently on an op that can't be judged: the run says so and ends, and the person may go on knowingly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scripted_fleet import ScriptedFleet

from workbench import cli
from workbench.brief import Budget
from workbench.events import Evaluated, Prepared, Qualification

DEGENERATE = "input x does not matter"


class Doubtful(ScriptedFleet):
    """The judge of an op on which bad answers pass."""

    async def prepare(self, probe):
        prepared = await super().prepare(probe)
        return replace(prepared, degenerate=DEGENERATE, qualification=Qualification(DEGENERATE, "give other inputs"))


def evaluated(run):
    return [stamped for stamped in run.events() if isinstance(stamped.event, Evaluated)]


def test_the_run_ends_with_what_to_change_before_anything_is_judged(begin):
    run, _ = begin(fleet=Doubtful(), auto=True, budget=Budget(evaluations=3))
    run.wait(20)
    assert run.state == "ended" and DEGENERATE in run.reason and "give other inputs" in run.reason and "--accept-degenerate" in run.reason
    assert evaluated(run) == [] and any(isinstance(stamped.event, Prepared) for stamped in run.events())


def test_who_resumes_has_been_told(begin):
    run, _ = begin(fleet=Doubtful(), auto=True, budget=Budget(evaluations=2))
    run.wait(20)
    run.resume().wait(20)
    assert len(evaluated(run)) >= 1, run.reason


def test_who_accepts_it_beforehand_is_not_stopped(begin):
    run, _ = begin(fleet=Doubtful(), auto=True, budget=Budget(evaluations=2), accept_degenerate=True)
    run.wait(20)
    assert len(evaluated(run)) == 2


@pytest.mark.parametrize("known", [False, True])
def test_the_command_line_says_it(tmp_path, monkeypatch, capsys, known):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "op.py").write_text(
        "import torch\n\n\ndef one(x):\n    return torch.softmax(x, -1).sum(-1)\n\n\ndef get_inputs():\n    return [torch.randn(24, 40)]\n"
    )
    options = ["--accept-degenerate"] if known else []
    cli.main(["evolve", "op.py", "--no-store", "--steps", "1", "--device", "cpu", *options])
    said = capsys.readouterr().err
    assert ("To search all the same" in said) is not known
    assert ("k1.0" in said or "k1.1" in said) is known
