"""Real verdicts for the benchmark of the search: variants of expert kernels, sound and broken, each judged once and kept in a table.

The table is recorded by ``python -m workbench bench search --record FILE`` from the judge of this machine, and ships with the package. A
*design* is what a programmer would write: an expert's structural choices, launcher habits that cost time, and at most one mistake. All
choices and tunable points of all experts that fit an op are judged as they are; habits and mistakes are judged on the default choices, and
stand for the same habit or mistake elsewhere (a habit is one more launch or copy, so its time is added). Diagnoses are not kept: they are
made of the recorded figures by today's `explain.diagnosis`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.bench.ops import OPS
from workbench.candidate import Candidate, ModelledTime, Resources, Verdict, Witness
from workbench.records import decode, encode
from workbench.task import Task

TABLE = Path(__file__).with_name("landscape.json")

RECORDED = (
    "rmsnorm_bf16", "softmax_bf16", "cross_entropy_bf16", "layernorm_fp32", "argmax_fp32", "mean_square_error_fp32",
    "transpose_add_fp32", "matmul_bias_relu_bf16",
)  # fmt: skip
POINTS = 8
"""Tunable points of one structure that are judged at most: names with the most values are thinned first, defaults stay."""


def _in_launcher(line: str) -> Callable[[str, str], str]:
    """Adds a line at the top of the launcher; ``X`` in it is the first argument."""

    def mutate(source: str, entry: str) -> str:
        found = re.search(rf"^def {entry}\((\w+)[^\n]*\n", source, re.M)
        return source if not found else source[: found.end()] + f"    {line.replace('X', found[1])}\n" + source[found.end() :]

    return mutate


def _returning(form: str) -> Callable[[str, str], str]:
    """Changes what the launcher returns; ``Y`` in the form is what it returned."""

    def mutate(source: str, entry: str) -> str:
        head, launcher, body = source.rpartition(f"def {entry}(")
        return (
            head
            + launcher
            + re.sub(r"^    return (.+)$", lambda found: f"    return {form.replace('Y', f'({found[1]})')}", body, flags=re.M)
        )

    return mutate


def _replacing(pattern: str, by: str) -> Callable[[str, str], str]:
    return lambda source, entry: re.sub(pattern, by, source, count=1)


HABITS: Mapping[str, Callable[[str, str], str]] = {
    "copies its input": _in_launcher("X = X.clone()"),
    "copies its output": _returning("Y.clone()"),
}
"""What costs time and no correctness: each is one more kernel with its traffic."""

BUGS: Mapping[str, Callable[[str, str], str]] = {
    "calls a function that is not there": _replacing(r"tl\.program_id\(0\)", "tl.program_index(0)"),
    "range from one": _replacing(r"tl\.arange\(0, ", "tl.arange(1, "),
    "asks for a dimension that is not there": _in_launcher("X.stride(9)"),
    "mask one short": _replacing(r"(\w+) < (N|n|M|total|size|numel)\b", r"\1 < \2 - 1"),
    "result scaled": _returning("Y * 1.0625"),
    "result rounded": _returning("Y.to(torch.float8_e4m3fn).to(Y.dtype)"),
}
"""Mistakes, each of a kind that programmers make. One that does not apply to an op's kernels is not in its table."""


@dataclass(frozen=True)
class Row:
    """One design at one point of its tunable space, and what the judge found of it: enough to diagnose it.

    `recipe` is a place in the land's list; `habit` and `bug` are names, empty for none, and only one of the two is given. Where there is
    `advice` (kind, summary, directive), it is the diagnosis.
    """

    recipe: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict = Verdict.NOT_JUDGED
    time_us: float | None = None
    matched: float | None = None
    reason: str = ""
    habit: str = ""
    bug: str = ""
    witness: Witness | None = None
    labels: tuple[str, ...] = ()
    resources: tuple[Resources, ...] = ()
    modelled: ModelledTime | None = None
    descriptors: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


@dataclass(frozen=True)
class Land:
    """One op: its task, floor, and all that was judged.

    Attributes:
        recipes: ``{"expert": name, **choices}``, the default choices of the best expert first.
        tunes: the tunable space of each recipe.
    """

    op: str
    task: Task
    floor_us: float
    device: str
    recipes: tuple[Mapping[str, Any], ...]
    tunes: tuple[Mapping[str, tuple[Any, ...]], ...]
    rows: tuple[Row, ...]


