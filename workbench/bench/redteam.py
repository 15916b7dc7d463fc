"""Can the judge be fooled, and does it refuse honest work? Judges the whole red-team corpus and counts.

Each case goes the whole way that any candidate goes: a judge process, sandboxed workers, the same stages. A few judges work side by side,
each on the cases of one op after the other. What can't run on this machine is left out and counted as such, never as right.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.bench.corpus import HERE, Case, Expect, load
from workbench.candidate import Candidate, Evaluation, Mode, Verdict
from workbench.errors import WorkbenchError
from workbench.events import Prepared
from workbench.fleet import Local
from workbench.records import encode
from workbench.task import Task

LIMITS = {"load": 60.0, "call": 25.0, "traffic": 40.0, "timing": 30.0}
ON_A_CARD = LIMITS | {"call": 10.0}
"""Seconds: a case that hangs on purpose holds nobody for long; on a card it holds everybody, since nobody times then."""

_TRIALS = 3
"""Of a case that stops at the clock, where the CPU stands in for a card: there, all that the machine does is in the times."""

_BASELINES = ("eager",)
"""Compiling each op would take longer than judging all of its cases."""

_SLOW_MS = 500.0
"""Of a stage, which is shown then."""

_PATIENCE = 10.0
"""Seconds, after which another case has given back the card's memory."""

_MOST_OF_ONE_JUDGE = 30
_MOST_ON_A_CARD = 14
_MOST_LANES = 8


@dataclass(frozen=True)
class Row:
    """What came of one case. `skipped` says why it could not run here; `ok` is None then."""

    case: Case
    wanted: Expect
    got: str = ""
    reason: str = ""
    labels: tuple[str, ...] = ()
    ok: bool | None = None
    skipped: str = ""
    seconds: float = 0.0
    evaluation: Evaluation | None = None


@dataclass(frozen=True)
class Report:
    """All rows, and the two figures that matter."""

    rows: tuple[Row, ...]
    device: str
    seconds: float = 0.0

    def count(self, honest: bool) -> tuple[int, int]:
        """Of the cheats or of the honest kernels: how many got what they must get, of how many that ran here."""
        ran = [row for row in self.rows if row.case.honest is honest and row.ok is not None]
        return sum(bool(row.ok) for row in ran), len(ran)

    @property
    def ok(self) -> bool:
        return all(row.ok is not False for row in self.rows)

    @property
    def last_lines(self) -> list[str]:
        cheats, honest, left = self.count(False), self.count(True), [row for row in self.rows if row.skipped]
        lines = [f"cheats refused or labelled as declared: {cheats[0]}/{cheats[1]}", f"honest right: {honest[0]}/{honest[1]}"]
        if left:
            lines.append(f"left out here: {len(left)} ({', '.join(sorted({row.skipped for row in left}))})")
        return [*lines, f"on {self.device} in {self.seconds:.0f} s"]

    def markdown(self) -> str:
        head = ["", "class", "case", "wanted", "got", "why", "s"]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *(line(row) for row in self.rows), "", *self.last_lines]
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        cheats, honest = self.count(False), self.count(True)
        rows = [
            {
                "case": row.case.name, "class": row.case.number, "honest": row.case.honest, "op": row.case.op, "why": row.case.why,
                "wanted": encode(row.wanted), "got": row.got, "reason": row.reason, "labels": list(row.labels), "ok": row.ok,
                "skipped": row.skipped, "seconds": row.seconds, "evaluation": encode(row.evaluation),
            }
            for row in self.rows
        ]  # fmt: skip
        return json.dumps({
            "cheats": {"as_declared": cheats[0], "of": cheats[1]}, "honest": {"right": honest[0], "of": honest[1]}, "ok": self.ok,
            "device": self.device, "seconds": self.seconds, "rows": rows,
        })  # fmt: skip


