"""Briefs repeat the task, their parents and their cards. In the store each of these stands once a run, and events hold its digest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.brief import Card, Parent
from workbench.events import Stamped
from workbench.records import decode, digest, encode
from workbench.task import Task

_MARK = "$part"
SPLIT = frozenset({"RunStarted", "Asked"})
"""Types of the events that hold such parts."""
PARTS = frozenset({Task, Parent, Card})


def split(stamped: Stamped) -> tuple[Any, dict[str, Any]]:
    """The event's JSON data with digests in place of its parts, and the parts by digest."""
    body, parts = encode(stamped.event), {}

    def out(part: Any) -> dict[str, str]:
        key = digest(part, 32)
        parts[key] = part
        return {_MARK: key}

    if stamped.type == "RunStarted":
        body["task"] = out(body["task"])
    elif stamped.type == "Asked":
        brief = body["brief"]
        brief["task"] = out(brief["task"])
        brief["parents"] = [out(parent) for parent in brief["parents"]]
        brief["cards"] = [out(card) for card in brief["cards"]]
    return body, parts


def join(kind: str, body: Any, part: Callable[[str, type], Any], short: bool = False) -> Any:
    """What `split` took apart, its parts as records; `part` gives the record of a digest. Those that share a part share the object.

    Args:
        short: leave parents and cards out.
    """

    def back(data: Any, of: type) -> Any:
        return part(data[_MARK], of) if _MARK in data and len(data) == 1 else decode(of, data)

    if kind == "RunStarted":
        body["task"] = back(body["task"], Task)
    elif kind == "Asked":
        brief = body["brief"]
        brief["task"] = back(brief["task"], Task)
        for name, of in (("parents", Parent), ("cards", Card)):
            brief[name] = () if short else tuple([back(one, of) for one in brief.get(name, ())])
    return body
