"""The tables. `events` is the truth; `runs`, `candidates` and `evaluations` are made from it in the same transaction, to be queried."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text

VERSION = 1

metadata = MetaData()

meta = Table("meta", metadata, Column("key", String(40), primary_key=True), Column("value", String(200), nullable=False))

runs = Table(
    "runs", metadata,
    Column("id", String(120), primary_key=True), Column("name", Text, nullable=False), Column("target", String(40), nullable=False),
    Column("task", String(40), nullable=False), Column("cell", String(120), nullable=False),
    Column("state", String(20), nullable=False), Column("reason", Text, nullable=False),
    Column("created", Float, nullable=False), Column("updated", Float, nullable=False),
    Column("candidates", Integer, nullable=False), Column("evaluations", Integer, nullable=False),
    Column("best", String(40), nullable=False), Column("best_us", Float), Column("modelled", Boolean, nullable=False),
    Column("last", Integer, nullable=False), Column("bytes", Integer, nullable=False), Column("owner", String(80), nullable=False),
)  # fmt: skip

events = Table(
    "events", metadata,
    Column("run", String(120), primary_key=True), Column("seq", Integer, primary_key=True),
    Column("type", String(40), nullable=False), Column("time", Float, nullable=False), Column("body", Text, nullable=False),
)  # fmt: skip

parts = Table(
    "parts", metadata,
    Column("run", String(120), primary_key=True), Column("digest", String(64), primary_key=True), Column("body", Text, nullable=False),
)  # fmt: skip
"""What events of a run would repeat (its task, its parents): stored once, see `compact`."""

candidates = Table(
    "candidates", metadata,
    Column("run", String(120), primary_key=True), Column("id", String(40), primary_key=True),
    Column("backend", String(20), nullable=False), Column("island", Text, nullable=False), Column("proposer", Text, nullable=False),
    Column("parents", Text, nullable=False), Column("plan", Text, nullable=False), Column("source", Text, nullable=False),
)  # fmt: skip

evaluations = Table(
    "evaluations", metadata,
    Column("run", String(120), primary_key=True), Column("seq", Integer, primary_key=True),
    Column("id", String(40), nullable=False), Column("candidate", String(40), nullable=False),
    Column("verdict", String(30), nullable=False), Column("judged_by", Text, nullable=False), Column("mode", String(10), nullable=False),
    Column("parameters", Text, nullable=False), Column("time_us", Float), Column("modelled", Boolean, nullable=False),
    Column("speedup", Float), Column("matched", Float), Column("reason", Text, nullable=False),
)  # fmt: skip

calls = Table(
    "calls", metadata,
    Column("run", String(120), primary_key=True), Column("number", Integer, primary_key=True),
    Column("key", String(64), nullable=False), Column("brief", String(40), nullable=False), Column("purpose", String(20), nullable=False),
    Column("model", Text, nullable=False), Column("attempt", Integer, nullable=False), Column("prompt", Text, nullable=False),
    Column("settings", Text, nullable=False), Column("reply", Text, nullable=False), Column("finish", Text, nullable=False),
    Column("tokens_in", Integer, nullable=False), Column("tokens_out", Integer, nullable=False),
    Column("cached", Integer, nullable=False), Column("estimated", Boolean, nullable=False), Column("money", Float),
    Column("seconds", Float, nullable=False), Column("first_seconds", Float), Column("error", Text, nullable=False),
    Column("why", Text, nullable=False), Column("time", Float, nullable=False),
)  # fmt: skip
"""Calls to language models, each retry its own row. They are no events: a run can be rebuilt without them."""

cards = Table(
    "cards", metadata,
    Column("id", String(80), primary_key=True), Column("stamp", Integer, nullable=False), Column("body", Text, nullable=False),
)  # fmt: skip
"""Experience. Used in the user's own database, not in those of runs; `stamp` grows with every change of any card."""

Index("calls_by_key", calls.c.run, calls.c.key)
Index("evaluations_by_candidate", evaluations.c.run, evaluations.c.candidate)
Index("runs_by_cell", runs.c.cell)
