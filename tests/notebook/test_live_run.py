"""The whole way for real: a cell, a search by the experts, a judged kernel, accepted, used and verified. No GPU is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import SOFTMAX, candidate_of, evaluation_of, stored_run

import workbench
from workbench import events, evolution
from workbench.brief import Proposal
from workbench.candidate import Verdict
from workbench.errors import AcceptRefusedError, MisuseError
from workbench.notebook.accept import make_accept, refuse_unless_fit
from workbench.notebook.session import SESSION
from workbench.store import MemoryStore

CELL = """%%evolve_kernel --steps 2 --wait --out run --seed 3
import torch
def softmax(x, dim=-1):
    return torch.softmax(x, dim)
torch.manual_seed(0)
x = torch.randn(96, 200)
y = softmax(x)
y.shape
"""


@pytest.fixture(scope="module")
def ran(ipython, tmp_path_factory):
    """The cell, run once in a folder of its own: the shell, and what the cell showed."""
    import os

    from IPython.utils.capture import capture_output

    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("lesson"))
    with capture_output() as shown:
        result = ipython.run_cell(CELL)
    result.raise_error()
    yield ipython, shown, result
    for run in SESSION.runs.values():
        run.close()
    SESSION.runs.clear()
    os.chdir(before)


@pytest.fixture(scope="module")
def accepted(ran):
    """The best variant, accepted into a file."""
    shell, _, _ = ran
    return shell.run_line_magic("evolve_kernel", "accept best --to fast_softmax.py")


def test_the_cell_ran_as_usual_and_the_run_is_there(ran):
    shell, shown, result = ran
    run = shell.user_ns["run"]
    assert result.result is run
    assert shell.user_ns["y"].shape == (96, 200)
    assert callable(shell.user_ns["softmax"])
    assert run.state == "ended"
    assert run.best is not None and run.best.evaluation.verdict is Verdict.RIGHT
    assert run.best.evaluation.timing.modelled
    text = "".join(output.data.get("text/plain", "") for output in shown.outputs)
    assert text.startswith("torch.Size([96, 200])")
    assert f"{run.best.candidate.id}, right" in text
    assert f'workbench.open("{run.id}")' in text


def test_what_was_accepted_is_on_record(ran, accepted):
    run = ran[0].user_ns["run"]
    recorded = [stamped.event for stamped in run.events() if isinstance(stamped.event, events.AcceptedCandidate)]
    assert recorded[-1].code == accepted.code
    assert recorded[-1].place == "fast_softmax.py"
    evidence = accepted.evidence
    assert evidence.evaluation.mode == "full"
    assert evidence.evaluation.verdict is Verdict.RIGHT
    assert evidence.candidate == run.best.candidate.id
    assert repr(accepted).startswith(f"{evidence.candidate} accepted into fast_softmax.py: right")
    assert json.loads(Path("fast_softmax.py.evidence.json").read_text())["evidence"]["run"] == run.id


def test_the_accepted_file_computes_right_without_the_workbench(accepted, run_bare):
    seen = run_bare(
        accepted.code,
        """
        suffix = next(name for name in vars(cell) if name.startswith("fits_")).removeprefix("fits_")
        x = torch.randn(96, 200)
        found["fallback"] = torch.equal(cell.softmax(x), torch.softmax(x, -1))
        found["kernel"] = torch.allclose(getattr(cell, f"run_{suffix}")(x), torch.softmax(x, -1), atol=1e-6)
        """,
    )
    assert seen.fallback and seen.kernel


def test_verify_judges_it_again_from_its_text_and_the_store(accepted, monkeypatch):
    monkeypatch.setattr(SESSION, "runs", {})
    again = workbench.verify("# mine\n" + accepted.code + "softmax(x)\n")
    assert again.verdict is Verdict.RIGHT
    assert again.mode == "full"
    assert again.id == f"{accepted.evidence.candidate}.1"


def test_verify_notices_a_change_and_a_lost_run(accepted, tmp_path, monkeypatch):
    changed = accepted.code.replace("_reference_", "_reference_", 1).replace(
        "torch.is_autocast_enabled", "not torch.is_autocast_enabled", 1
    )
    with pytest.raises(AcceptRefusedError, match="changed after it was accepted"):
        workbench.verify(changed)
    from workbench.notebook import cell

    first, _, body = changed.partition("\n")
    forged = first.replace(first.rsplit("code='", 1)[1].rstrip("'"), cell.code_hash(body)) + "\n" + body
    with pytest.raises(AcceptRefusedError, match="line of provenance"):
        workbench.verify(forged)
    Path("forged.py").write_text(forged)
    Path("forged.py.evidence.json").write_text(Path("fast_softmax.py.evidence.json").read_text())
    with pytest.raises(AcceptRefusedError, match="line of provenance"):
        workbench.verify(Path("forged.py"))
    monkeypatch.setattr(SESSION, "runs", {})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MisuseError, match="which the store here does not hold") as caught:
        workbench.verify(accepted.code)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("option", ["", " --replace"])
def test_accepting_into_the_notebook_offers_a_cell(ran, accepted, monkeypatch, option):
    shell = ran[0]
    offered = []
    monkeypatch.setattr(shell, "set_next_input", lambda text, replace=False: offered.append((text, replace)))
    # What is judged here is tested above; this is about where the code goes.
    monkeypatch.setattr("workbench.notebook.accept.accept", lambda *_, **__: accepted)
    shell.run_line_magic("evolve_kernel", f"accept best{option}")
    ((text, replaced),) = offered
    assert replaced == bool(option)
    assert text == ("# %evolve_kernel accept best --replace\n" if option else "") + accepted.code


def test_the_boards_accept_gives_code_place_and_provenance(ran, accepted):
    run = ran[0].user_ns["run"]
    made = make_accept(run)(run.best.candidate.id, "replace")
    assert set(made) == {"code", "cell", "expected_hash", "message", "provenance"}
    assert made["provenance"]["verdict"] == "right"
    assert made["provenance"]["run"] == run.id
    assert len(made["expected_hash"]) == 64
    assert "right" in made["message"]


def test_files_that_would_be_lost_are_refused_before_any_judging(ran):
    run = ran[0].user_ns["run"]
    Path("precious.py").write_text("x = 1\n")
    for place, said in (("precious.py", "no accepted kernel"), ("kernel.txt", "a .py or an .ipynb"), ("no/where.py", "no folder")):
        with pytest.raises(MisuseError, match=said):
            workbench.accept(run, "best", to=place)
    assert Path("precious.py").read_text() == "x = 1\n"


def test_a_notebook_file_holds_the_cell(ran, accepted):
    import nbformat

    from workbench.notebook.files import read_cell, write_file

    path = write_file(Path("fast.ipynb"), accepted.code, ran[0].user_ns["run"].task, accepted.evidence)
    assert nbformat.read(path, as_version=4).cells[0].source == accepted.code
    assert read_cell(path) == accepted.code


def test_what_the_search_believed_counts_for_nothing(softmax_task):
    store = MemoryStore()
    run = evolution.open_run(store, stored_run(store, softmax_task))
    wrong = candidate_of(SOFTMAX.replace("tl.exp(values", "tl.exp(1.01 * values"), "softmax", "k4")
    store.extend(run.id, (events.Proposed(Proposal("b4", wrong)), events.Evaluated("b4", evaluation_of(wrong))))
    with pytest.raises(AcceptRefusedError, match="k4 did not pass the second judging, it is wrong") as caught:
        workbench.accept(run, "k4")
    assert "\n" not in str(caught.value)
    assert not any(isinstance(stamped.event, events.AcceptedCandidate) for stamped in run.events())


@pytest.mark.parametrize("verdict", list(Verdict))
def test_what_may_be_accepted(verdict):
    evaluation = evaluation_of(candidate_of(SOFTMAX, "softmax"), verdict=verdict, reason="so it is")
    if verdict is Verdict.RIGHT:
        refuse_unless_fit(evaluation, consent=False)
        return
    with pytest.raises(AcceptRefusedError, match="so it is"):
        refuse_unless_fit(evaluation, consent=False)
    if verdict in (Verdict.LOWER_PRECISION, Verdict.NOT_JUDGED):
        refuse_unless_fit(evaluation, consent=True)
    else:
        with pytest.raises(AcceptRefusedError):
            refuse_unless_fit(evaluation, consent=True)


def test_running_the_cell_again_begins_with_its_elites_and_says_so(ran):
    from IPython.utils.capture import capture_output

    shell = ran[0]
    earlier = shell.user_ns["run"]
    with capture_output() as shown:
        shell.run_cell(CELL.replace("--steps 2", "--steps 1")).raise_error()
    later = shell.user_ns["run"]
    assert later.id != earlier.id
    text = "".join(output.data.get("text/plain", "") for output in shown.outputs)
    assert f"with the best variants of {earlier.id}, this cell's earlier run" in text
    started = later.events()[0].event
    assert started.elites_of == earlier.id
    assert later.best.candidate.source == earlier.best.candidate.source
