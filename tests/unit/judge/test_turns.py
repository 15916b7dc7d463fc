"""torch.compile times configurations of its own while it is a baseline: the judge holds the card for it meanwhile."""

from __future__ import annotations

import contextlib
import threading

import pytest

from workbench.judge.protocol import doorbell
from workbench.judge.protocol.doorbell import Doorbell, Order
from workbench.judge.protocol.shared import SharedFile
from workbench.judge.timing import tuning


class Card:
    """Whether it is held, and how often it was."""

    def __init__(self):
        self.held = False
        self.times = 0

    @contextlib.contextmanager
    def busy(self):
        assert not self.held
        self.held, self.times = True, self.times + 1
        try:
            yield True
        finally:
            self.held = False


@pytest.fixture
def ring():
    """Rings for one GO at which the worker does `work(bell)`, and waits for its answer."""
    shared = SharedFile.create(1 << 16)
    bell, other = Doorbell(shared), Doorbell(shared)
    bell.reset()
    workers = []

    def once(work, turns):
        def serve():
            number, *_ = other.listen(0)
            if work(other) != "killed":
                other.answer(number)

        workers.append(threading.Thread(target=serve, daemon=True))
        workers[-1].start()
        return bell.ring(Order.GO, timeout=20, alive=workers[-1].is_alive, turns=turns)

    yield once
    for worker in workers:
        worker.join(10)
    bell.close()
    other.close()


def test_the_judge_holds_the_card_during_each_turn_and_only_then(ring):
    card, seen = Card(), []

    def work(bell):
        for _ in range(3):
            with bell.turn():
                seen.append(card.held)

    ring(work, card.busy)
    assert seen == [True] * 3
    assert not card.held
    assert card.times == 3


def test_a_worker_that_is_given_no_turn_goes_on_without(ring, monkeypatch):
    monkeypatch.setattr(doorbell, "_TURN_SECONDS", 0.05)
    went = []

    def work(bell):
        with bell.turn():
            went.append(True)

    ring(work, None)
    assert went == [True]


def test_the_card_is_given_back_when_the_worker_ends_within_its_turn(ring):
    card, turns = Card(), []

    def work(bell):
        turns.append(bell.turn())
        turns[0].__enter__()
        return "killed"

    with pytest.raises(doorbell.DoorbellSilent):
        ring(work, card.busy)
    assert card.times == 1
    assert not card.held


def test_the_compilers_own_timing_takes_turns(ring, monkeypatch):
    benchmarking = pytest.importorskip("torch._inductor.runtime.benchmarking")
    card, seen = Card(), []

    def times(call, **settings):
        seen.append((card.held, settings))
        return call()

    monkeypatch.setattr(benchmarking.benchmarker, "benchmark_gpu", times, raising=False)

    def work(bell):
        tuning.in_turns(bell)
        timed = benchmarking.benchmarker.benchmark_gpu
        seen.append(timed(lambda: 7, rep=5))
        seen.append(timed(lambda: timed(lambda: 8)))  # one way to time goes through another: one turn

    ring(work, card.busy)
    assert seen == [(True, {"rep": 5}), 7, (True, {}), (True, {}), 8]
    assert card.times == 2