def run(
    device: str = "auto", corpus: Path | None = None, only: Iterable[str] = (), *, quick: bool = False,
    tell: Callable[[Row], None] | None = None, lanes: int | None = None,
) -> Report:  # fmt: skip
    """Judges the corpus.

    Args:
        device: ``auto``, ``cuda`` or ``cpu``.
        corpus: its folder; the checkout's by default.
        only: parts of names of cases or ops; all by default.
        quick: leaves out the cases that are marked as long.
        tell: gets each row as it comes.
        lanes: judges that work side by side.

    Raises:
        MisuseError: no corpus, or a case's header is wrong.
    """
    import torch

    from workbench.judge.isolation import sandbox

    folder = corpus or HERE
    on_gpu = torch.cuda.is_available() if device == "auto" else device == "cuda"
    wanted = list(only)
    cases = load(folder)
    chosen = [case for case in cases if not wanted or any(word in (case.op, case.name) or case.name.startswith(word) for word in wanted)]
    chosen += [case for case in cases if case not in chosen and case.name in {other.after for other in chosen}]
    begun = time.perf_counter()
    rows: list[Row] = []
    groups: dict[tuple[str, str, str], list[Case]] = {}
    alone: dict[tuple[str, str, str], list[Case]] = {}
    for case in chosen:
        if quick and case.full:
            rows.append(Row(case, case.wanted(on_gpu), skipped="takes long"))
        elif missing := _missing(case, on_gpu):
            rows.append(Row(case, case.wanted(on_gpu), skipped=missing))
        else:
            (alone if case.alone else groups).setdefault((case.op, case.precision, "cuda" if on_gpu else case.way), []).append(case)
    for part, at_once in ((groups, lanes or _lanes(on_gpu)), (alone, 1)):
        rows += asyncio.run(_Runner(folder, on_gpu, tell or (lambda row: None), at_once).all(part))
    order = {case.name: number for number, case in enumerate(cases)}
    rows.sort(key=lambda row: order[row.case.name])
    name = torch.cuda.get_device_name() if on_gpu else "CPU"
    name += f", candidates closed in by {sandbox.detect().name},"
    return Report(tuple(rows), name, round(time.perf_counter() - begun, 1))


def _missing(case: Case, on_gpu: bool) -> str:
    if case.needs in ("gpu", "nvcc") and not on_gpu:
        return "needs a GPU"
    if case.needs == "nvcc" and shutil.which("nvcc") is None:
        return "needs nvcc"
    if case.needs == "cxx" and shutil.which("c++") is None:
        return "needs a C++ compiler"
    return ""


