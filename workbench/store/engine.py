"""Connections that survive a killed process, wait for other writers, and write one transaction at a time."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event


def open_engine(place: Path | str, timeout: float) -> Engine:
    """An engine for a SQLite file, or for the URL of another database.

    SQLite runs in WAL mode and syncs every commit, so what is committed outlives a ``kill -9`` and a power cut. A file system
    that can't do WAL (some network ones) keeps SQLite's rollback journal, which is as safe and slower.
    """
    if isinstance(place, str):
        return create_engine(place, pool_pre_ping=True)
    engine = create_engine(f"sqlite:///{place}", connect_args={"timeout": timeout})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say, below
        connection.execute(f"PRAGMA busy_timeout={int(timeout * 1000)}")
        _write_ahead(connection, timeout)
        connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes the lock before it reads the last sequence number; a reader takes none.
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _write_ahead(connection: Any, timeout: float) -> None:
    # Changing the journal does not wait for others by itself.
    end = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.02)
