"""Writing an accepted kernel into a file: ``.py`` as it is, ``.ipynb`` as a notebook of one cell. Its evidence lies beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workbench.candidate import Evidence
from workbench.errors import MisuseError
from workbench.notebook.cell import MARK
from workbench.records import decode, encode
from workbench.task import Task


def evidence_path(path: Path) -> Path:
    """Where the evidence of an accepted file lies."""
    return path.with_name(path.name + ".evidence.json")


def check_place(path: Path) -> None:
    """Refuses a path before minutes are spent on judging.

    Raises:
        MisuseError: a wrong suffix, no such folder, or a file that is not an accepted kernel and would be lost.
    """
    if path.suffix not in (".py", ".ipynb"):
        raise MisuseError(f"{path}: write to a .py or an .ipynb file")
    if not path.absolute().parent.is_dir():
        raise MisuseError(f"{path}: there is no folder {path.absolute().parent}")
    if path.exists() and not read_cell(path, missing_ok=True):
        raise MisuseError(f"{path} exists and is no accepted kernel: choose another name")


def write_file(path: Path, code: str, task: Task, evidence: Evidence) -> Path:
    """Writes the code, and ``<file>.evidence.json`` with the Task, so that it can be verified on another machine."""
    if path.suffix == ".py":
        path.write_text(code, encoding="utf-8")
    else:
        import nbformat

        v4: Any = nbformat.v4
        path.write_text(v4.writes_json(v4.new_notebook(cells=[v4.new_code_cell(code)])) + "\n", encoding="utf-8")
    record = {"evidence": encode(evidence), "task": encode(task)}
    evidence_path(path).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read_cell(path: Path, *, missing_ok: bool = False) -> str:
    """The accepted cell in a ``.py`` or ``.ipynb`` file.

    Raises:
        MisuseError: the file holds none (empty instead, if `missing_ok`), or can't be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
        texts = ["".join(cell["source"]) for cell in json.loads(text)["cells"]] if path.suffix == ".ipynb" else [text]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MisuseError(f"{path} can't be read as {path.suffix}: {error}") from None
    for one in texts:
        if any(line.startswith(MARK) for line in one.split("\n")):
            return one
    if missing_ok:
        return ""
    raise MisuseError(f"{path} holds no accepted kernel: it has no line that begins with {MARK.strip()!r}")


def read_evidence(path: Path) -> tuple[Task, Evidence] | None:
    """What lies beside an accepted file; None where nothing does.

    Raises:
        MisuseError: it is damaged.
    """
    beside = evidence_path(path)
    if not beside.exists():
        return None
    try:
        data: Any = json.loads(beside.read_text(encoding="utf-8"))
        return decode(Task, data["task"]), decode(Evidence, data["evidence"])
    except (ValueError, KeyError, TypeError) as error:
        raise MisuseError(f"{beside} is damaged ({type(error).__name__}): restore it, or accept the kernel again") from None
