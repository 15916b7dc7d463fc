"""How fast the built-in experts are, with no model and no tokens: each op's best variant against eager, torch.compile and the floor."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from workbench.bench.ops import OPS
from workbench.candidate import Backend, Candidate, Evaluation, Mode
from workbench.errors import MisuseError
from workbench.events import Prepared
from workbench.records import encode
from workbench.task import Task

EVALUATIONS = 40
"""Of one op at most; structures come first, then tunable points."""


@dataclass(frozen=True)
class Row:
    """One op's result. Times in µs; `modelled` where nothing was measured; `error` says why there is no best.

    `best_of` has the fastest of each kind that was judged: ``triton`` and ``cuda`` for the experts, ``inductor`` for Inductor's own.
    `seconds` are all of the op's; `prepare_s` of them its qualification and baselines took.
    """

    op: str
    eager_us: float | None = None
    compile_us: float | None = None
    best_us: float | None = None
    floor_us: float | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    evaluations: int = 0
    seconds: float = 0.0
    prepare_s: float = 0.0
    verdicts: Mapping[str, int] = field(default_factory=dict)
    modelled: bool = False
    error: str = ""
    source: str = ""
    trials: tuple[Mapping[str, Any], ...] = ()
    best_of: Mapping[str, float] = field(default_factory=dict)

    @property
    def of_floor(self) -> float | None:
        """Floor over best, 0 to 1."""
        return self.floor_us / self.best_us if self.floor_us and self.best_us else None

    @property
    def ratio(self) -> float | None:
        """The faster baseline over best."""
        baselines = [time for time in (self.eager_us, self.compile_us) if time]
        return min(baselines) / self.best_us if baselines and self.best_us else None


@dataclass(frozen=True)
class Table:
    """All rows, and how they are shown."""

    rows: tuple[Row, ...]

    def markdown(self) -> str:
        kinds = self.kinds
        head = ["op", "eager µs", "compile µs", *(_KINDS[kind] for kind in kinds), "best µs", "floor µs", "of floor", "vs faster"]
        head += ["evaluations", "seconds", "recipe"]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *(line(row, kinds) for row in self.rows)]
        if any(row.modelled for row in self.rows):
            lines += ["", "Times are modelled: nothing was measured here."]
        return "\n".join(lines) + "\n"

    def write(self, out: str | Path, name: str, last: str = "") -> None:
        """Into a folder, as JSON and as a table with `last` below it."""
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(self.json(), encoding="utf-8")
        (folder / f"{name}.md").write_text(self.markdown() + last, encoding="utf-8")

    @property
    def kinds(self) -> tuple[str, ...]:
        """What was judged side by side; empty where there is one kind alone."""
        found = {kind for row in self.rows for kind in row.best_of}
        return tuple(kind for kind in _KINDS if kind in found) if len(found) > 1 else ()

    def json(self) -> str:
        return json.dumps([{**encode(row), "of_floor": row.of_floor, "ratio": row.ratio} for row in self.rows], indent=1)


def run(
    device: str = "auto", ops: Iterable[str] | None = None, mode: Mode = "full", out: str | Path | None = None, seed: int | None = None,
    evaluations: int = EVALUATIONS, references: Sequence[Path] = (), backends: Sequence[Backend] = ("triton",),
) -> Table:  # fmt: skip
    """Judges every structure of every fitting expert on each op, tunes the fastest, and judges the best one in `mode`.

    Args:
        device: ``auto``, ``cuda`` or ``cpu``; without a GPU all times are modelled.
        ops: names in `ops.OPS`; all by default, none where there are `references`.
        references: reference files to take in place of them.
        mode: of the last judging of each op's best.
        out: a folder for ``experts.json`` and ``experts.md``, written after each op.
        seed: of the judge's draws, to repeat a run.
        evaluations: of one op at most, before the last one.
        backends: of the experts: CUDA C++ is judged on a GPU only.

    Raises:
        MisuseError: an op that is not in the list.
    """
    chosen = {path.stem: path for path in references}
    names = tuple(ops or (chosen or OPS))
    for name in names:
        if name not in chosen and name not in OPS:
            raise MisuseError(f"no such op {name!r}: choose among {', '.join(OPS)}")
    return asyncio.run(_all({name: chosen.get(name) or OPS[name] for name in names}, device, mode, out, seed, evaluations, backends))


async def _all(
    references: Mapping[str, str | Path], device: str, mode: Mode, out: str | Path | None, seed: int | None, evaluations: int,
    backends: Sequence[Backend],
) -> Table:  # fmt: skip
    from workbench.bench.expert_judging import Lane

    rows: list[Row] = []
    lane = Lane(device=device, mode=mode, seed=seed, evaluations=evaluations, backends=backends)
    try:
        for name, reference in references.items():
            rows.append(await lane.row(name, reference))
            print(line(rows[-1], Table(tuple(rows)).kinds), file=sys.stderr, flush=True)
            if out is not None:
                Table(tuple(rows)).write(out, "experts")
    finally:
        await lane.close()
    return Table(tuple(rows))


def seeds(task: Task, backends: Sequence[Backend] = ("triton",)) -> Iterator[Candidate]:
    """Every different source that the fitting experts can write for this task; of several backends in turns, so that none is late."""
    each = [_seeds_of(task, backend) for backend in backends]
    found = (candidate for turn in itertools.zip_longest(*each) for candidate in turn if candidate is not None)
    for number, candidate in enumerate(found, 1):
        yield replace(candidate, id=f"k{number}")


def _seeds_of(task: Task, backend: Backend) -> Iterator[Candidate]:
    from workbench.knowledge import experts

    seen: set[str] = set()
    recipes = [
        (changes, match.expert, chosen)
        for match in experts.match(task, (backend,))
        for changes, chosen in _by_changes(experts.choices(match.expert, task))
    ]
    # Each expert's default first, then one choice changed: a short look sees every idea once.
    for _, expert, chosen in sorted(recipes, key=lambda recipe: recipe[0]):
        try:
            source = experts.write(expert, task, chosen)
        except experts.UnsupportedError:
            continue
        if source in seen:
            continue
        seen.add(source)
        recipe = {"expert": expert, **chosen}
        yield Candidate(f"k{len(seen)}", experts.backend(expert), source, task.candidate_entry, recipe, proposer="experts")


def _by_changes(space: Mapping[str, Sequence[Any]]) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """Every recipe, with how many choices differ from their defaults, and where: earlier names and values come first."""
    for places in itertools.product(*(range(len(values)) for values in space.values())):
        changed = [number for number, place in enumerate(places) if place]
        order = (len(changed), *changed, *(places[number] for number in changed))
        yield order, {name: values[place] for (name, values), place in zip(space.items(), places, strict=True)}


def row_from(
    name: str, prepared: Prepared, best: Candidate | None, final: Evaluation | None, judged: Sequence[tuple[Candidate, Evaluation]]
) -> Row:
    """What came of one op; `final` is the last judging of its `best`."""
    times = {baseline.name: baseline.timing.median_us if baseline.timing else None for baseline in prepared.baselines}
    verdicts: dict[str, int] = {}
    for _, evaluation in judged:
        verdicts[evaluation.verdict.value] = verdicts.get(evaluation.verdict.value, 0) + 1
    trials = tuple(
        {
            "recipe": dict(candidate.recipe), "parameters": dict(evaluation.parameters), "verdict": evaluation.verdict.value,
            "time_us": evaluation.time_us, "reason": evaluation.reason, "mode": evaluation.mode,
            "stage_ms": {stage: round(ms) for stage, ms in evaluation.stage_ms.items()},
        }
        for candidate, evaluation in judged
    )  # fmt: skip
    return Row(
        name, times.get("eager"), times.get("compile"), final.time_us if final else None, prepared.floor_us,
        best.recipe if best else {}, final.parameters if final else {}, len(judged), verdicts=verdicts,
        modelled=bool(final and final.timing and final.timing.modelled), source=best.source if best else "", trials=trials,
        best_of=_best_of(judged),
    )  # fmt: skip


_KINDS = {"triton": "Triton µs", "cuda": "CUDA µs", "inductor": "Inductor's own µs"}


def kind_of(candidate: Candidate) -> str:
    """``triton``, ``cuda`` or ``inductor``, see `Row.best_of`."""
    return "inductor" if candidate.proposer == "inductor" else candidate.backend


def _best_of(judged: Sequence[tuple[Candidate, Evaluation]]) -> dict[str, float]:
    """The fastest time of each kind; in quick mode, as all were judged in."""
    best: dict[str, float] = {}
    for candidate, evaluation in judged:
        if evaluation.time_us and evaluation.mode == "quick":
            best[kind_of(candidate)] = min(evaluation.time_us, best.get(kind_of(candidate), evaluation.time_us))
    return best


def row_of(data: Mapping[str, Any]) -> Row:
    """A row from what `Table.json` wrote of it."""
    names = {field.name for field in fields(Row)}
    return Row(**{name: value for name, value in data.items() if name in names})


def line(row: Row, kinds: Sequence[str] = ()) -> str:
    """One row of the table, with columns for `kinds`."""
    recipe = ", ".join(f"{key}={value}" for key, value in {**row.recipe, **row.parameters}.items())
    share = f"{row.of_floor:.0%}" if row.of_floor else "-"
    ratio = f"{row.ratio:.2f}×" if row.ratio and not row.modelled else "-"
    cells = [
        row.op,
        _us(row.eager_us),
        _us(row.compile_us),
        *(_us(row.best_of.get(kind)) for kind in kinds),
        _us(row.best_us),
        _us(row.floor_us),
        share,
        ratio,
    ]
    return "| " + " | ".join([*cells, str(row.evaluations), f"{row.seconds:.0f}", row.error or recipe]) + " |"


def _us(time_us: float | None) -> str:
    return f"{time_us:.1f}" if time_us else "-"
