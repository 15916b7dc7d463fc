"""``python -m workbench experience``: list, show, export, import; a bad file is one line and changes nothing."""

from __future__ import annotations

import json

import pytest

from workbench.brief import Parent
from workbench.candidate import Candidate, Evaluation, Timing, Verdict
from workbench.cli import main
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


def learn(times: int = 1) -> str:
    """The user's experience after so many equal steps that cite a shipped card; returns the id of the card that they made."""
    store = open_experience()
    parent = Parent(Candidate("k1", "triton", "x = 1\ny = 2\n", "double"), judged("k1", 10.0))
    for _ in range(times):
        changed = store.learn(
            TASK, (parent,), Candidate("k2", "triton", "x = 7\ny = 2\n", "double", cites=(CARD,), plan="wider"), judged("k2", 5.0)
        )
    store.close()
    return next(name for name in changed if name != CARD)


def elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_EXPERIENCE", str(tmp_path / "elsewhere.db"))


def test_list_and_show(capsys):
    made = learn()
    assert main(["experience", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(Library.shipped()) + 1 and max(map(len, lines)) <= 110
    assert main(["experience", "list", "--learnt", "--json"]) == 0
    assert {card["id"] for card in json.loads(capsys.readouterr().out)} == {made, CARD}
    assert main(["experience", "show", made[:6]]) == 0  # its beginning is enough
    shown = capsys.readouterr().out
    assert "advice  wider" in shown and "+x = 7" in shown and "2.00× as fast, measured 1 time" in shown
    assert main(["experience", "show", "nothing-like-it"]) == 2
    assert capsys.readouterr().err == "workbench: no card 'nothing-like-it': workbench experience list names them all\n"


def test_a_file_carries_it_to_another_machine_and_reinforcement_counts_are_kept(tmp_path, monkeypatch, capsys):
    made = learn(3)
    file = tmp_path / "cards.jsonl"
    assert main(["experience", "export", str(file)]) == 0
    assert len(file.read_text().splitlines()) == 2
    elsewhere(monkeypatch, tmp_path)
    for said in ("2 cards came or changed\n", "0 cards came or changed\n"):  # a second time nothing is counted twice
        capsys.readouterr()
        assert main(["experience", "import", str(file)]) == 0
        assert capsys.readouterr().err == said
    there = open_experience().library
    assert there.card(made).trials == there.card(CARD).trials == 3 and there.card(made).hits == 3
    assert there.card(CARD).advice == Library.shipped().card(CARD).advice


def test_of_one_card_that_with_more_trials_stays(tmp_path, monkeypatch):
    made = learn(2)
    file = tmp_path / "cards.jsonl"
    main(["experience", "export", str(file)])
    elsewhere(monkeypatch, tmp_path)
    learn(5)
    assert main(["experience", "import", str(file)]) == 0
    assert open_experience().library.card(made).trials == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json\n", "line 1 of {file} is no experience card"),
        ('{"id": "a"}\n', "line 1 of {file} is no experience card"),
        ('{"id": "a", "trigger": {}, "advice": "b", "trials": -1}\n', "line 1 of {file} is no experience card"),
        ('{"id": "a", "trigger": {}, "advice": "b"}\n[]\n', "line 2 of {file} is no experience card"),
        (b"\xff\xfe\x00", "{file} is no text"),
        (None, "{file}: No such file or directory"),
    ],
)
def test_a_bad_file_is_one_line_and_changes_nothing(text, said, tmp_path, capsys):
    file = tmp_path / "cards.jsonl"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["experience", "import", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("workbench: " + said.format(file=file)) and error.count("\n") == 1 and "experience export wrote" in error
    assert len(open_experience().library) == len(Library.shipped())


def test_a_place_that_cannot_be_written_is_one_line(tmp_path, capsys):
    learn()
    assert main(["experience", "export", str(tmp_path / "no" / "such" / "folder.jsonl")]) == 2
    assert capsys.readouterr().err.endswith("name a file in a folder that is there\n")
