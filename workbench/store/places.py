"""Where a store lies: ``.workbench/`` beside the notebook, or where ``WORKBENCH_STORE`` says."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from pathlib import Path

from workbench.errors import StoreError

FOLDER = ".workbench"
FILE = "workbench.db"
INSPECTIONS = "inspections"


def default_location(directory: str | Path = ".") -> str:
    """The folder, or the URL of the database, that a notebook in `directory` uses."""
    return os.environ.get("WORKBENCH_STORE") or str(Path(directory).absolute() / FOLDER)


def is_url(place: str | Path) -> bool:
    """Whether it names a database server in place of a folder."""
    return "://" in str(place)


def inspections_folder(place: str | Path) -> Path | None:
    """Where inspections of a store's variants lie: beside the database; None where the store is no folder."""
    if is_url(place) or str(place) == "memory":
        return None
    folder = Path(place).expanduser()
    return (folder.parent if folder.suffix in (".db", ".sqlite") else folder) / INSPECTIONS


def clean_inspections(place: str | Path, tasks: Collection[str]) -> None:
    """Removes the inspections of all tasks but these: `tasks` are the ids of those of which a run is left."""
    folder = inspections_folder(place)
    if folder is None or not folder.is_dir():
        return
    for file in folder.iterdir():
        if file.name.endswith(".gz") and not any(f"-{task}-" in file.name for task in tasks):
            file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # what is left stays
        folder.rmdir()


def make_folder(place: Path) -> Path:
    """The database's file under `place`, with the folder made, and kept out of version control by a ``.gitignore`` of its own.

    Raises:
        StoreError: the folder can't be made or written.
    """
    if place.suffix in (".db", ".sqlite"):
        folder, file = place.parent, place
    else:
        folder, file = place, place / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ignore = folder / ".gitignore"
        if folder.name == FOLDER and not ignore.exists():
            ignore.write_text("*\n")
    except OSError as error:
        raise StoreError(
            f"{folder}: the folder can't be made or written ({error.strerror}): set WORKBENCH_STORE to a folder that can"
        ) from error
    if not os.access(folder, os.W_OK) or (file.exists() and not os.access(file, os.W_OK)):
        raise StoreError(f"{folder}: the folder is read-only: set WORKBENCH_STORE to a folder that can be written")
    return file
