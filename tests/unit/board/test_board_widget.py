from __future__ import annotations

import hashlib
import threading
import time

import pytest
from test_board_packing import unpacked

from workbench.board import Board, editors
from workbench.errors import NoSuchCandidateError


class Sent(list):
    """Custom messages that a board sent, in place of a kernel's comm; `buffers` are those of the last that had any."""

    buffers = ()

    def take(self, content, buffers):
        self.append(content)
        self.buffers = buffers or self.buffers

    def of(self, kind):
        return [message for message in self if message["type"] == kind]


@pytest.fixture
def board(recorded, monkeypatch):
    sent = Sent()
    monkeypatch.setattr(Board, "send", lambda self, content, buffers=None: sent.take(content, buffers))
    made = Board(recorded.play(60), accept=lambda candidate, place: {"code": f"# {candidate}"})
    made.sent = sent
    yield made
    made.close()


def receive(board, **content):
    """What a browser sends, as ipywidgets hands it on."""
    board._handle_custom_msg(content, None)
    return board.sent


def test_traits_hold_counters_and_ids_only(board):
    own = set(board.trait_names(sync=True)) - set(Board.__mro__[1]().trait_names(sync=True))
    assert own - {"_esm", "_css"} == {"run", "state", "evaluations", "seq", "selected"}


def test_a_browser_gets_a_snapshot_then_details(board):
    receive(board, type="snapshot")
    packed = board.sent.of("packed")[0]["upserts"]
    assert [row["id"] for row in unpacked(packed, board.sent.buffers)][:3] == ["k1", "k2", "k3"]
    receive(board, type="detail", id="k2")
    detail = board.sent.of("detail")[0]
    assert detail["detail"]["candidate"]["source"].startswith('"""RMSNorm') and detail["error"] == ""
    receive(board, type="detail", id="k999")
    assert board.sent.of("detail")[1]["detail"] is None and "k999" in board.sent.of("detail")[1]["error"]


def test_a_browser_gets_the_editors_that_were_built_with_its_board(board, monkeypatch, tmp_path):
    module = editors.FILE.read_bytes()
    known = hashlib.sha256(module).hexdigest()
    assert known in (editors.FILE.parent / "board.js").read_text(encoding="utf-8")
    receive(board, type="editors", request="e1", hash=known)
    assert board.sent[-1] == {"type": "editors", "request": "e1", "error": ""} and board.sent.buffers == [module]
    board.sent.buffers = ()
    receive(board, type="editors", request="e2", hash="0" * 64)
    assert "restart the kernel" in board.sent[-1]["error"] and not board.sent.buffers
    monkeypatch.setattr(editors, "FILE", tmp_path / "editors.js")
    receive(board, type="editors", request="e3", hash=known)
    assert "No such file" in board.sent[-1]["error"] and not board.sent.buffers


def test_verbs_and_misuse_answer_the_one_who_asked(board, recorded):
    receive(board, type="do", request="q1", verb="hint", argument="wide loads", option="")
    assert recorded.asked == [("hint", "wide loads")]
    receive(board, type="do", request="q2", verb="explode", argument="", option="")
    said = board.sent.of("said")
    assert [(one["request"], one["level"]) for one in said] == [("q1", "info"), ("q2", "error")]


def test_accept_from_the_browser(board):
    receive(board, type="accept", request="q", id="k1", place="below", consent=False)
    for _ in range(200):
        if any(message["stage"] == "ready" for message in board.sent.of("accept")):
            break
        time.sleep(0.01)
    assert board.sent.of("accept")[-1]["code"] == "# k1"


@pytest.mark.parametrize("content", [None, [], "x", {}, {"type": 3}, {"type": "detail"}, {"type": "do", "verb": {}}, {"type": "accept"}])
def test_strange_messages_harm_nothing(board, content):
    board._handle_custom_msg(content, None)
    receive(board, type="snapshot")
    assert board.sent.of("packed")


def test_events_move_the_traits_from_another_thread(board, recorded):
    seq = board.seq
    thread = threading.Thread(target=recorded.play, args=(30,))
    thread.start()
    thread.join()
    for _ in range(200):
        if board.seq > seq:
            break
        time.sleep(0.01)
    assert board.seq > seq
    assert board.evaluations == recorded.header()["evaluations"]
    assert board.state == "running"


def test_selecting_from_python(board):
    assert board.select("k3") is board
    assert board.selected == "k3"
    with pytest.raises(NoSuchCandidateError):
        board.select("k999")


def test_repr_is_short_and_the_bundle_is_the_widget(board):
    assert len(repr(board)) < 80 and "rmsnorm" in repr(board)
    bundle = board._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == board.model_id
    assert len(data["text/plain"]) < 120
