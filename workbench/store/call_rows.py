"""Rows of the table of calls. System messages, equal for all calls, stand once a run, as the parts of events do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from sqlalchemy import Connection, func, insert, select

from workbench.records import digest, dumps
from workbench.store.calls import KeptCall
from workbench.store.schema import calls, parts

_JSON = ("prompt", "settings")
_COLUMNS = tuple(field.name for field in fields(KeptCall))


def keep(connection: Connection, run: str, call: KeptCall, time: float) -> KeptCall:
    """Writes a call; returns it with its number and its time."""
    last = connection.execute(select(func.max(calls.c.number)).where(calls.c.run == run)).scalar() or 0
    kept = replace(call, number=last + 1, time=time)
    values = {name: getattr(kept, name) for name in _COLUMNS}
    prompt = [_put_away(connection, run, message) for message in kept.prompt]
    connection.execute(insert(calls).values(run=run, **values | {"prompt": dumps(prompt), "settings": dumps(kept.settings)}))
    return kept


def find(connection: Connection, run: str, *, brief: str = "", key: str = "") -> tuple[KeptCall, ...]:
    """The calls of a run in order; only those of a brief, or of a request, if one is named."""
    query = select(*(calls.c[name] for name in _COLUMNS)).where(calls.c.run == run).order_by(calls.c.number)
    if brief:
        query = query.where(calls.c.brief == brief)
    if key:
        query = query.where(calls.c.key == key)
    known: dict[str, Any] = {}

    def part(name: str) -> Any:
        if name not in known:
            text = connection.execute(select(parts.c.body).where(parts.c.run == run, parts.c.digest == name)).scalar()
            known[name] = json.loads(text) if text else ""
        return known[name]

    return tuple(_call(row, part) for row in connection.execute(query).mappings())


def _put_away(connection: Connection, run: str, message: Mapping[str, str]) -> dict[str, str]:
    if message["role"] != "system":
        return dict(message)
    name = digest(message["content"], 32)
    if connection.execute(select(parts.c.digest).where(parts.c.run == run, parts.c.digest == name)).first() is None:
        connection.execute(insert(parts).values(run=run, digest=name, body=json.dumps(message["content"], ensure_ascii=False)))
    return {"role": message["role"], "part": name}


def _call(row: Mapping[Any, Any], part: Callable[[str], Any]) -> KeptCall:
    values = {**row, **{name: json.loads(row[name]) for name in _JSON}}
    values["prompt"] = tuple(
        {"role": one["role"], "content": part(one["part"]) if "part" in one else one["content"]} for one in values["prompt"]
    )
    return KeptCall(**values)
