"""With the real experts and, once, the real judge."""

from __future__ import annotations

import time

import pytest
import torch
from scripted_fleet import TASK, ScriptedFleet, ScriptedProposer, diagnose, source_of

from workbench import evolution
from workbench.brief import Budget
from workbench.capture import capture_call
from workbench.errors import MisuseError
from workbench.events import Asked, Noted
from workbench.store import Store


def softmax(x):
    return torch.softmax(x, dim=-1)


def unusual(x):
    return torch.linalg.svdvals(x)


def test_softmax_from_capture_to_a_right_kernel_and_back_from_the_store(tmp_path):
    captured = capture_call(softmax, (torch.randn(32, 64),), {})
    store = Store(tmp_path)
    before = time.perf_counter()
    run = evolution.start(captured, store=store, device="cpu", budget=Budget(evaluations=4))
    assert time.perf_counter() - before < 1.0
    try:
        for _ in range(3):
            run.wait(120)
            if run.best is not None or run.state == "ended":
                break
            run.step()
        best = run.best
        assert best is not None, run.summary()
        assert best.candidate.recipe["expert"] and best.evaluation.judged_by.startswith("interpreter")
        assert best.evaluation.timing.modelled and best.evaluation.speedup is None
        assert best.diagnosis is not None and best.diagnosis.directive
        assert run.state == "waiting" and run.header()["floor_us"] > 0
        assert run.header()["device"].startswith("no GPU")
        wrong = run.submit("import torch\n\ndef softmax(x):\n    return torch.sigmoid(x)\n")
        run.wait(120)
        assert run.candidate(wrong).evaluation.verdict.value == "wrong"
        assert run.candidate(wrong).evaluation.witness is not None
    finally:
        run.close()
    again = evolution.open_run(Store(tmp_path), "softmax")
    assert again.rows() == run.rows() and again.best == run.best


def test_no_expert_fits_the_run_says_why_and_waits_for_a_variant(tmp_path):
    captured = capture_call(unusual, (torch.randn(8, 8),), {})
    fleet = ScriptedFleet()
    run = evolution.start(captured, fleet=lambda: fleet, diagnose=diagnose, auto=True)
    run.wait(20)
    try:
        assert run.state == "waiting" and "submit a variant" in run.reason
        notes = [one.event.message for one in run.events() if isinstance(one.event, Noted)]
        assert any(note.startswith("no built-in expert fits this op: ") for note in notes)
        assert not [one for one in run.events() if isinstance(one.event, Asked)]
        assert fleet.probe["outputs"], "the live op's answer goes to the judge"
        name = run.submit(source_of(3))
        run.wait(20)
        assert run.best.candidate.id == name
    finally:
        run.close()


def test_the_person_answers_a_proposal_by_hand():
    fleet = ScriptedFleet()
    run = evolution.start(TASK, fleet=lambda: fleet, diagnose=diagnose, proposers=("person",))
    try:
        deadline = time.monotonic() + 10
        while not run.proposers[0].waiting and time.monotonic() < deadline:
            time.sleep(0.01)
        run.answer(source_of(7), plan="by hand")
        run.wait(10)
        (row,) = run.rows()
        assert (row["proposer"], row["verdict"], row["plan"]) == ("person", "right", "by hand")
        with pytest.raises(MisuseError, match="no brief is waiting"):
            run.answer(source_of(8))
    finally:
        run.close()
    other = evolution.start(TASK, fleet=ScriptedFleet, diagnose=diagnose, proposers=(ScriptedProposer(),))
    with pytest.raises(MisuseError, match="no brief goes to the person"):
        other.answer(source_of(8))
    other.close()
