"""Runs and their events, kept in one database. SQLAlchemy is imported when a store is opened, not before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.store.calls import KeptCall
from workbench.store.memory import MemoryStore
from workbench.store.places import default_location
from workbench.store.summary import RunSummary

if TYPE_CHECKING:
    from workbench.store.experience import ExperienceStore
    from workbench.store.store import Store


def open_default(directory: str | Path = ".") -> Store:
    """The store of notebooks in `directory`: ``.workbench/`` there, or what ``WORKBENCH_STORE`` names (a folder or a URL).

    Raises:
        StoreError: it can't be opened or made.
    """
    from workbench.store.store import Store

    return Store(default_location(directory))


def open_experience(place: str | Path | None = None) -> ExperienceStore:
    """The user's experience: ``experience.db`` in the user's data folder, or what ``WORKBENCH_EXPERIENCE`` names.

    Raises:
        StoreError: it can't be opened or made.
    """
    from workbench.store.experience import ExperienceStore

    return ExperienceStore(place)


def __getattr__(name: str) -> Any:
    if name == "Store":
        from workbench.store.store import Store

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["KeptCall", "MemoryStore", "RunSummary", "Store", "default_location", "open_default", "open_experience"]
