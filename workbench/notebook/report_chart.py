"""The progress chart as geometry: what a template needs to draw it as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 920, 330
LEFT, RIGHT, TOP, BOTTOM = 62, 140, 16, 44


@dataclass(frozen=True)
class Point:
    """One evaluation: its number from 1, its time in µs if it has one, its colour, its verdict in words."""

    number: int
    name: str
    time_us: float | None
    kind: str
    verdict: str
    passes: bool


@dataclass(frozen=True)
class Line:
    """A level to compare with, in µs."""

    name: str
    time_us: float


def chart(points: Sequence[Point], lines: Sequence[Line]) -> dict[str, Any]:
    """Places of everything, in a box of `WIDTH` by `HEIGHT`. Times are on a logarithmic scale; those without one lie on the bottom."""
    times = [point.time_us for point in points if point.time_us] + [line.time_us for line in lines if line.time_us > 0]
    low, high = (min(times), max(times)) if times else (1.0, 10.0)
    low, high = low / 1.25, high * 1.25
    most = max(len(points), 2)

    def across(number: float) -> float:
        return round(LEFT + (number - 1) / (most - 1) * (WIDTH - LEFT - RIGHT), 1)

    def down(time: float) -> float:
        share = (math.log(time) - math.log(low)) / (math.log(high) - math.log(low))
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    best: float | None = None
    steps: list[str] = []
    for point in points:
        if point.passes and point.time_us and (best is None or point.time_us < best):
            steps.append(f"L{across(point.number)} {down(best)}" if best is not None else f"M{across(point.number)} {down(point.time_us)}")
            if best is not None:
                steps.append(f"L{across(point.number)} {down(point.time_us)}")
            best = point.time_us
    if best is not None:
        steps.append(f"L{across(most)} {down(best)}")
    levels = [{"name": line.name, "y": down(line.time_us), "text": f"{line.time_us:.4g}"} for line in lines if line.time_us > 0]
    _apart(levels)
    return {
        "width": WIDTH, "height": HEIGHT, "left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM,
        "ticks": [{"y": down(value), "text": f"{value:g}"} for value in _ticks(low, high)],
        "steps": [{"x": across(value), "text": str(value)} for value in _whole(len(points))], "path": " ".join(steps), "levels": levels,
        "points": [
            {"x": across(point.number), "y": down(point.time_us) if point.time_us else HEIGHT - BOTTOM, "kind": point.kind,
             "title": f"{point.name}: {point.verdict}" + (f", {point.time_us:.4g} µs" if point.time_us else ", no time")}
            for point in points
        ],
        "kinds": list(dict.fromkeys((point.kind, point.verdict) for point in points)),
    }  # fmt: skip


def _apart(levels: list[dict[str, Any]]) -> None:
    """Labels that would overlap are moved apart; `label` is where the text goes."""
    before = -100.0
    for level in sorted(levels, key=lambda one: float(one["y"])):
        level["label"] = max(float(level["y"]), before + 15)
        before = level["label"]


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten; fewer where the range is wide."""
    digits = (1, 2, 5) if high / low < 300 else (1,)
    found = [digit * 10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for digit in digits]
    found = [value for value in found if low <= value <= high]
    return found or [float(f"{math.sqrt(low * high):.2g}")]


def _whole(most: int) -> list[int]:
    step = max(1, 10 ** math.floor(math.log10(max(most, 1))))
    while most / step > 10:
        step *= 2
    while step > 1 and most / step < 4:
        step //= 2
    return sorted({1, *range(step, most + 1, step)}) if most > 1 else [1]
