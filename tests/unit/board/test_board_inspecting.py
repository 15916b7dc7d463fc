from __future__ import annotations

import threading
import time

import pytest

from workbench.board.inspecting import AT_ONCE, Inspections
from workbench.errors import StoreError


class Heard:
    """Messages with their bytes, and a way to wait for so many."""

    def __init__(self):
        self.messages = []

    def __call__(self, message, buffers):
        self.messages.append((message, buffers))

    def wait(self, count):
        for _ in range(500):
            if len(self.messages) >= count:
                return [message for message, _ in self.messages]
            time.sleep(0.01)
        raise AssertionError(f"{len(self.messages)} messages, not {count}")


class Run:
    """A run whose inspections end when they are let go."""

    def __init__(self, answer=None):
        self.answer = answer or {"what": "trace", "file": ""}
        self.go = threading.Event()
        self.asked, self.cancelled, self.inside = [], [], 0

    def inspect(self, evaluation, what, *, cancel, **options):
        self.asked.append((evaluation, what, options))
        self.inside += 1
        while not self.go.wait(0.01):
            if cancel.is_set():
                self.cancelled.append(evaluation)
                break
        self.inside -= 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_report_goes_to_the_request():
    run, heard = Run(), Heard()
    run.go.set()
    Inspections(run, heard).begin("r1", "k1.0", "trace", {})
    (message,) = heard.wait(1)
    assert (message["request"], message["stage"], message["report"]) == ("r1", "ready", run.answer)


def test_only_known_options_pass():
    run, heard = Run(), Heard()
    run.go.set()
    looks = Inspections(run, heard)
    looks.begin("r1", "k1.0", "compiler", {"target": "cuda:80", "directory": "/etc", "shapes": "real"})
    looks.begin("r2", "k1.0", "memory", {"shapes": "real", "target": "cuda:80"})
    heard.wait(2)
    assert sorted(run.asked, key=str) == [("k1.0", "compiler", {"target": "cuda:80"}), ("k1.0", "memory", {"shapes": "real"})]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"error": "no compiler is here"}, "no compiler is here"),
        (StoreError("the disk is full"), "the disk is full"),
        (ZeroDivisionError("x"), "the inspection failed (ZeroDivisionError: x)"),
    ],
)
def test_whatever_goes_wrong_reaches_the_person(answer, said):
    run, heard = Run(answer), Heard()
    run.go.set()
    Inspections(run, heard).begin("r", "k1.0", "trace", {})
    (message,) = heard.wait(1)
    assert message["stage"] == "failed" and message["message"] == said and message["report"] is None


def test_what_is_not_waited_for_is_called_off_and_not_sent():
    run, heard = Run(), Heard()
    looks = Inspections(run, heard)
    for number in range(AT_ONCE + 1):
        looks.begin(f"r{number}", f"k{number}.0", "trace", {})
        for _ in range(300):
            if run.inside == min(number + 1, AT_ONCE):
                break
            time.sleep(0.01)
    assert run.inside == AT_ONCE  # the third waits its turn
    looks.leave("r2")
    looks.leave("r0")
    for _ in range(300):
        if run.cancelled:
            break
        time.sleep(0.01)
    assert run.cancelled == ["k0.0"]
    run.go.set()
    messages = heard.wait(1)
    time.sleep(0.1)
    assert [message["request"] for message in messages] == ["r1"]
    assert [asked[0] for asked in run.asked] == ["k0.0", "k1.0"]


def test_misuse_is_one_line():
    heard = Heard()
    Inspections(Run(), heard).begin("r", "k1.0", "shell", {})
    Inspections(object(), heard).begin("r", "k1.0", "trace", {})
    said = [message["message"] for message in heard.wait(2)]
    assert "can't inspect shell: it has compiler, memory, trace" in said[0] and "workbench.open" in said[1]


def test_a_trace_is_sent_and_no_other_file(tmp_path):
    kept = tmp_path / "trace.json.gz"
    kept.write_bytes(b"\x1f\x8bdata")
    run, heard = Run({"what": "trace", "file": str(kept)}), Heard()
    run.go.set()
    looks = Inspections(run, heard)
    looks.begin("r", "k1.0", "trace", {})
    heard.wait(1)
    looks.save("r")
    message, buffers = heard.messages[1]
    assert message["name"] == "trace.json.gz" and buffers == [b"\x1f\x8bdata"]
    looks.save(str(kept))
    assert "look at the variant again" in heard.messages[2][0]["error"] and heard.messages[2][1] is None
    kept.unlink()
    looks.save("r")
    assert "can't be read" in heard.messages[3][0]["error"]
