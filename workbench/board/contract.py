"""What the board needs of a run and of accept. `workbench.evolution.Evolution` is the one in use; tests may bring another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from workbench.events import Stamped
from workbench.task import Task


class Stored(Protocol):
    """Where a run's events lie."""

    def events(self, run: str, after: int = 0, types: Iterable[str] = ()) -> Sequence[Stamped]: ...


class Run(Protocol):
    """A run. Every method may be called from any thread, returns at once, and needs no event loop of the caller's.

    The board also uses, where a run has them: ``stream`` (`evolution.stream.Stream`, what models write while they write it),
    ``calls(brief)`` (the stored calls to models) and ``inspect(evaluation, what, cancel=…, **options)`` (records of
    `explain.inspection` as JSON data; it may take long).
    """

    @property
    def id(self) -> str: ...
    @property
    def task(self) -> Task: ...
    @property
    def state(self) -> str: ...
    @property
    def store(self) -> Stored: ...

    def subscribe(self, callback: Callable[[Stamped], Any]) -> Callable[[], None]:
        """Calls back after each event is committed, on the run's own thread; returns what ends it."""

    def events(self, after: int = 0) -> Sequence[Stamped]: ...
    def rows(self, after: int = 0) -> list[dict[str, Any]]: ...
    def header(self) -> dict[str, Any]: ...
    def candidate(self, name: str) -> Any: ...

    def step(self, n: int = 1) -> Any: ...
    def auto(self) -> Any: ...
    def pause(self) -> Any: ...
    def resume(self) -> Any: ...
    def stop(self) -> Any: ...
    def cancel(self) -> Any: ...
    def hint(self, text: str, island: str = "") -> Any: ...
    def ban(self, text: str) -> Any: ...
    def pin(self, name: str) -> Any: ...
    def branch(self, name: str) -> Any: ...
    def submit(self, source: str, backend: Any = None, *, parent: str = "") -> Any: ...


class Accepting(Protocol):
    """Judges a candidate once more and writes its cell.

    Returns ``code`` (the whole cell), ``cell`` (nbformat id of the run's cell, empty if unknown), ``expected_hash`` (SHA-256 of the
    source that this cell must still have; empty for no check), ``message`` (one line for people) and ``provenance`` (for the new
    cell's metadata). It may take as long as a full judging does.

    Raises:
        AcceptRefusedError: the candidate did not pass.
    """

    def __call__(self, candidate: str, place: str, consent: bool = False) -> Mapping[str, Any]: ...


Applied = Callable[[str, dict[str, Any]], object]
"""Told of the browser's acknowledgement: candidate id, and ``ok place cell before after reason``."""

Send = Callable[[dict[str, Any]], None]
"""Sends one message to every browser that shows the board."""

SendFile = Callable[[dict[str, Any], list[bytes] | None], None]
"""The same, with bytes beside it."""
