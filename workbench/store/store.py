"""The database of runs."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from workbench.errors import NoSuchRunError, StoreError
from workbench.events import EVENT_TYPES, Evaluated, Event, Proposed, RunStarted, Stamped
from workbench.records import dumps
from workbench.store import call_rows, compact, reading, schema
from workbench.store.calls import KeptCall
from workbench.store.engine import open_engine
from workbench.store.names import choose_to_clean, find_run
from workbench.store.places import clean_inspections, is_url, make_folder
from workbench.store.summary import RunSummary, fold
from workbench.store.troubles import explained

_COLUMNS = tuple(field.name for field in fields(RunSummary))


class Store:
    """Runs and their events, in one database: SQLite in a folder, or a server by its URL.

    What it promises:

    - **Durability.** `append` and `extend` return after the commit. What they returned outlives ``kill -9`` of this process and,
      with SQLite, a power cut. `extend` keeps all of its events or none.
    - **Order.** The events of a run are numbered 1, 2, 3, … without gaps, whoever appends them.
    - **Threads and processes.** Every method may be called from any thread, and several processes may use one database. Writers
      wait for each other up to `timeout` seconds. An object must not be used on both sides of a fork.
    - **Ownership.** Records that go in and come out are frozen, and are shared with nobody. A run has at most one owner, see
      `claim`; events appended without an owner's name are always accepted.
    - **Failure.** Whatever goes wrong with the database is a `StoreError` of one line that names the mend, and leaves the database
      as it was before the call.

    >>> store = Store("/tmp/example/.workbench")                                       # doctest: +SKIP
    >>> store.append("softmax-1", RunStarted(task, Budget(), 0, ("experts",))).seq     # doctest: +SKIP
    1
    """

    def __init__(self, place: str | Path, *, timeout: float = 10.0, clock: Callable[[], float] = time.time) -> None:
        """Opens or makes the database.

        Args:
            place: a folder, a ``.db`` file, or the URL of a database server.
            timeout: seconds to wait for another writer.
            clock: seconds since the epoch.

        Raises:
            StoreError: it can't be opened or made, or a newer workbench made it.
        """
        self.place = str(place)
        self._clock = clock
        self._file = None if is_url(place) else make_folder(Path(place).expanduser())
        with explained(self.place):
            self._engine = open_engine(self._file if self._file is not None else str(place), timeout)
            with self._engine.connect().execution_options(writes=True) as connection, connection.begin():
                self._make_tables(connection)
        self._inode = self._file.stat().st_ino if self._file is not None else 0

    def append(self, run: str, event: Event, *, owner: str = "") -> Stamped:
        """Adds one event to a run and commits. A `RunStarted` makes the run; every other event needs it.

        Raises:
            NoSuchRunError: the run has not been started.
            StoreError: the database failed, or the run has another owner.
        """
        return self.extend(run, (event,), owner=owner)[0]

    def extend(self, run: str, events: Sequence[Event], *, owner: str = "") -> tuple[Stamped, ...]:
        """Adds several events in one transaction."""
        with self._transaction(writes=True) as connection:
            summary = self._find(connection, run, lock=True)
            if summary is None and not (events and isinstance(events[0], RunStarted)):
                raise NoSuchRunError(f"{self.place} holds no run {run!r}")
            new = summary is None
            summary = summary or RunSummary(id=run, owner=owner)
            if owner and summary.owner != owner:
                raise StoreError(f"{run}: another process goes on with this run; open it anew to take it back")
            stamps = []
            for event in events:
                stamped = Stamped(run=run, seq=summary.last + 1, time=self._clock(), event=event)
                summary = fold(summary, stamped, self._write(connection, stamped))
                stamps.append(stamped)
            values = {name: getattr(summary, name) for name in _COLUMNS}
            connection.execute(insert(schema.runs).values(values) if new else _of_run(update(schema.runs), run).values(values))
        return tuple(stamps)

    def claim(self, run: str, owner: str) -> None:
        """Makes `owner` the one who goes on with a run. Whoever had it gets a StoreError at their next append."""
        with self._transaction(writes=True) as connection:
            if self._find(connection, run, lock=True) is None:
                raise NoSuchRunError(f"{self.place} holds no run {run!r}")
            connection.execute(_of_run(update(schema.runs), run).values(owner=owner))

    def events(
        self, run: str, after: int = 0, types: Iterable[str] = (), limit: int | None = None, *, short: bool = False
    ) -> tuple[Stamped, ...]:  # fmt: skip
        """The events of a run in order, from number `after` + 1 on; only those of `types` if any are named, at most `limit`.

        Args:
            short: briefs come without their parents and cards, which are most of a long run and seldom looked at.

        Raises:
            NoSuchRunError: there is no such run.
        """
        table = schema.events
        query = (
            select(table.c.seq, table.c.type, table.c.time, table.c.body)
            .where(table.c.run == run, table.c.seq > after)
            .order_by(table.c.seq)
        )
        if wanted := tuple(types):
            query = query.where(table.c.type.in_(wanted))
        query = query.limit(limit)
        with self._transaction() as connection:
            if self._find(connection, run) is None:
                raise NoSuchRunError(f"{self.place} holds no run {run!r}")
            part = _Parts(connection, run)
            return tuple(_stamped(run, *row, part, short) for row in connection.execute(query).all())

    def keep_call(self, run: str, call: KeptCall) -> KeptCall:
        """Keeps a call to a language model and commits; returns it with its number and time."""
        with self._transaction(writes=True) as connection:
            if self._find(connection, run, lock=True) is None:
                raise NoSuchRunError(f"{self.place} holds no run {run!r}")
            return call_rows.keep(connection, run, call, self._clock())

    def calls(self, run: str, brief: str = "", key: str = "") -> tuple[KeptCall, ...]:
        """The calls of a run in order; only those that serve one brief, or that sent one request, if it is named."""
        with self._transaction() as connection:
            return call_rows.find(connection, run, brief=brief, key=key)

    def runs(self, cell: str | None = None) -> tuple[RunSummary, ...]:
        """All runs, the newest first; with `cell` only those of that notebook cell."""
        query = select(schema.runs).order_by(schema.runs.c.created.desc(), schema.runs.c.id)
        if cell is not None:
            query = query.where(schema.runs.c.cell == cell)
        with self._transaction() as connection:
            return tuple(RunSummary(**row) for row in connection.execute(query).mappings())

    def run(self, name: str) -> RunSummary:
        """The run of that id, or the only one whose id begins with it; ``last`` is the newest.

        Raises:
            NoSuchRunError: none fits, or several do.
        """
        return find_run(self.place, self.runs(), name)

    def clean(self, runs: Iterable[str] = (), *, older_than_days: float | None = None) -> tuple[str, ...]:
        """Removes runs for good: those named, and those that had no event for so many days. Gives the space back.

        Inspections of their variants go with the last run of their task.

        Returns:
            The ids of what was removed.

        Raises:
            NoSuchRunError: one of the names fits no run; nothing is removed then.
            MisuseError: neither names nor an age are given.
        """
        gone = choose_to_clean(self.runs(), self.run, tuple(runs), older_than_days, self._clock())
        with self._transaction(writes=True) as connection:
            for table in (schema.events, schema.parts, schema.candidates, schema.evaluations, schema.calls):
                connection.execute(delete(table).where(table.c.run.in_(gone)))
            connection.execute(delete(schema.runs).where(schema.runs.c.id.in_(gone)))
        if gone and self._file is not None:
            with contextlib.suppress(OSError):  # they are made again when somebody looks
                clean_inspections(self.place, {run.task for run in self.runs()})
            with explained(self.place), self._engine.connect() as connection:
                raw = connection.connection.driver_connection
                assert raw is not None
                raw.execute("VACUUM")
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return gone

    def close(self) -> None:
        """Closes the connections. A later call opens new ones."""
        self._engine.dispose()

    # ---- inside a transaction

    @contextmanager
    def _transaction(self, writes: bool = False) -> Iterator[Connection]:
        with explained(self.place):
            self._check_file()
            with self._engine.connect().execution_options(writes=writes) as connection, connection.begin():
                yield connection

    def _check_file(self) -> None:
        # SQLite goes on writing into a file that was deleted or replaced under it, where nobody will ever find it.
        if self._file is None:
            return
        try:
            same = self._file.stat().st_ino == self._inode
        except FileNotFoundError:
            same = False
        if not same:
            raise StoreError(f"{self.place}: the database was removed or replaced while it was in use: put it back, or start a new run")

    def _make_tables(self, connection: Connection) -> None:
        schema.metadata.create_all(connection)
        found = connection.execute(select(schema.meta.c.value).where(schema.meta.c.key == "schema")).scalar()
        if found is None:
            connection.execute(insert(schema.meta).values(key="schema", value=str(schema.VERSION)))
        elif int(found) > schema.VERSION:
            raise StoreError(
                f"{self.place}: a newer workbench made this store (schema {found}, this one knows {schema.VERSION}): "
                "upgrade kernel-workbench, or set WORKBENCH_STORE to another folder"
            )

    def _find(self, connection: Connection, run: str, lock: bool = False) -> RunSummary | None:
        query = select(schema.runs).where(schema.runs.c.id == run)
        row = connection.execute(query.with_for_update() if lock else query).mappings().first()
        return RunSummary(**row) if row else None

    def _write(self, connection: Connection, stamped: Stamped) -> int:
        """Writes an event, its parts and its projection; returns how many bytes they take."""
        body, parts = compact.split(stamped)
        written = _json(body)
        size = len(written)
        connection.execute(insert(schema.events).values(
            run=stamped.run, seq=stamped.seq, type=stamped.type, time=stamped.time, body=written,
        ))  # fmt: skip
        known = select(schema.parts.c.digest).where(schema.parts.c.run == stamped.run, schema.parts.c.digest.in_(parts))
        for digest in set(parts) - set(connection.execute(known).scalars()) if parts else ():
            part = _json(parts[digest])
            size += len(part)
            connection.execute(insert(schema.parts).values(run=stamped.run, digest=digest, body=part))
        self._project(connection, stamped)
        return size

    def _project(self, connection: Connection, stamped: Stamped) -> None:
        match stamped.event:
            case Proposed(proposal=proposal) if proposal.candidate is not None:
                one = proposal.candidate
                connection.execute(insert(schema.candidates).values(
                    run=stamped.run, id=one.id, backend=one.backend, island=one.island, proposer=one.proposer,
                    parents=_json(list(one.parents)), plan=one.plan, source=one.source,
                ))  # fmt: skip
            case Evaluated(evaluation=found):
                connection.execute(insert(schema.evaluations).values(
                    run=stamped.run, seq=stamped.seq, id=found.id, candidate=found.candidate, verdict=found.verdict.value,
                    judged_by=found.judged_by, mode=found.mode, parameters=dumps(found.parameters), time_us=found.time_us,
                    modelled=found.timing is not None and found.timing.modelled,
                    speedup=found.speedup.ratio if found.speedup else None, matched=found.matched, reason=found.reason,
                ))  # fmt: skip


class _Parts:
    """The parts of one run, as records, read when first needed."""

    def __init__(self, connection: Connection, run: str) -> None:
        self._connection, self._run = connection, run
        self._texts: dict[str, str] | None = None
        self._known: dict[str, Any] = {}

    def __call__(self, digest: str, kind: type) -> Any:
        if self._texts is None:
            rows = self._connection.execute(select(schema.parts.c.digest, schema.parts.c.body).where(schema.parts.c.run == self._run))
            self._texts = {row[0]: row[1] for row in rows}
        if digest not in self._known:
            self._known[digest] = reading.read(kind, self._texts[digest])
        return self._known[digest]


def _stamped(run: str, seq: int, kind: str, time: float, body: str, part: _Parts, short: bool) -> Stamped:
    event: Any
    if kind in compact.SPLIT:
        event = reading.build(EVENT_TYPES[kind], compact.join(kind, reading.parse(body), part, short), compact.PARTS)
    else:
        event = reading.read(EVENT_TYPES[kind], body)
    return Stamped(run, seq, time, event)


def _of_run(statement: Any, run: str) -> Any:
    return statement.where(schema.runs.c.id == run)


def _json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
