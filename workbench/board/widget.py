"""The board itself: one widget class, one module in the browser, and the messages between them (``extensions/protocol.ts``)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from workbench.board import editors, rows
from workbench.board.accepting import Accepts
from workbench.board.commands import perform, text
from workbench.board.contract import Accepting, Applied, Run
from workbench.board.feed import Feed
from workbench.board.inspecting import Inspections
from workbench.board.prompts import prompt
from workbench.board.writing import Writings
from workbench.errors import WorkbenchError


def _module() -> Path:
    path = Path(__file__).parent / "static" / "board.js"
    if not path.is_file():
        raise WorkbenchError("the board is not built: run `python hatch_build.py` in the repository, or install a wheel")
    return path


class Board(anywidget.AnyWidget):  # type: ignore[misc]
    """A run as a person sees and steers it.

    Traits hold counters and ids only. Rows travel as numbered deltas, sources and evaluations when a browser asks for them.

    Args:
        evolution: the run, see `workbench.board.contract.Run`.
        accept: judges a candidate once more and writes its cell; without it the board says that it can't accept.
        applied: told what the browser did with an accepted cell.

    Example:
        >>> board = Board(evolution)                       # doctest: +SKIP
        >>> board.select("k12")                            # doctest: +SKIP
    """

    _esm = _module()

    run = traitlets.Unicode("").tag(sync=True)
    state = traitlets.Unicode("").tag(sync=True)
    evaluations = traitlets.Int(0).tag(sync=True)
    seq = traitlets.Int(0).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)

    def __init__(self, evolution: Run, *, accept: Accepting | None = None, applied: Applied | None = None) -> None:
        super().__init__(run=evolution.id, state=evolution.state)
        self._run = evolution
        self._sending = threading.RLock()
        self._accepts = Accepts(accept, applied, self._tell, self.model_id or "")
        self._inspections = Inspections(evolution, self._tell)
        self._writings = Writings(getattr(evolution, "stream", None), self._tell)
        self.on_msg(lambda _, content, __: self._receive(content))
        self._feed = Feed(evolution, self._tell, shown=self._show, packed=self._tell)

    def __repr__(self) -> str:
        return f"Board of {self._run.task.name}, run {self._run.id}"

    def select(self, candidate: str) -> Board:
        """Shows one variant in every view of the board.

        Raises:
            NoSuchCandidateError: the run has none of that id.
        """
        self._run.candidate(candidate)
        self.selected = candidate
        return self

    def close(self) -> None:
        """Ends the board; the run goes on."""
        for part in (getattr(self, name, None) for name in ("_feed", "_writings", "_inspections")):
            if part is not None:
                part.close()
        super().close()

    def _show(self, seq: int, header: Mapping[str, Any]) -> None:
        with self._sending, self.hold_sync():
            self.seq = seq
            self.state = header["state"]
            self.evaluations = header["evaluations"]

    def _tell(self, content: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        with self._sending:
            self.send(content, buffers)

    def _receive(self, content: Any) -> None:
        """One message of a browser. Front ends deliver these on different threads, so nothing here waits or needs a loop."""
        if not isinstance(content, Mapping):
            return
        kind = text(content, "type")
        if kind == "snapshot":
            self._feed.snapshot(text(content, "view"))
            self._writings.whole()
        elif kind == "gone":
            self._feed.leave(text(content, "view"))
        elif kind == "writing":
            self._writings.whole()
        elif kind == "detail":
            self._tell(self._detail(text(content, "id")))
        elif kind == "prompt":
            self._tell(self._prompt(text(content, "id")))
        elif kind == "inspect":
            options = content.get("options")
            options = options if isinstance(options, Mapping) else {}
            self._inspections.begin(text(content, "request"), text(content, "evaluation"), text(content, "what"), options)
        elif kind == "leave":
            self._inspections.leave(text(content, "request"))
        elif kind == "save":
            self._inspections.save(text(content, "request"))
        elif kind == "editors":
            self._tell(*editors.answer(text(content, "request"), text(content, "hash")))
        elif kind == "do":
            self._tell(self._do(content))
        elif kind == "accept":
            place = "replace" if text(content, "place") == "replace" else "below"
            self._accepts.begin(text(content, "request"), text(content, "id"), place, content.get("consent") is True)
        elif kind == "applied":
            outcome = {name: text(content, name) for name in ("place", "cell", "before", "after", "reason")}
            self._accepts.acknowledge(text(content, "id"), {"ok": content.get("ok") is True, **outcome})

    def _detail(self, candidate: str) -> dict[str, Any]:
        try:
            return {"type": "detail", "id": candidate, "detail": rows.detail(self._run, candidate), "error": ""}
        except WorkbenchError as error:
            return {"type": "detail", "id": candidate, "detail": None, "error": str(error)}

    def _prompt(self, candidate: str) -> dict[str, Any]:
        try:
            return {"type": "prompt", "id": candidate, "prompt": prompt(self._run, candidate), "error": ""}
        except WorkbenchError as error:
            return {"type": "prompt", "id": candidate, "prompt": None, "error": str(error)}

    def _do(self, content: Mapping[str, Any]) -> dict[str, Any]:
        answer = {"type": "said", "request": text(content, "request")}
        try:
            said = perform(self._run, text(content, "verb"), text(content, "argument"), text(content, "option"))
        except WorkbenchError as error:
            return {**answer, "level": "error", "text": str(error)}
        return {**answer, "level": "info", "text": said}
