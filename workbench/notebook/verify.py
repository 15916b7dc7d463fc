"""Verify: judge an accepted kernel again, later, from its text.

The cell's text tells the run it came from, and holds kernel and reference between markers. The Task comes from the evidence beside a
file, or from the store. The kernel never runs in this process.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.build.cuda_source import backend_of
from workbench.candidate import Candidate, Evaluation, Evidence
from workbench.errors import AcceptRefusedError, MisuseError, NoSuchRunError
from workbench.notebook import cell
from workbench.notebook.cell import MARK
from workbench.notebook.files import read_cell, read_evidence
from workbench.notebook.names import own_names, rename
from workbench.task import Task


@dataclass(frozen=True)
class AcceptedText:
    """An accepted cell, taken apart: the fields of its line of provenance, and its kernel."""

    fields: Mapping[str, str]
    kernel: str
    body: str


def verify(accepted: str | Path | Callable[..., Any], *, store: Any = None) -> Evaluation:
    """Judges an accepted kernel again: in full, with new seeds, in fresh processes.

    Args:
        accepted: the cell's text, a ``.py`` or ``.ipynb`` file, or the accepted function itself.
        store: where its run lies, if not beside the notebook; not needed for a file with its evidence.

    Returns:
        What the judge says of it now.

    Raises:
        AcceptRefusedError: the text was changed since it was accepted, so the evidence is not about it.
        MisuseError: this is no accepted kernel, or its run is gone.
    """
    from workbench.fleet import judge_once

    text, path = _text_of(accepted)
    found = take_apart(text)
    if cell.code_hash(found.body) != found.fields["code"]:
        raise AcceptRefusedError(
            f"{found.fields['op']} was changed after it was accepted, so its evidence is about other code: "
            "give the new code to evolution.submit, and accept it again"
        )
    task, evidence = _evidence(found, path, store)
    if evidence is not None and evidence.accepted_source_sha != cell.accepted_hash(text):
        raise AcceptRefusedError(f"{found.fields['op']}: text and line of provenance were changed after it was accepted: accept it again")
    candidate = as_candidate(task, found)
    _, evaluation = judge_once(task, candidate, {}, id=f"{candidate.id}.1", mode="full")
    return evaluation


def take_apart(text: str) -> AcceptedText:
    """The parts of an accepted cell.

    Raises:
        MisuseError: it is none.
    """
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.startswith(MARK)), None)
    if start is None:
        raise MisuseError(f"this is no accepted kernel: it has no line that begins with {MARK.strip()!r}")
    fields = {name: _unquoted(value) for name, value in re.findall(r"(\w+)=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", lines[start])}
    lost = [name for name in ("op", "run", "kernel", "code") if name not in fields]
    body = "\n".join(lines[start + 1 :])
    if lost or cell.KERNEL not in lines or cell.REFERENCE not in lines:
        raise AcceptRefusedError(f"the accepted kernel is not whole: it lost {', '.join(lost) or 'a marker line'}; accept it again")
    kernel = lines[lines.index(cell.KERNEL) + 1 : lines.index(cell.REFERENCE)]
    flags = [line for line in lines[start + 1 : lines.index(cell.KERNEL)] if line.startswith("from __future__")]
    return AcceptedText(fields, "\n".join([*flags, *kernel]).strip("\n") + "\n", body)


def as_candidate(task: Task, found: AcceptedText) -> Candidate:
    """The kernel as the judge takes it: with the names that it had before it was written into a cell."""
    entry = task.candidate_entry
    names = own_names(found.kernel)
    suffix = next((name.removeprefix(entry) for name in names if re.fullmatch(rf"{re.escape(entry)}_[0-9a-f]{{6}}", name)), None)
    if suffix is None:
        raise AcceptRefusedError(f"the accepted kernel defines no {entry}: accept it again")
    source = rename(found.kernel, {name: name.removesuffix(suffix) for name in names if name.endswith(suffix)})
    return Candidate(found.fields["kernel"], backend_of(source), source, entry, proposer="accepted")


def _evidence(found: AcceptedText, path: Path | None, store: Any) -> tuple[Task, Evidence | None]:
    """The Task, and the evidence if it is kept: from beside the file, else from the store."""
    beside = read_evidence(path) if path is not None else None
    if beside is not None:
        return beside
    from workbench.events import AcceptedCandidate, RunStarted
    from workbench.notebook.session import SESSION, open_store

    run = found.fields["run"]
    if run in SESSION.runs:
        events = SESSION.runs[run].events(0)
    else:
        try:
            kept = open_store(store)
            events = kept.events(run)
        except NoSuchRunError:
            raise MisuseError(
                f"{found.fields['op']} comes from run {run}, which the store here does not hold: "
                "verify where its run lies (WORKBENCH_STORE), or accept it with --to FILE, which keeps the evidence beside it"
            ) from None
    task = next(stamped.event.task for stamped in events if isinstance(stamped.event, RunStarted))
    accepted = [stamped.event.evidence for stamped in events if isinstance(stamped.event, AcceptedCandidate)]
    own = [evidence for evidence in accepted if evidence.candidate == found.fields["kernel"]]
    return task, own[-1] if own else None


def _text_of(accepted: Any) -> tuple[str, Path | None]:
    if isinstance(accepted, Path):
        return read_cell(accepted), accepted
    if isinstance(accepted, str):
        if "\n" in accepted:
            return accepted, None
        path = Path(accepted)
        if path.suffix not in (".py", ".ipynb") or not path.exists():
            raise MisuseError(f"{accepted}: no such file: give the accepted cell's text, its file, or its function")
        return read_cell(path), path
    code = getattr(inspect.unwrap(accepted) if callable(accepted) else accepted, "__code__", None)
    if code is None and inspect.isclass(accepted):
        code = getattr(getattr(accepted, "forward", None), "__code__", None)
    if code is None:
        raise MisuseError(f"a {type(accepted).__name__} can't be verified: give the accepted cell's text, its file, or its function")
    text = "".join(linecache.getlines(code.co_filename))
    path = Path(code.co_filename)
    return text, path if path.suffix == ".py" and path.exists() else None


def _unquoted(value: str) -> str:
    import ast

    return str(ast.literal_eval(value))


__all__ = ["AcceptedText", "as_candidate", "take_apart", "verify"]
