"""A database's own words, turned into one line that says what is wrong and what mends it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from workbench.errors import StoreError

_TROUBLES = (
    ("disk is full", "the disk is full: free some space (python -m workbench clean), then resume the run"),
    ("database is locked", "another process holds the database: close it, or wait, then resume the run"),
    ("readonly", "the folder is read-only: set WORKBENCH_STORE to a folder that can be written"),
    ("read-only", "the folder is read-only: set WORKBENCH_STORE to a folder that can be written"),
    ("unable to open", "the database can't be opened: check the folder's permissions, or set WORKBENCH_STORE to another folder"),
    ("malformed", "the database is damaged: move it away, or restore it from a copy; a new one is made at the next start"),
    ("not a database", "the file is not a database: move it away, or set WORKBENCH_STORE to another folder"),
    ("disk i/o error", "the disk failed or is full: check it, then resume the run"),
    ("no such table", "the database has lost its tables: move it away; a new one is made at the next start"),
)


def explain(place: str, error: BaseException) -> StoreError:
    """The StoreError that says what `error` means for the store at `place`."""
    said = str(error.orig) if isinstance(error, DBAPIError) and error.orig is not None else str(error)
    said = said.strip().splitlines()[0] if said.strip() else type(error).__name__
    for sign, meaning in _TROUBLES:
        if sign in said.lower():
            return StoreError(f"{place}: {meaning}")
    if isinstance(error, (ImportError, NoSuchModuleError)):
        return StoreError(f"{place}: the database's driver is not installed ({said})")
    return StoreError(f"{place}: the database failed ({said}): check that it is there and reachable, then resume the run")


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Turns what a database raises inside the block into a StoreError."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError, ImportError) as error:
        raise explain(place, error) from error
