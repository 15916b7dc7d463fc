"""Inputs and expected results that the judge works out while a worker builds: else one of the two would always wait for the other.

What is drawn ahead stays in this process until the call that it is for, so no candidate knows it earlier. Seeds depend on the kind of
input alone, not on how far the work got, so that a judging can be repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from workbench.capture.references import Reference
from workbench.inputs import make_inputs, stream_seed
from workbench.judge.correctness.expected import Error, Expected, expect
from workbench.judge.correctness.inputsets import InputSet, arrange
from workbench.judge.protocol.exchange import Exchange

_MOST_BYTES = 1 << 30
"""Kinds of more bytes of input are worked out when they are needed: their float64 results would fill the card."""


class Draw:
    """The inputs of one call, and what they should give. `turn` counts the calls on the same kind of input."""

    def __init__(self, kind: InputSet, turn: int, seed: int, reference: Reference, device: str) -> None:
        self.kind, self.turn, self.seed = kind, turn, seed
        self._reference = reference
        inputs = make_inputs(kind.specs, seed, device)
        self.inputs: list[Any] = arrange(inputs, kind.specs, kind.structure) if kind.structure else inputs
        self.expected: Expected | None = None
        self.exchanges: tuple[Exchange, ...] = ()

    def expect(self, known: Sequence[Error] | None = None) -> Expected:
        """The expected results, worked out once. `known`: see `expected.expect`."""
        if self.expected is None:
            self.expected = expect(self._reference, self.inputs, known=known)
        return self.expected


class Ahead:
    """Draws for one judging, in the order in which they are called for.

    Args:
        root: what all seeds are made from.
        ready: whether there is something better to do.
    """

    def __init__(self, root: int, reference: Reference, device: str) -> None:
        self._root, self._reference, self._device = root, reference, device
        self._plan: Iterator[tuple[InputSet, int]] = iter(())
        self._done: dict[tuple[str, int], Draw] = {}

    def plan(self, kinds: Iterable[tuple[InputSet, int]]) -> None:
        """What will be called for next: kinds of input, with their turns."""
        self._plan = iter(kinds)

    def take(self, kind: InputSet, turn: int) -> Draw:
        """The draw for a call, made now if it is not there."""
        found = self._done.pop((kind.name, turn), None)
        if found is not None and found.kind == kind:
            return found
        return Draw(kind, turn, self._seed(kind, turn), self._reference, self._device)

    def work(self, current: Draw, ready: Callable[[], bool]) -> None:
        """Works out what is expected of the current call, then of those that are planned, until `ready` says that it is time.

        Args:
            current: goes first; what honest errors it shows hold for its kind's further turns too.
        """
        first = current.expect()
        while not ready():
            planned = next(self._plan, None)
            if planned is None:
                return
            kind, turn = planned
            if sum(spec.nbytes for spec in kind.specs) > _MOST_BYTES:
                continue
            draw = Draw(kind, turn, self._seed(kind, turn), self._reference, self._device)
            draw.expect([output.error for output in first.outputs] if kind == current.kind else None)
            self._done[kind.name, turn] = draw

    def _seed(self, kind: InputSet, turn: int) -> int:
        name = int.from_bytes(hashlib.sha256(kind.name.encode()).digest()[:4], "big")
        return stream_seed(self._root, (name << 8) + turn) >> 1