def load(path: Path = TABLE) -> tuple[Land, ...]:
    """The recorded lands."""
    with path.open(encoding="utf-8") as lines:
        return tuple(decode(Land, json.loads(line)) for line in lines if line.strip())


def record(path: Path, ops: Sequence[str] = RECORDED) -> None:
    """Judges everything, and writes one JSON line an op. Takes about three seconds a design on a machine without a GPU."""
    done = {land.op: land for land in (load(path) if path.exists() else ())}
    for op in ops:
        if op not in done:
            done[op] = asyncio.run(_record(op))
            path.write_text("".join(map(_line, done.values())), encoding="utf-8")
            print(f"{op}: {len(done[op].rows)} designs judged", file=sys.stderr, flush=True)


def _line(land: Land) -> str:
    """One line of the table. Of a row only what is not as it is by default."""
    data = encode(land)
    plain = encode(Row(-1))
    data["rows"] = [{key: value for key, value in row.items() if value != plain[key]} for row in data["rows"]]
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"


async def _record(op: str) -> Land:
    from workbench.build.tune import read_tune
    from workbench.capture import capture_file
    from workbench.explain.strategy import describe
    from workbench.fleet import Local

    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"{op}.py"
        file.write_text(OPS[op], encoding="utf-8")
        task = capture_file(file, target="cuda:90").task
    fleet = Local(task, seed=1)
    recipes, sources = zip(*_structures(task), strict=True)
    tunes = tuple(thinned(read_tune(source), POINTS) for source in sources)
    rows: list[Row] = []

    async def judge(place: int, source: str, parameters: Mapping[str, Any], habit: str = "", bug: str = "") -> None:
        name = f"k{len(rows)}"
        candidate = Candidate(name, "triton", source, task.candidate_entry, recipes[place])
        found = await fleet.evaluate(candidate, parameters, id=f"{name}.0")
        if bug and found.verdict.passes:
            print(f"{op}: {bug} passes, so it is no mistake here and not in the table", file=sys.stderr, flush=True)
            return
        rows.append(Row(
            place, dict(parameters), found.verdict, found.time_us, found.matched, "" if found.verdict.passes else found.reason, habit, bug,
            found.witness, found.labels, found.resources, found.modelled, describe(candidate, found),
        ))  # fmt: skip
        print(f"{op}: {len(rows)} judged", file=sys.stderr, flush=True)

    try:
        prepared = await fleet.prepare(None)
        for place, source in enumerate(sources):
            for values in itertools.product(*tunes[place].values()):
                await judge(place, source, dict(zip(tunes[place], values, strict=True)))
        for changes, what in ((HABITS, "habit"), (BUGS, "bug")):
            for name, mutate in changes.items():
                if (changed := mutate(sources[0], task.candidate_entry)) != sources[0]:
                    await judge(0, changed, {}, **{what: name})
    finally:
        await fleet.close()
    return Land(op, task, prepared.floor_us, prepared.device, recipes, tunes, tuple(rows))


def _structures(task: Task) -> Iterator[tuple[dict[str, Any], str]]:
    """Each different source that the fitting experts write, the default choices of the best expert first."""
    from workbench.knowledge import experts

    seen: set[str] = set()
    for match in experts.match(task):
        space = experts.choices(match.expert, task)
        for values in itertools.product(*space.values()):
            chosen = dict(zip(space, values, strict=True))
            try:
                source = experts.write(match.expert, task, chosen)
            except experts.UnsupportedError:
                continue
            if source not in seen:
                seen.add(source)
                yield {"expert": match.expert, **chosen}, source


def thinned(space: Mapping[str, tuple[Any, ...]], most: int) -> dict[str, tuple[Any, ...]]:
    """The space with values taken off the end of its longest names until at most `most` points are left."""
    found = dict(space)
    while found and _size(found) > most and max(map(len, found.values())) > 1:
        longest = max(found, key=lambda name: len(found[name]))
        found[longest] = found[longest][:-1]
    return found


def _size(space: Mapping[str, tuple[Any, ...]]) -> int:
    size = 1
    for values in space.values():
        size *= len(values)
    return size
