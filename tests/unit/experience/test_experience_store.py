"""Experience on disk: runs side by side add up, shipped cards keep this version's words, trouble is one line."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from workbench.brief import Parent
from workbench.candidate import Candidate, Evaluation, Timing, Verdict
from workbench.errors import StoreError
from workbench.knowledge.experience import Library
from workbench.store import open_experience
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

TASK = Task(
    name="double", reference="def double(x):\n    return x * 2\n", entry="double",
    inputs=(InputSpec("x", (1024,), "float32", (1,), Values("normal")),),
    outputs=(OutputSpec((1024,), "float32", (1,)),), work=Work(bytes=8192, flops=1024),
)  # fmt: skip
CARD = Library.shipped().cards[0].id


def judged(name: str, us: float) -> Evaluation:
    return Evaluation(f"{name}.0", name, TASK.id, Verdict.RIGHT, timing=Timing(us, us, us, us, us), judged_by="gpu: A100")


def lesson(number: int, cites=(CARD,)):
    parent = Parent(Candidate("k1", "triton", "x = 1\ny = 2\n", "double"), judged("k1", 10.0))
    return TASK, (parent,), Candidate("k2", "triton", f"x = {number}\ny = 2\n", "double", cites=cites, plan="wider"), judged("k2", 5.0)


def test_what_is_learnt_is_there_when_it_is_opened_again(tmp_path):
    one = open_experience(tmp_path / "experience.db")
    changed = one.learn(*lesson(7))
    assert CARD in changed and len(changed) == 2
    again = open_experience(tmp_path / "experience.db")
    assert again.library.card(CARD).trials == 1 and again.library.card(CARD).effect == pytest.approx(1.0)
    (made,) = (again.library.card(name) for name in changed if name != CARD)
    assert made.advice == "wider" and made.effect == pytest.approx(1.0) and made in again.library.cards
    assert again.library.cards == one.library.cards
    one.close()
    again.close()


def test_two_that_are_open_at_once_add_up_and_see_each_other(tmp_path):
    one, two = (open_experience(tmp_path / "experience.db") for _ in range(2))
    for number in range(3):
        one.learn(*lesson(100 + number))
        two.learn(*lesson(200 + number))
    one.learn(*lesson(300))
    assert one.library.card(CARD).trials == 7
    assert open_experience(tmp_path / "experience.db").library.card(CARD).trials == 7
    assert sum(card.source != "shipped" for card in one.library.cards) == 7


def test_two_processes_lose_none_of_each_others_updates(tmp_path):
    script = """
        import sys
        from test_experience_store import lesson
        from workbench.store import open_experience
        kept = open_experience(sys.argv[1])
        for number in range(25):
            kept.learn(*lesson(int(sys.argv[2]) + number))
    """
    work = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "experience.db"), str(start)], env=environment())
        for start in (1000, 2000)
    ]
    assert [process.wait(60) for process in work] == [0, 0]
    library = open_experience(tmp_path / "experience.db").library
    assert library.card(CARD).trials == 50 and sum(card.source != "shipped" for card in library.cards) == 50


def environment():
    import os
    from pathlib import Path

    return os.environ | {"PYTHONPATH": f"{Path(__file__).parent}{os.pathsep}{Path.cwd()}"}


def test_a_shipped_card_keeps_the_words_of_this_version(tmp_path):
    kept = open_experience(tmp_path / "experience.db")
    kept.library.put([replace(kept.library.card(CARD), advice="as an older version said")])
    kept.learn(*lesson(1))
    card = open_experience(tmp_path / "experience.db").library.card(CARD)
    assert card.advice == Library.shipped().card(CARD).advice and card.trials == 1


def test_there_are_never_more_cards_than_the_limit(tmp_path, monkeypatch):
    from workbench.store import experience

    monkeypatch.setattr(experience, "LIMIT", len(Library.shipped()) + 3)
    kept = open_experience(tmp_path / "experience.db")
    for number in range(6):
        kept.learn(*lesson(10 + number, cites=()))
    assert sum(card.source != "shipped" for card in kept.library.cards) == 3
    assert sum(card.source != "shipped" for card in open_experience(tmp_path / "experience.db").library.cards) == 3


def test_a_place_that_cannot_be_used_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        open_experience(tmp_path / "file" / "experience.db")
    assert "\n" not in str(caught.value)
    (tmp_path / "bad.db").write_text("no database at all, but long enough to be looked at" * 30)
    with pytest.raises(StoreError, match="not a database"):
        open_experience(tmp_path / "bad.db")