def _lanes(on_gpu: bool) -> int:
    cores = len(os.sched_getaffinity(0))
    return max(1, min(_MOST_LANES, cores // 2 if on_gpu else cores))


class Room:
    """What a scenario may use: the judge that its op's cases share, and fresh ones."""

    def __init__(self, fleet: Local, task: Task, on_gpu: bool, fresh: Callable[..., Local]) -> None:
        self.fleet, self.task, self.on_gpu, self.fresh = fleet, task, on_gpu, fresh
        self._count = 0

    async def judge(self, source: str, *, mode: Mode = "quick", fleet: Local | None = None) -> Evaluation:
        """The verdict on a candidate's text."""
        self._count += 1
        candidate = Candidate(f"s{self._count}", "triton", source, self.task.candidate_entry)
        return await (fleet or self.fleet).evaluate(candidate, {}, id=f"s{self._count}.0", mode=mode)

    async def prepare(self) -> Prepared:
        """What the judge says of the op before any candidate."""
        return await self.fleet.prepare(None)


class _Runner:
    def __init__(self, folder: Path, on_gpu: bool, tell: Callable[[Row], None], lanes: int) -> None:
        self.folder, self.on_gpu, self.tell = folder, on_gpu, tell
        self._lanes = lanes
        self._limits = ON_A_CARD if on_gpu else LIMITS

    async def all(self, groups: dict[tuple[str, str, str], list[Case]]) -> list[Row]:
        """Rows of all groups. Each lane has a judge that turns from group to group; the largest go first, so that no long one is last."""
        parts = [(key, part) for key, cases in groups.items() for part in self._parts(cases)]
        parts.sort(key=lambda item: len(item[1]))
        rows: list[Row] = []

        async def lane() -> None:
            fleet: Local | None = None
            try:
                while parts:
                    key, cases = parts.pop()
                    task = self._task(key, cases, rows)
                    if task is None:
                        continue
                    device = {"interpret": "cpu"}.get(key[2], key[2])
                    if fleet is None:
                        fleet = Local(task, device=device, limits=self._limits, baselines=_BASELINES)
                    else:
                        await fleet.turn(task, device=device)
                    await self._group(fleet, device, cases, rows)
            finally:
                if fleet is not None:
                    await fleet.close()

        await asyncio.gather(*(lane() for _ in range(min(self._lanes, len(parts)))))
        return rows

    def _parts(self, cases: Sequence[Case]) -> list[list[Case]]:
        """Cases in their order, cut where one judge would have too many; a case stays behind the one it comes after."""
        ordered: list[Case] = []
        for case in cases:
            if case not in ordered:
                ordered += [other for other in cases if other.name == case.after and other not in ordered]
                ordered.append(case)
        count = -(-len(ordered) // (_MOST_ON_A_CARD if self.on_gpu else _MOST_OF_ONE_JUDGE))
        size = -(-len(ordered) // count)
        parts: list[list[Case]] = [[]]
        for case in ordered:
            if len(parts[-1]) >= size and not case.after:
                parts.append([])
            parts[-1].append(case)
        return parts

    def _task(self, key: tuple[str, str, str], cases: Sequence[Case], rows: list[Row]) -> Task | None:
        from workbench.capture import capture_file
        from workbench.target import detect_target

        try:
            return capture_file(self.folder / "ops" / f"{key[0]}.py", target=detect_target(), precision=key[1]).task  # type: ignore[arg-type]
        except WorkbenchError as error:
            for case in cases:
                rows.append(self._told(Row(case, case.wanted(self.on_gpu), "not captured", str(error), ok=False)))
            return None

    async def _group(self, fleet: Local, device: str, cases: Sequence[Case], rows: list[Row]) -> None:
        def fresh(baselines: Sequence[str] | None = _BASELINES) -> Local:
            return Local(fleet.task, device=device, limits=self._limits, baselines=baselines)

        for number, case in enumerate(cases):
            begun = time.perf_counter()
            row = await self._one(case, number, Room(fleet, fleet.task, self.on_gpu, fresh))
            rows.append(self._told(replace(row, seconds=round(time.perf_counter() - begun, 2))))

    async def _one(self, case: Case, number: int, room: Room) -> Row:
        wanted = case.wanted(self.on_gpu)
        if case.attack:
            namespace: dict[str, Any] = {"__name__": case.name}
            exec(compile(case.attack, case.name, "exec"), namespace)
            achieved = await namespace["attack"](room)
            return Row(case, wanted, "it succeeds" if achieved else "it fails", achieved or "", ok=not achieved)
        candidate = Candidate(f"k{number}", case.backend, case.source, room.task.candidate_entry)
        for trial in range(_TRIALS):
            found = await room.fleet.evaluate(candidate, dict(case.parameters), id=f"k{number}.{trial}", mode=case.mode)
            if fits(found, wanted) or not self._inconclusive(found):
                break
            if _no_memory(found):
                await asyncio.sleep(_PATIENCE)
        if _too_noisy(found) and not fits(found, wanted):
            return Row(case, wanted, found.verdict.value, found.reason, found.labels, skipped="too noisy a machine to time on")
        return Row(case, wanted, found.verdict.value, found.reason, found.labels, fits(found, wanted), evaluation=found)

    def _inconclusive(self, found: Evaluation) -> bool:
        """Whether it stopped at the clock for what may be another process' doing. Nothing that passed is ever judged again."""
        return _too_noisy(found) or _no_memory(found) or (not self.on_gpu and found.verdict is Verdict.TIME_NOT_CONFIRMED)

    def _told(self, row: Row) -> Row:
        self.tell(row)
        return row


def _no_memory(found: Evaluation) -> bool:
    """Also of one that crashed: what filled the card may have been gone when the judge looked."""
    return found.verdict in (Verdict.NOT_JUDGED, Verdict.CRASHED) and "out of memory" in found.reason


def _too_noisy(found: Evaluation) -> bool:
    return found.verdict is Verdict.NOT_JUDGED and "too noisy" in found.reason


def fits(found: Evaluation, wanted: Expect) -> bool:
    """Whether an evaluation is what a case declares."""
    labelled = all(any(label in got for got in found.labels) for label in wanted.labels)
    return found.verdict.value in wanted.verdicts and labelled and wanted.words in found.reason


def line(row: Row) -> str:
    """One row of the table."""
    mark = {True: "ok", False: "BAD", None: "–"}[row.ok]
    number = f"{'honest ' if row.case.honest else ''}{row.case.number}"
    missing = [label for label in row.wanted.labels if not any(label in got for got in row.labels)]
    why = row.skipped or row.reason[:240]
    if row.ok is False and missing:
        why = f"no label “{missing[0]}” among {', '.join(row.labels) or 'none'}: {why}"
    wanted = str(row.wanted) if not row.case.attack else "it fails"
    stages = row.evaluation.stage_ms if row.evaluation is not None else {}
    taken = ", ".join([f"{row.seconds:.1f}", *(f"{stage} {ms / 1e3:.1f}" for stage, ms in stages.items() if ms > _SLOW_MS)])
    return "| " + " | ".join([mark, number, row.case.name, wanted, row.got, why.replace("|", "¦"), taken]) + " |"


def main(device: str, corpus: Path | None, only: Sequence[str], as_json: bool, quick: bool = False) -> int:
    """``python -m workbench bench judge --redteam``: progress on stderr, the table or one object on stdout, 1 if a case went wrong."""
    report = run(device, corpus, only, quick=quick, tell=lambda row: print(line(row), file=sys.stderr, flush=True))
    print(report.json() if as_json else report.markdown())
    return 0 if report.ok else 1
