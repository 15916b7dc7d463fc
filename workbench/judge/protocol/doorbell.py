"""How the judge tells a worker to go, in less than a microsecond: a few numbers in the first page of the shared memory.

The judge writes its order and then the number of the ring; the worker sees a new number, does what is ordered, writes what it claims and
then the same number back. What the judge times, it times on its own side. A worker that scribbles over the page harms its own claims.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from workbench.judge.protocol.challenge import NUMBERS
from workbench.judge.protocol.shared import PAGE, SharedFile


class Order(IntEnum):
    """What a ring asks for.

    A cold call is one GO, which reveals its seed: the inputs are made between the ring and the call. PREPARE makes them beforehand, for
    calls that are timed with warm caches. After a GO may follow a CHALLENGE, see `challenge`, and a HAND_OVER of the outputs' bytes. Where
    a ring has several calls, a COMMIT comes before the CHALLENGE.
    """

    PREPARE = 1
    GO = 2
    CHALLENGE = 3
    HAND_OVER = 4
    END = 5
    COMMIT = 6


_RING, _ORDER, _SEED, _COUNT, _FLAG, _LEAD = 0, 1, 2, 3, 4, 5
_ANSWER, _CLAIM, _ENQUEUED = 64, 65, 66  # a cache line of their own: the two sides never write to the same one
_NUMBERS = 128  # the answer to a challenge: how many numbers, and then they
_LOOK_EVERY = 2000
_LONG_SECONDS = 1.0
"""Who has waited so long looks less often: cores that look for a ring all the time are missing where kernels are built."""
_REST_SECONDS = 2e-4


@dataclass(frozen=True)
class Answer:
    """Of one ring, in µs: `wall` on the judge's clock, and the worker's claims: what the call took, and what launching it took."""

    wall: float
    claim: float
    enqueued: float


class DoorbellSilent(Exception):
    """The worker did not answer in time, or is gone."""


class Doorbell:
    """Both ends of it. `SharedFile` is mapped in both processes."""

    def __init__(self, shared: SharedFile) -> None:
        self._cells = memoryview(shared.memory)[:PAGE].cast("q")
        self._numbers = memoryview(shared.memory)[:PAGE].cast("d")

    def close(self) -> None:
        self._cells.release()
        self._numbers.release()

    def reset(self) -> None:
        """By the judge, before the worker is told to listen."""
        for cell in (_RING, _ORDER, _SEED, _COUNT, _FLAG, _LEAD, _ANSWER, _CLAIM, _ENQUEUED):
            self._cells[cell] = 0

    def ring(
        self, order: Order, *, seed: int = 0, count: int = 0, flag: int = 0, lead: int = 0, timeout: float, alive: Callable[[], bool]
    ) -> Answer:
        """By the judge: rings and waits for the answer.

        Args:
            lead: µs of idle work that the worker puts into the stream ahead of the call.

        Raises:
            DoorbellSilent: no answer.
        """
        cells = self._cells
        cells[_ORDER], cells[_SEED], cells[_COUNT], cells[_FLAG], cells[_LEAD] = order, seed, count, flag, lead
        number = cells[_RING] + 1
        deadline = time.perf_counter() + timeout
        begun = time.perf_counter_ns()
        cells[_RING] = number
        looks = 0
        while cells[_ANSWER] != number:
            looks += 1
            if looks % _LOOK_EVERY == 0:
                now = time.perf_counter()
                if now > deadline or cells[_ANSWER] < 0 or not alive():
                    raise DoorbellSilent
                if order is not Order.GO:
                    time.sleep(0)  # nothing is being timed: let others have the core
                elif now > deadline - timeout + _LONG_SECONDS:  # it compiles, most likely
                    time.sleep(_REST_SECONDS)
        ended = time.perf_counter_ns()
        return Answer((ended - begun) / 1e3, cells[_CLAIM] / 1e3, cells[_ENQUEUED] / 1e3)

    def listen(self, last: int) -> tuple[int, Order, int, int, int, int]:
        """By the worker: waits for the next ring. Returns its number, order, seed, count, flag and lead."""
        cells = self._cells
        looks = 0
        begun = time.perf_counter()
        while cells[_RING] == last:
            looks += 1
            if looks > _LOOK_EVERY:
                time.sleep(0 if time.perf_counter() < begun + _LONG_SECONDS else _REST_SECONDS)
        return cells[_RING], Order(cells[_ORDER]), cells[_SEED], cells[_COUNT], cells[_FLAG], cells[_LEAD]

    def answer(self, number: int, claim_us: float = 0.0, enqueued_us: float = 0.0, numbers: Sequence[float] = ()) -> None:
        """By the worker: done. It took so long, and so long for the launches alone to be put into the stream.

        Args:
            numbers: the answer to a challenge.
        """
        self._cells[_CLAIM], self._cells[_ENQUEUED] = int(claim_us * 1e3), int(enqueued_us * 1e3)
        self._cells[_NUMBERS] = len(numbers)
        for place, value in enumerate(numbers[:NUMBERS], _NUMBERS + 1):
            self._numbers[place] = value
        self._cells[_ANSWER] = number

    def numbers(self) -> list[float]:
        """By the judge, after the answer to a challenge."""
        count = min(max(0, self._cells[_NUMBERS]), NUMBERS)
        return [float(value) for value in self._numbers[_NUMBERS + 1 : _NUMBERS + 1 + count]]

    def fail(self) -> None:
        """By the worker: it raised, and says what on its line."""
        self._cells[_ANSWER] = -1
