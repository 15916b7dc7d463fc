"""The cards that come with the workbench, written by hand: ``shipped/*.toml``, a theme a file."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.knowledge.experience.card import Card, Trigger

_SHIPPED = Path(__file__).with_name("shipped")
_TRIGGER = ("kinds", "axes", "shapes", "dtypes", "targets", "diagnoses", "roles")


@functools.cache
def seed_cards() -> tuple[Card, ...]:
    """All shipped cards, by file and place. Their effects are not measured yet: they are None until a run tries them."""
    return tuple(_card(entry) for entry in entries())


def entries() -> tuple[Mapping[str, Any], ...]:
    """The shipped cards as they stand in the files, with what is needed to compile their code: `signature` and `constexprs`."""
    found: list[Mapping[str, Any]] = []
    for path in sorted(_SHIPPED.glob("*.toml")):
        found += tomllib.loads(path.read_text(encoding="utf-8"))["card"]
    return tuple(found)


def _card(entry: Mapping[str, Any]) -> Card:
    return Card(
        id=entry["id"],
        trigger=Trigger(**{name: tuple(entry.get(name, ())) for name in _TRIGGER}),
        advice=" ".join(entry["advice"].split()),
        when=entry["when"],
        code=entry["code"].strip("\n"),
        prior=entry.get("prior", 0.5),
    )
