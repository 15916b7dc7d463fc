"""A run as plain data: what the command line prints and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.brief import Parent
from workbench.records import encode
from workbench.store import KeptCall

_HEADER = (
    "run", "name", "target", "device", "state", "reason", "floor_us", "baselines", "budget", "spent", "seed", "proposers", "notes",
)  # fmt: skip
_ROW = ("id", "kind", "island", "proposer", "parents", "verdict", "reason", "judged_by", "time_us", "modelled", "speedup", "evaluations")


def summarise(
    header: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], best: Parent | None, calls: Sequence[KeptCall]
) -> dict[str, Any]:  # fmt: skip
    """The best candidate, every candidate in short, what was spent, what each model was asked and took, and why the run ended."""
    return {
        **{name: header[name] for name in _HEADER},
        "best": None if best is None else {
            "candidate": encode(best.candidate), "evaluation": encode(best.evaluation), "diagnosis": encode(best.diagnosis),
        },
        "models": models(calls),
        "candidates": [{name: row[name] for name in _ROW} for row in rows],
    }  # fmt: skip


def models(calls: Sequence[KeptCall]) -> list[dict[str, Any]]:
    """One dict a model: its calls, those that failed, tokens, USD (None where its price is not known), and seconds."""
    found: dict[str, dict[str, Any]] = {}
    for call in calls:
        one = found.setdefault(call.model, {
            "model": call.model, "calls": 0, "failed": 0, "tokens_in": 0, "tokens_out": 0, "cached": 0, "estimated": False,
            "money": None, "seconds": 0.0,
        })  # fmt: skip
        one["calls"] += 1
        one["failed"] += bool(call.error)
        for name in ("tokens_in", "tokens_out", "cached"):
            one[name] += getattr(call, name)
        one["estimated"] = one["estimated"] or call.estimated
        one["seconds"] = round(one["seconds"] + call.seconds, 3)
        if call.money is not None:
            one["money"] = (one["money"] or 0.0) + call.money
    return list(found.values())
