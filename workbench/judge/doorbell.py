"""How the judge tells a worker to go, in less than a microsecond: a few numbers in the first page of the shared memory.

The judge writes its order and then the number of the ring; the worker sees a new number, does what is ordered, writes what it claims and
then the same number back. What the judge times, it times on its own side. A worker that scribbles over the page harms its own claims.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum

from workbench.judge.shared import PAGE, SharedFile


class Order(IntEnum):
    """What a ring asks for. Each call is a PREPARE, which reveals its seed, and a GO; only then may a HAND_OVER follow."""

    PREPARE = 1
    GO = 2
    HAND_OVER = 3
    END = 4


_RING, _ORDER, _SEED, _COUNT, _FLAG = 0, 1, 2, 3, 4
_ANSWER, _CLAIM = 64, 65  # a cache line of their own: the two sides never write to the same one
_LOOK_EVERY = 2000


class DoorbellSilent(Exception):
    """The worker did not answer in time, or is gone."""


class Doorbell:
    """Both ends of it. `SharedFile` is mapped in both processes."""

    def __init__(self, shared: SharedFile) -> None:
        self._cells = memoryview(shared.memory)[:PAGE].cast("q")

    def close(self) -> None:
        self._cells.release()

    def reset(self) -> None:
        """By the judge, before the worker is told to listen."""
        for cell in (_RING, _ORDER, _SEED, _COUNT, _FLAG, _ANSWER, _CLAIM):
            self._cells[cell] = 0

    def ring(
        self, order: Order, *, seed: int = 0, count: int = 0, flag: int = 0, timeout: float, alive: Callable[[], bool]
    ) -> tuple[float, float]:
        """By the judge: rings and waits for the answer.

        Returns:
            µs from ringing to the answer on the judge's clock, and the worker's claim in µs.

        Raises:
            DoorbellSilent: no answer.
        """
        cells = self._cells
        cells[_ORDER], cells[_SEED], cells[_COUNT], cells[_FLAG] = order, seed, count, flag
        number = cells[_RING] + 1
        deadline = time.perf_counter() + timeout
        begun = time.perf_counter_ns()
        cells[_RING] = number
        looks = 0
        while cells[_ANSWER] != number:
            looks += 1
            if looks % _LOOK_EVERY == 0:
                if time.perf_counter() > deadline or cells[_ANSWER] < 0 or not alive():
                    raise DoorbellSilent
                if order is not Order.GO:
                    time.sleep(0)  # nothing is being timed: let others have the core
        ended = time.perf_counter_ns()
        return (ended - begun) / 1e3, cells[_CLAIM] / 1e3

    def listen(self, last: int) -> tuple[int, Order, int, int, int]:
        """By the worker: waits for the next ring. Returns its number, order, seed, count and flag."""
        cells = self._cells
        looks = 0
        while cells[_RING] == last:
            looks += 1
            if looks > _LOOK_EVERY:
                time.sleep(0)
        return cells[_RING], Order(cells[_ORDER]), cells[_SEED], cells[_COUNT], cells[_FLAG]

    def answer(self, number: int, claim_us: float = 0.0) -> None:
        """By the worker: done."""
        self._cells[_CLAIM] = int(claim_us * 1e3)
        self._cells[_ANSWER] = number

    def fail(self) -> None:
        """By the worker: it raised, and says what on its line."""
        self._cells[_ANSWER] = -1
