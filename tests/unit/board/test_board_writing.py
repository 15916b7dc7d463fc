from __future__ import annotations

import time

from workbench.board.writing import Writings
from workbench.evolution.stream import Stream, Written


class Browser:
    """Puts pieces together as the browser does; counts what it would have to ask for again."""

    def __init__(self):
        self.texts, self.messages, self.gaps = {}, [], 0

    def __call__(self, message):
        self.messages.append(message)
        open_now = {}
        for piece in message["answers"]:
            known = self.texts.get(piece["brief"], "")
            if piece["at"] > len(known):
                self.gaps += 1
            open_now[piece["brief"]] = known[: piece["at"]] + piece["text"]
        self.texts = open_now


def until(condition):
    for _ in range(400):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def test_pieces_of_several_models_add_up_and_are_few():
    stream, browser = Stream(), Browser()
    writings = Writings(stream, browser)
    began = time.monotonic()
    for brief in ("b1", "b2"):
        stream.tell(Written("begins", brief, f"model of {brief}", why="its turn"))
    for number in range(300):
        stream.tell(Written("text", f"b{1 + number % 2}", text=f"{number},"))
        time.sleep(0.001)
    wanted = {brief: "".join(f"{number}," for number in range(300) if 1 + number % 2 == int(brief[1:])) for brief in ("b1", "b2")}
    until(lambda: browser.texts == wanted)
    assert browser.gaps == 0
    assert len(browser.messages) <= (time.monotonic() - began) * 10 + 2
    assert browser.messages[-1]["answers"][0]["model"] == "model of b1" and browser.messages[-1]["answers"][0]["why"] == "its turn"
    assert sum(len(piece["text"]) for message in browser.messages for piece in message["answers"]) == sum(map(len, wanted.values()))
    stream.tell(Written("ends", "b1"))
    until(lambda: set(browser.texts) == {"b2"})
    writings.close()


def test_a_failed_attempt_counts_for_nothing_and_says_why():
    stream, browser = Stream(), Browser()
    writings = Writings(stream, browser)
    stream.tell(Written("begins", "b1", "m"))
    stream.tell(Written("text", "b1", text="half an answer"))
    until(lambda: browser.texts.get("b1") == "half an answer")
    stream.tell(Written("void", "b1", text="the endpoint broke off"))
    until(lambda: browser.texts.get("b1") == "")
    assert browser.messages[-1]["answers"][0]["failed"] == "the endpoint broke off"
    stream.tell(Written("text", "b1", text="anew"))
    until(lambda: browser.texts.get("b1") == "anew")
    writings.close()


def test_a_browser_that_comes_late_gets_the_whole():
    stream, early, late = Stream(), Browser(), Browser()
    writings = Writings(stream, early)
    stream.tell(Written("begins", "b1", "m"))
    stream.tell(Written("text", "b1", text="the first half "))
    until(lambda: early.texts)
    writings._send = late
    writings.whole()
    assert late.texts == {"b1": "the first half "}
    stream.tell(Written("text", "b1", text="and the second"))
    until(lambda: late.texts == {"b1": "the first half and the second"})
    assert late.gaps == 0
    writings.close()


def test_closing_ends_the_thread_and_a_run_without_models_has_none():
    stream = Stream()
    writings = Writings(stream, lambda message: None)
    stream.tell(Written("begins", "b1", "m"))
    until(lambda: writings._thread is not None)
    writings.close()
    writings._thread.join(2)
    assert not writings._thread.is_alive()
    Writings(None, lambda message: None).whole()
