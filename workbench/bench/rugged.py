"""Made lands: Kauffman's NK landscapes in the form of recorded ones, for what the recorded ones are too even to show.

The experts' designs differ in few choices that hardly hang together, so that almost any search finds the best of them. Here six choices
have 216 combinations, and the time of each depends on it together with `k` others (Kauffman and Weinberger, 1989): with k = 0 each choice
can be settled for itself, with k = 5 nothing that was learnt of one design says anything of the next. Nothing here was measured on a
kernel, and tables say so.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench.bench.landscape import Land, Row
from workbench.candidate import Verdict

CHOICES: Mapping[str, tuple[str, ...]] = {
    "passes": ("loops", "loop", "row"),
    "cache": ("default", "stream", "keep"),
    "grid": ("one", "persistent"),
    "prefetch": ("plain", "pipelined"),
    "online": ("no", "yes"),
    "order": ("plain", "grouped", "snake"),
}
TUNE: Mapping[str, tuple[int, ...]] = {"BLOCK": (1024, 2048), "NUM_WARPS": (4, 8)}
DIRECTIVES: Mapping[str, str] = {
    "passes": "Hold the whole row in registers.",
    "cache": "Give streamed data an eviction hint.",
    "grid": "Make it persistent, in whole waves.",
    "prefetch": "Prefetch what comes next: raise num_stages.",
    "online": "Use exp2 and one reciprocal in place of divisions.",
    "order": "Let neighbours share what lies in L2: grouped order.",
}
TRUTH = 0.5
"""How often the diagnosis names the choice whose change gains most; else it names any."""
SPREAD = 2.0
"""The slowest design could take 1 + SPREAD times the floor, the fastest the floor."""
TUNED = 0.1
"""Tunable numbers change a time by up to this share, for each design in its own way."""


def made(like: Land, k: int, seed: int) -> Land:
    """A land with the mistakes and habits of `like`, and times of its own.

    Args:
        k: how many other choices each choice hangs together with, 0 to 5.
        seed: of everything that is drawn.
    """
    rng = random.Random(f"rugged:{k}:{seed}")
    names = list(CHOICES)
    partners = {name: [name, *rng.sample([other for other in names if other != name], k)] for name in names}
    parts: dict[tuple[str, ...], float] = {}

    def cost(design: Mapping[str, str]) -> float:
        total = 0.0
        for name in names:
            key = (name, *(design[other] for other in partners[name]))
            total += parts.setdefault(key, rng.random())
        return total / len(names)

    designs = [dict(zip(names, values, strict=True)) for values in itertools.product(*CHOICES.values())]
    rng.shuffle(designs)
    costs = [cost(design) for design in designs]
    low, high = min(costs), max(costs)
    times = [like.floor_us * (1.05 + SPREAD * (one - low) / (high - low)) for one in costs]
    known = {tuple(design.values()): time for design, time in zip(designs, times, strict=True)}
    rows: list[Row] = []
    for place, (design, time) in enumerate(zip(designs, times, strict=True)):
        worth = _gains(design, known)
        named = max(names, key=lambda name: worth[name]) if rng.random() < TRUTH else rng.choice(names)
        descriptors = tuple(f"{name}:{value}" for name, value in design.items())
        for number, values in enumerate(itertools.product(*TUNE.values())):
            factor = 1.0 if not number else 1.0 + TUNED * (2 * rng.random() - 1)
            rows.append(Row(
                place, dict(zip(TUNE, values, strict=True)), Verdict.RIGHT, time * factor, descriptors=descriptors,
                advice=("memory", "It is limited by memory.", DIRECTIVES[named]),
            ))  # fmt: skip
    base = next(row.time_us or 0.0 for row in like.rows if row.recipe == 0 and not row.habit and not row.bug)
    for row in like.rows:
        if row.habit:
            rows.append(replace(row, recipe=0, time_us=times[0] + (row.time_us or 0.0) - base))
        elif row.bug:
            rows.append(replace(row, recipe=0))
    recipes = tuple({"expert": "made", **design} for design in designs)
    return replace(
        like, op=f"made k={k} #{seed}", device="made", recipes=recipes, tunes=(TUNE,) * len(recipes), rows=tuple(rows)
    )  # fmt: skip


def lands(like: Land, ks: Sequence[int] = (1, 3), each: int = 4) -> tuple[Land, ...]:
    """Some of each ruggedness."""
    return tuple(made(like, k, seed) for k in ks for seed in range(each))


def _gains(design: Mapping[str, str], known: Mapping[tuple[str, ...], float]) -> dict[str, float]:
    """What the best single change of each choice gains, in µs."""
    now = known[tuple(design.values())]
    return {
        name: now - min(known[tuple({**design, name: value}.values())] for value in values if value != design[name])
        for name, values in CHOICES.items()
    }
