from __future__ import annotations

import threading

import pytest

from workbench.board.accepting import Accepts
from workbench.errors import AcceptRefusedError, ConsentNeededError

MADE = {"code": "y = 1", "cell": "c1", "expected_hash": "ab", "message": "right", "provenance": {"run": "r", "candidate": "k1"}}


class Heard(list):
    """Messages, and a way to wait for the last one."""

    def __init__(self):
        super().__init__()
        self.done = threading.Event()

    def __call__(self, message):
        self.append(message)
        if message["stage"] != "judging":
            self.done.set()


def test_the_code_goes_to_the_request(recorded):
    asked, heard = [], Heard()
    Accepts(lambda *given, **named: asked.append((given, named)) or MADE, None, heard, "widget-1").begin("r7", "k1", "replace", False)
    assert heard.done.wait(5)
    assert [message["stage"] for message in heard] == ["judging", "ready"]
    assert asked == [(("k1", "replace"), {})]
    ready = heard[-1]
    assert (ready["request"], ready["code"], ready["cell"], ready["expected_hash"]) == ("r7", "y = 1", "c1", "ab")
    assert ready["provenance"] == MADE["provenance"] and ready["widget"] == "widget-1" and ready["place"] == "replace"


def test_consent_is_passed_on_only_where_it_was_given():
    asked, heard = [], Heard()
    Accepts(lambda *given, **named: asked.append((given, named)) or MADE, None, heard, "").begin("r", "k2", "below", True)
    assert heard.done.wait(5)
    assert asked == [(("k2", "below"), {"consent": True})]


def test_a_refusal_says_whether_consent_would_help():
    refusals = [ConsentNeededError("it does not update norm.running_mean"), AcceptRefusedError("it is wrong")]

    def refuse(candidate, place, consent=False):
        raise refusals.pop(0)

    for needed in (True, False):
        heard = Heard()
        Accepts(refuse, None, heard, "").begin("r", "k1", "below", False)
        assert heard.done.wait(5)
        assert heard[-1]["stage"] == "refused" and heard[-1]["consent"] is needed
        assert "--consent" not in heard[-1]["message"]  # the board has a button for it


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (AcceptRefusedError("k1 is wrong: the last tile"), "k1 is wrong: the last tile"),
        (RuntimeError("no disk"), "accepting failed (RuntimeError: no disk)"),
    ],
)
def test_whatever_goes_wrong_reaches_the_person(error, said):
    def refuse(candidate, place, consent=False):
        raise error

    heard = Heard()
    accepts = Accepts(refuse, None, heard, "")
    accepts.begin("r", "k1", "below", False)
    assert heard.done.wait(5)
    assert heard[-1]["stage"] == "refused" and heard[-1]["message"] == said and heard[-1]["code"] == ""


def test_one_at_a_time_and_the_next_may_follow():
    go, heard = threading.Event(), Heard()
    accepts = Accepts(lambda *given: (go.wait(5), MADE)[1], None, heard, "")
    accepts.begin("r1", "k1", "below", False)
    accepts.begin("r2", "k2", "below", False)
    assert [message["request"] for message in heard if message["stage"] == "refused"] == ["r2"]
    heard.done.clear()
    go.set()
    assert heard.done.wait(5)
    assert heard[-1]["request"] == "r1" and heard[-1]["stage"] == "ready"
    for _ in range(200):  # the lock is given back just after the answer
        if not accepts._busy.locked():
            break
        threading.Event().wait(0.01)
    heard.done.clear()
    accepts.begin("r3", "k2", "below", False)
    assert heard.done.wait(5)
    assert heard[-1]["request"] == "r3" and heard[-1]["stage"] == "ready"


def test_without_accept_the_board_says_so():
    heard = Heard()
    Accepts(None, None, heard, "").begin("r", "k1", "below", False)
    assert heard[-1]["stage"] == "refused" and "without accept" in heard[-1]["message"]


def test_the_acknowledgement_is_passed_on():
    told, done = [], threading.Event()
    accepts = Accepts(None, lambda *given: (told.append(given), done.set()), lambda message: None, "")
    accepts.acknowledge("k1", {"ok": True, "place": "below"})
    assert done.wait(5)
    assert told == [("k1", {"ok": True, "place": "below"})]


def test_what_the_browser_did_is_on_the_record(tmp_path):
    """The board's word goes into the run, whoever owns it: alive, or only looked at."""
    from sample_run import run_events

    from workbench import evolution
    from workbench.notebook.accept import make_applied
    from workbench.store import Store

    store = Store(tmp_path)
    made = run_events(4)
    store.extend(made[0].run, [one.event for one in made])
    applied = make_applied(evolution.open_run(store, made[0].run))
    applied("k2", {"ok": True, "place": "replace", "cell": "c0", "before": "a", "after": "b", "reason": ""})
    applied("k2", {"ok": False, "place": "below", "cell": "", "reason": "the cell of this run is no longer in the notebook"})
    kept = [one.event for one in store.events(made[0].run)][-2:]
    assert [(one.level, one.message) for one in kept] == [
        ("info", "k2 stands in this run's cell (id c0, not run yet)"),
        ("warning", "k2 was accepted, but is not in a new cell: the cell of this run is no longer in the notebook"),
    ]
