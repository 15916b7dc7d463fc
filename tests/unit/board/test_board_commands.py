from __future__ import annotations

import pytest

from workbench.board.commands import VERBS, perform
from workbench.errors import MisuseError

CUDA = 'CUDA = r"""__global__ void f() {}"""\nKERNELS = ("f",)\n'


@pytest.mark.parametrize(
    ("verb", "argument", "option", "asked"),
    [
        ("step", "", "", ("step",)),
        ("auto", "", "", ("auto",)),
        ("pause", "", "", ("pause",)),
        ("resume", "", "", ("resume",)),
        ("stop", "", "", ("stop",)),
        ("cancel", "", "", ("cancel",)),
        ("hint", "wide loads", "", ("hint", "wide loads")),
        ("hint", "wide loads", "memory", ("hint", "wide loads", "memory")),
        ("ban", "atomics", "", ("ban", "atomics")),
        ("pin", "k3", "", ("pin", "k3")),
        ("branch", "k3", "", ("branch", "k3")),
        ("submit", CUDA, "k3", ("submit", CUDA, "cuda", "k3")),
        ("submit", "x = 1", "", ("submit", "x = 1", "triton")),
    ],
)
def test_verbs_reach_the_run_and_answer_in_one_line(recorded, verb, argument, option, asked):
    said = perform(recorded, verb, argument, option)
    assert recorded.asked == [asked]
    assert said.strip() == said and "\n" not in said and said


def test_every_verb_is_tried():
    assert set(VERBS) == {"step", "auto", "pause", "resume", "stop", "cancel", "hint", "ban", "pin", "branch", "submit"}


def test_an_unknown_verb_is_a_misuse(recorded):
    with pytest.raises(MisuseError, match="knows no verb 'close'"):
        perform(recorded, "close")
    assert recorded.asked == []
