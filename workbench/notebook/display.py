"""Showing a run in a notebook: first the static output, which stays, then the board, which lives."""

from __future__ import annotations

import logging
from typing import Any

from workbench.notebook.bridge_record import Records
from workbench.notebook.static import LiveDisplay, Summary, mimebundle

_log = logging.getLogger(__name__)
_shown_in: dict[str, int] = {}
"""The execution in which a run was last shown, so that a magic that shows it and returns it shows it once."""


def register(kind: type) -> None:
    """Lets IPython show objects of this class by `show`. Does nothing outside IPython; may be called again."""
    shell = _shell()
    if shell is None:
        return
    shell.display_formatter.ipython_display_formatter.for_type(kind, show)
    shell.display_formatter.formatters["text/plain"].for_type(kind, _pretty)


def show(evolution: Any) -> LiveDisplay | None:
    """Shows a run, once in an execution.

    The static output comes first and is refreshed by the run's thread. In a terminal it is printed once.

    Returns:
        What refreshes it, so that a cell that waits can flush it before it ends; None if it stands there already.
    """
    shell = _shell()
    count = getattr(shell, "execution_count", 0)
    if _shown_in.get(evolution.id) == count:
        return None
    _shown_in[evolution.id] = count
    from IPython.display import display

    if shell is None or getattr(shell, "kernel", None) is None:
        display(mimebundle(Summary.of(evolution.events(0))), raw=True)
        return None
    # The handle exists only once something is displayed, and the run goes on meanwhile: what it publishes before waits.
    handle: list[Any] = []
    records = Records(evolution)
    live = LiveDisplay(evolution, lambda bundle: handle[0].update(bundle, raw=True) if handle else None, records=records)
    handle.append(display(live.bundle(), raw=True, display_id=True))
    live.flush()
    _show_board(evolution)
    return live


def make_board(evolution: Any) -> Any:
    """A run's board that can accept, and whose run's record says what became of it."""
    from workbench.board import Board
    from workbench.notebook.accept import make_accept, make_applied

    return Board(evolution, accept=make_accept(evolution), applied=make_applied(evolution))


def _show_board(evolution: Any) -> None:
    """The board, where its widget can run. A fault in it must never cost the static output."""
    from IPython.display import display

    try:
        board = make_board(evolution)
    except Exception as error:
        _log.debug("no board", exc_info=True)
        said = f"No board here ({error}). The run goes on: %evolve_kernel status, step, auto, pause, stop, show ID, accept ID."
        display({"text/plain": said}, raw=True)
        return
    display(board)


def _pretty(evolution: Any, printer: Any, cycle: bool) -> None:
    printer.text(mimebundle(Summary.of(evolution.events(0)))["text/plain"])


def _shell() -> Any:
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return None
    return get_ipython()
