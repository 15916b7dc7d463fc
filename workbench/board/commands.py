"""What a browser may ask of a run: verbs, each answered in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.board.contract import Run
from workbench.build.cuda_source import backend_of
from workbench.errors import MisuseError

Act = Callable[[Run, str, str], str]
WRITTEN_IN = {"triton": "Triton", "cuda": "CUDA C++"}


def perform(run: Run, verb: str, argument: str = "", option: str = "") -> str:
    """Does `verb` and says so. Only calls that hand the work to the run's own thread are made here.

    Raises:
        WorkbenchError: the run can't do it now, or there is no such verb.
    """
    try:
        act = VERBS[verb]
    except KeyError:
        raise MisuseError(f"the board knows no verb {verb!r}: it has {', '.join(VERBS)}") from None
    return act(run, argument, option)


def _step(run: Run, _: str, __: str) -> str:
    run.step()
    return "One step."


def _auto(run: Run, _: str, __: str) -> str:
    run.auto()
    return "Running until the budget ends, or you pause or stop it."


def _pause(run: Run, _: str, __: str) -> str:
    run.pause()
    return "Pausing: the variant being judged finishes."


def _resume(run: Run, _: str, __: str) -> str:
    run.resume()
    return "Going on."


def _stop(run: Run, _: str, __: str) -> str:
    run.stop()
    return "Stopping: the variant being judged finishes, then the run ends."


def _cancel(run: Run, _: str, __: str) -> str:
    run.cancel()
    return "Cancelled."


def _hint(run: Run, text: str, island: str) -> str:
    if island:
        run.hint(text, island)
        return f"Hint taken: every further proposal on {island} reads it."
    run.hint(text)
    return "Hint taken: every further proposal reads it."


def _ban(run: Run, text: str, _: str) -> str:
    run.ban(text)
    return "Banned: no further proposal may use it."


def _pin(run: Run, candidate: str, _: str) -> str:
    run.pin(candidate)
    return f"{candidate} is pinned: it stays a parent."


def _branch(run: Run, candidate: str, _: str) -> str:
    run.branch(candidate)
    return f"The next proposals start from {candidate}."


def _submit(run: Run, source: str, parent: str) -> str:
    backend = backend_of(source)
    run.submit(source, backend, parent=parent)
    return f"Submitted as {WRITTEN_IN[backend]}: the judge takes it next."


VERBS: Mapping[str, Act] = {
    "step": _step, "auto": _auto, "pause": _pause, "resume": _resume, "stop": _stop, "cancel": _cancel,
    "hint": _hint, "ban": _ban, "pin": _pin, "branch": _branch, "submit": _submit,
}  # fmt: skip


def text(content: Mapping[str, Any], name: str) -> str:
    """A string field of a browser's message; anything else counts as empty."""
    value = content.get(name, "")
    return value if isinstance(value, str) else ""
