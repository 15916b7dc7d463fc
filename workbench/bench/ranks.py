"""Does the model rank variants as a GPU does? Takes a table that `bench experts` measured on one, and models its variants here.

Nothing of the table went into the model, so this is the model's test. Three figures: the rank correlation over all variants of all ops,
the mean of each op's own, which says more about a search, and how many pairs of one op that a GPU tells apart by more than five percent
the model puts in the same order.
"""

from __future__ import annotations

import asyncio
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from workbench.bench import kernelbench
from workbench.bench.experts import Row, row_of
from workbench.bench.ops import OPS
from workbench.candidate import Candidate
from workbench.errors import MisuseError, WorkbenchError
from workbench.fleet import Local
from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.inductor import PROPOSER
from workbench.records import encode
from workbench.task import Task

APART = 0.05
"""Of two measured times, relative: closer ones change places from one measurement to the next."""

LEAST = 4
"""Variants of an op, below which a rank correlation of its own says nothing."""


@dataclass(frozen=True)
class Pair:
    """One variant. Times in µs; `modelled_us` is None where there is no model of it, and `reason` says why."""

    op: str
    recipe: Mapping[str, Any]
    parameters: Mapping[str, Any]
    measured_us: float
    modelled_us: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Ranks:
    """What was compared, and the figures; each is None where there is too little for it."""

    pairs: tuple[Pair, ...]

    @property
    def known(self) -> tuple[Pair, ...]:
        """Those that have both times."""
        return tuple(pair for pair in self.pairs if pair.modelled_us is not None)

    @property
    def by_op(self) -> dict[str, tuple[Pair, ...]]:
        """Those that have both times, for each op that has any."""
        found: dict[str, list[Pair]] = {}
        for pair in self.known:
            found.setdefault(pair.op, []).append(pair)
        return {op: tuple(pairs) for op, pairs in found.items()}

    @property
    def overall(self) -> float | None:
        """Rank correlation of all variants."""
        return spearman(self.known)

    @property
    def within(self) -> float | None:
        """Mean of the rank correlations of each op's own variants."""
        found = [one for pairs in self.by_op.values() if len(pairs) >= LEAST and (one := spearman(pairs)) is not None]
        return statistics.fmean(found) if found else None

    @property
    def ordered(self) -> tuple[int, int]:
        """Pairs of one op that the model puts in the GPU's order, of how many that the GPU tells apart."""
        right = told = 0
        for pairs in self.by_op.values():
            for one, other in combinations(pairs, 2):
                if abs(math.log(one.measured_us / other.measured_us)) > APART:
                    told += 1
                    right += (one.measured_us - other.measured_us) * ((one.modelled_us or 0.0) - (other.modelled_us or 0.0)) > 0
        return right, told

    def markdown(self) -> str:
        lines = ["| op | variants | rank correlation | modelled over measured |", "|---|---|---|---|"]
        for op, pairs in self.by_op.items():
            own = spearman(pairs) if len(pairs) >= LEAST else None
            off = statistics.median((pair.modelled_us or 0.0) / pair.measured_us for pair in pairs)
            lines.append(f"| {op} | {len(pairs)} | {_figure(own)} | {off:.2f} |")
        right, told = self.ordered
        lines += ["", f"rank correlation over {len(self.known)} variants of {len(self.by_op)} ops: {_figure(self.overall)}"]
        lines += [f"within an op, mean: {_figure(self.within)}"]
        lines += [f"pairs of one op that are more than {APART:.0%} apart and in the right order: {right} of {told}"]
        if left := len(self.pairs) - len(self.known):
            reasons = sorted({pair.reason for pair in self.pairs if pair.modelled_us is None})
            lines += [f"without a model: {left} ({'; '.join(reasons[:5])})"]
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        right, told = self.ordered
        figures = {"overall": self.overall, "within": self.within, "ordered": right, "of": told}
        return json.dumps({**figures, "pairs": encode(self.pairs)}, indent=1)


def spearman(pairs: Sequence[Pair]) -> float | None:
    """The rank correlation of measured and modelled times; equal ones share their ranks. None where all ranks of one side are equal."""
    return correlation([pair.measured_us for pair in pairs], [pair.modelled_us or 0.0 for pair in pairs])


def correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The rank correlation of two lists, see `spearman`."""
    try:
        return statistics.correlation(_places(one), _places(other))
    except statistics.StatisticsError:
        return None


def _places(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(order)))}
    return [first[value] + (order.count(value) - 1) / 2 for value in values]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def read(path: Path) -> tuple[Row, ...]:
    """The rows of a table that `bench experts` wrote.

    Raises:
        MisuseError: it is none, or nothing in it was measured.
    """
    try:
        rows = tuple(row_of(row) for row in json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise MisuseError(f"{path}: {error}: give the .json that `bench experts --out DIR` wrote on a machine with a GPU") from error
    measured = tuple(row for row in rows if not row.modelled and any(trial.get("time_us") for trial in row.trials))
    if not measured:
        raise MisuseError(f"{path}: none of its times was measured: make the table on a machine with a GPU")
    return measured


def run(
    rows: Sequence[Row], *, checkout: Path | None = None, level: int = 1, most: int = 12, tell: Callable[[Pair], None] | None = None
) -> Ranks:  # fmt: skip
    """Models each op's variants.

    Args:
        rows: as measured.
        checkout: of KernelBench, for rows of its tasks.
        most: variants of one op, spread over its times.
        tell: gets each pair as it comes.
    """
    files = {path.stem: path for path in kernelbench.tasks(checkout, level)} if checkout else {}
    return Ranks(tuple(asyncio.run(_all(rows, files, most, tell or (lambda pair: None)))))


async def _all(rows: Sequence[Row], files: Mapping[str, Path], most: int, tell: Callable[[Pair], None]) -> list[Pair]:
    from workbench.bench.expert_judging import captured

    pairs: list[Pair] = []
    fleet: Local | None = None
    try:
        for row in rows:
            chosen = list(_chosen(row, most))
            if (reference := files.get(row.op) or OPS.get(row.op)) is None:
                pairs += [replace(pair, reason="its op is not known here: name the checkout") for pair in chosen]
                continue
            try:
                task = captured(row.op, reference)
                if fleet is None:
                    fleet = Local(task, device="cpu")
                else:
                    await fleet.turn(task, device="cpu")
            except WorkbenchError as error:
                pairs += [replace(pair, reason=str(error)) for pair in chosen]
                continue
            for number, pair in enumerate(chosen):
                pairs.append(await _modelled(fleet, task, pair, f"k{number}"))
                tell(pairs[-1])
    finally:
        if fleet is not None:
            await fleet.close()
    return pairs


def _chosen(row: Row, most: int) -> Iterator[Pair]:
    """An op's variants in Triton, as many as are wanted, evenly over their times."""
    found: dict[str, Pair] = {}
    for trial in row.trials:
        recipe = dict(trial.get("recipe") or {})
        if (time := trial.get("time_us")) and recipe.get("expert") not in (None, PROPOSER):
            key = json.dumps([recipe, trial.get("parameters")], sort_keys=True)
            found.setdefault(key, Pair(row.op, recipe, dict(trial.get("parameters") or {}), float(time)))
    ordered = sorted((pair for pair in found.values() if _interpretable(pair)), key=lambda pair: pair.measured_us)
    count = min(most, len(ordered))
    yield from (ordered[round(place * (len(ordered) - 1) / max(1, count - 1))] for place in range(count))


def _interpretable(pair: Pair) -> bool:
    from workbench.knowledge import experts

    try:
        return experts.backend(pair.recipe["expert"]) == "triton"
    except WorkbenchError:
        return False


async def _modelled(fleet: Local, task: Task, pair: Pair, name: str) -> Pair:
    from workbench.knowledge import experts

    choices = {key: value for key, value in pair.recipe.items() if key != "expert"}
    try:
        source = experts.write(pair.recipe["expert"], task, choices)
    except (WorkbenchError, UnsupportedError) as error:
        return replace(pair, reason=f"its expert writes it no more: {error}")
    candidate = Candidate(name, "triton", source, task.candidate_entry, pair.recipe)
    found = await fleet.evaluate(candidate, pair.parameters, id=f"{name}.0")
    if found.time_us is None or found.timing is None or not found.timing.modelled:
        return replace(pair, reason=found.reason or "; ".join(found.labels))
    return replace(pair, modelled_us=found.time_us)


def main(path: Path, checkout: Path | None, level: int, most: int, as_json: bool) -> int:
    """Prints the figures. 0 where the ranks correlate by 0.8 at least, over all."""

    def tell(pair: Pair) -> None:
        modelled = f"{pair.modelled_us:.1f} µs modelled" if pair.modelled_us is not None else pair.reason
        print(f"{pair.op}: {pair.measured_us:.1f} µs measured, {modelled}", file=sys.stderr, flush=True)

    ranks = run(read(path), checkout=checkout, level=level, most=most, tell=tell)
    print(ranks.json() if as_json else ranks.markdown())
    return 0 if (ranks.overall or 0.0) >= 0.8 else 1
