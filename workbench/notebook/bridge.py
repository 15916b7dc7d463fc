"""What the JupyterLab extension asks of a kernel: one expression in a silent request, answered by an object that is JSON.

Nothing here shows or prints, and no misuse is an exception: the browser gets ``{"error": "one line"}``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.errors import MisuseError, WorkbenchError
from workbench.notebook.session import SESSION, open_store

VERBS = ("step", "auto", "pause", "resume", "stop", "cancel")
SAID = {
    "step": "judging one more variant",
    "auto": "running until the budget ends",
    "pause": "pausing; the running ones finish",
    "resume": "going on",
    "stop": "stopping; the running ones finish",
    "cancel": "cancelled",
}
MOST = 200
"""Runs in an answer at most, the latest first."""


class Answer(dict[str, Any]):
    """A dictionary that IPython gives to the browser as ``application/json``."""

    def _repr_json_(self) -> dict[str, Any]:
        return dict(self)


def _answering(act: Callable[..., dict[str, Any]]) -> Callable[..., Answer]:
    @functools.wraps(act)
    def answer(*arguments: Any) -> Answer:
        try:
            return Answer(act(*arguments))
        except WorkbenchError as error:
            return Answer(error=str(error))

    return answer


@_answering
def runs() -> dict[str, Any]:
    """The runs of the store beside the notebook: ``{"place", "runs"}``, the latest first."""
    from workbench.store import default_location

    place = default_location()
    where = place.rpartition("@")[2]  # the name and password of a database server are nobody's business
    if "://" not in place and not Path(place).expanduser().exists():
        return {"place": where, "runs": []}  # looking leaves no folder behind
    store = open_store()
    return {"place": where, "runs": [asdict(summary.as_seen()) | {"live": _alive(summary.id)} for summary in store.runs()[:MOST]]}


@_answering
def record(run: str) -> dict[str, Any]:
    """The record of one run, from this kernel or from its store."""
    from workbench.notebook.api import open as open_run
    from workbench.notebook.bridge_record import record as make
    from workbench.notebook.static import Summary, headline

    current = SESSION.current_id
    try:
        opened = open_run(run)
    finally:
        SESSION.current_id = current  # looking at a run does not make it the one that line magics speak to
    return make(opened, headline(Summary.of(opened.events(0))))


@_answering
def act(verb: str) -> dict[str, Any]:
    """Does a verb to the current run, as the line magic of that name does."""
    if verb not in VERBS:
        raise MisuseError(f"the bridge knows no verb {verb!r}: it has {', '.join(VERBS)}")
    run = SESSION.current
    getattr(run, verb)()
    return {"said": f"{run.id}: {SAID[verb]}"}


def _alive(run: str) -> bool:
    return run in SESSION.runs and bool(getattr(SESSION.runs[run], "alive", True))
