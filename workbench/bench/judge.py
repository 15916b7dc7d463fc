"""How fast and how steady the judge is: what a verdict costs by stage, verdicts a minute, and what it says of identical kernels.

Everything is the real thing: the quick mode of the whole protocol, a fresh worker for each candidate, each text different from all others.
Without a GPU PyTorch on the CPU stands in for the card, which shows what the harness costs, and nothing about kernels.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics as plain_statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.bench import speed_candidates as texts
from workbench.candidate import Candidate, Evaluation
from workbench.records import encode
from workbench.task import Task

_numbers = itertools.count(1)
WITHIN = 0.01
"""How far a repeated median may be from the middle of its kind."""


@dataclass(frozen=True)
class Latency:
    """Of verdicts on one kind of candidate, one after the other: medians in ms, the wall time and that of each stage."""

    kind: str
    verdicts: Mapping[str, int]
    median_ms: float
    worst_ms: float
    stages_ms: Mapping[str, float]
    time_us: float | None


@dataclass(frozen=True)
class Steadiness:
    """Of repeated judgements of one and the same kernel, each in a fresh process.

    `called_faster` counts those in which an exact copy of the baseline was called faster than it; None for other kernels.
    """

    kind: str
    judged: int
    confirmed: int
    median_us: float
    within: float
    called_faster: int | None = None
    ratios: tuple[float, ...] = ()


@dataclass(frozen=True)
class Report:
    """All figures. `device` in words."""

    device: str
    latencies: tuple[Latency, ...]
    steadiness: tuple[Steadiness, ...]
    judges: int
    per_minute: float | None
    verdicts: Mapping[str, int]
    prepared_s: float
    kernelbench: tuple[Mapping[str, Any], ...] = ()

    def json(self) -> str:
        return json.dumps(encode(self), indent=1)

    def markdown(self) -> str:
        """The tables that people read."""
        stages = ("text", "build", "run", "correctness", "timing")
        lines = [
            f"On {self.device}; prepared in {self.prepared_s:.1f} s.", "",
            "| candidate | verdicts | median s | worst s | " + " | ".join(f"{stage} ms" for stage in stages) + " | time µs |",
            "|" + "---|" * (5 + len(stages)),
        ]  # fmt: skip
        for row in self.latencies:
            cells = [f"{row.stages_ms.get(stage, 0):.0f}" for stage in stages]
            taken = f"{row.time_us:.1f}" if row.time_us else "-"
            walls = f"{row.median_ms / 1e3:.2f} | {row.worst_ms / 1e3:.2f}"
            lines.append(f"| {row.kind} | {_said(row.verdicts)} | {walls} | {' | '.join(cells)} | {taken} |")
        if self.per_minute is not None:
            lines += ["", f"{self.per_minute:.0f} verdicts a minute with {self.judges} judges ({_said(self.verdicts)})."]
        if self.steadiness:
            lines += ["", "| kernel | judged | confirmed | median µs | within 1 % | called faster |", "|" + "---|" * 6]
        for steady in self.steadiness:
            faster = "-" if steady.called_faster is None else str(steady.called_faster)
            lines.append(
                f"| {steady.kind} | {steady.judged} | {steady.confirmed} | {steady.median_us:.2f} | {steady.within:.0%} | {faster} |"
            )
        if self.kernelbench:
            lines += ["", "| KernelBench's evaluation | compiled | correct | its time µs | seconds |", "|" + "---|" * 5]
        for found in self.kernelbench:
            if "error" in found:
                lines.append(f"| {found['kind']} | {found['error']} | | | |")
            else:
                lines.append(f"| {found['kind']} | {found['compiled']} | {found['correct']} | {found['us']:.1f} | {found['seconds']:.1f} |")
        return "\n".join(lines) + "\n"


def run(
    device: str = "auto", judges: int | None = None, candidates: int = 15, repeats: int = 50, extension: bool = False,
    kernelbench: Path | None = None,
) -> Report:  # fmt: skip
    """Measures all of it.

    Args:
        device: ``cuda``, or ``auto`` for a stand-in on the CPU where there is no GPU.
        judges: side by side for the verdicts a minute; as many as make sense by default.
        candidates: of each kind, for the latencies; four times as many for the verdicts a minute.
        repeats: judgements of an identical copy of the baseline, and of one kernel.
        extension: judge one candidate that has nvcc build an extension, too, which takes a minute.
        kernelbench: a checkout of KernelBench, whose evaluation is run on the same candidates.
    """
    import torch

    from workbench.fleet.local import beside
    from workbench.judge.isolation import sandbox

    gpu = torch.cuda.is_available() and device != "cpu"
    task = _task(4096, 8192) if gpu else _task(256, 512)
    kinds: dict[str, tuple[str, str]] = {"triton": ("triton", texts.TRITON), "nvrtc": ("cuda", texts.NVRTC)} if gpu else {
        "pytorch": ("triton", texts.EAGER)
    }  # fmt: skip
    place = "cuda" if gpu else "host"
    latencies, steadiness, measured, prepared_s = _alone(task, place, kinds, candidates, repeats, extension and gpu)
    number = judges or beside()
    per_minute, verdicts, loaded = asyncio.run(_together(task, place, kinds, number, 4 * candidates, measured))
    described = (
        f"gpu: {torch.cuda.get_device_name()}" if gpu else "no GPU: PyTorch on the CPU in its place, so only the harness is measured"
    )
    described += f"; candidates closed in by {sandbox.detect().name}"
    return Report(
        described, tuple(latencies), (*steadiness, loaded), number, per_minute, verdicts, prepared_s,
        tuple(_kernelbench(kernelbench)) if kernelbench is not None else (),
    )  # fmt: skip


def _alone(
    task: Task, place: Any, kinds: Mapping[str, tuple[str, str]], candidates: int, repeats: int, extension: bool
) -> tuple[list[Latency], list[Steadiness], dict[str, Any], float]:
    """One judge, in this process: latencies, the same kernel again and again, the baselines, and the seconds that preparing took."""
    from workbench.judge.judge import Judge

    judge = Judge(task, device=place)
    try:
        begun = time.perf_counter()
        judge.prepare(None)
        prepared = time.perf_counter() - begun
        latencies = []
        for kind, (backend, source) in kinds.items():
            _judged(judge, backend, source)
            latencies.append(_latency(kind, [_judged(judge, backend, source) for _ in range(candidates)]))
            _tell(latencies[-1].kind, f"{latencies[-1].median_ms:.0f} ms")
        if extension:
            latencies.append(_latency("load_inline", [_judged(judge, "cuda", texts.EXTENSION)]))
        measured = judge.measured()
        # Against eager alone: what is judged is a copy of it, whichever baseline is the faster one.
        eager = [base for base in measured["baselines"] if base["name"] == "eager"]
        judge.adopt({"times": {"eager": measured["times"]["eager"]}, "baselines": eager})
        copies = [_judged(judge, "triton", texts.EAGER)[1] for _ in range(repeats)]
        steadiness = [_steady("a copy of eager", copies, against_itself=True)]
        first, (backend, source) = next(iter(kinds.items()))
        if source != texts.EAGER:
            steadiness.append(_steady(first, [_judged(judge, backend, source)[1] for _ in range(repeats)], against_itself=False))
        return latencies, steadiness, measured, prepared
    finally:
        judge.close()


async def _together(
    task: Task, place: str, kinds: Mapping[str, tuple[str, str]], judges: int, count: int, measured: Mapping[str, Any]
) -> tuple[float, dict[str, int], Steadiness]:
    """Several judges side by side: verdicts a minute, what they were, and how steady one kernel's times are meanwhile."""
    from workbench.fleet import Local

    fleet = Local(task, device=place, judges=judges)
    fleet.adopt(measured)
    try:
        sources = list(kinds.values())
        await asyncio.gather(*(fleet.evaluate(_fresh(*sources[0]), {}, id=f"w{k}.0") for k in range(2 * judges)))
        begun = time.perf_counter()
        found = await asyncio.gather(*(fleet.evaluate(_fresh(*sources[k % len(sources)]), {}, id=f"t{k}.0") for k in range(count)))
        taken = time.perf_counter() - begun
        first = next(iter(kinds))
        _tell(f"{judges} judges", f"{60 * count / taken:.0f} verdicts a minute")
        return 60 * count / taken, _counted(found), _steady(f"{first}, {judges} judges", found[:: len(sources)], against_itself=False)
    finally:
        await fleet.close()


def _judged(judge: Any, backend: str, source: str) -> tuple[float, Evaluation]:
    candidate = _fresh(backend, source)
    begun = time.perf_counter()
    found = judge.evaluate(candidate, {}, id=f"{candidate.id}.0", mode="quick")
    return (time.perf_counter() - begun) * 1e3, found


def _fresh(backend: Any, source: str) -> Candidate:
    """A candidate whose text nobody has seen, so that nothing of it is in any cache."""
    number = next(_numbers)
    return Candidate(f"k{number}", backend, f"{source}\n# {number}\n", "softmax", proposer="bench")


def _latency(kind: str, found: Sequence[tuple[float, Evaluation]]) -> Latency:
    walls = [wall for wall, _ in found]
    names = dict.fromkeys(name for _, evaluation in found for name in evaluation.stage_ms)
    stages = {name: plain_statistics.median(evaluation.stage_ms.get(name, 0.0) for _, evaluation in found) for name in names}
    times = [evaluation.time_us for _, evaluation in found if evaluation.time_us]
    return Latency(
        kind, _counted([evaluation for _, evaluation in found]), plain_statistics.median(walls), max(walls), stages,
        plain_statistics.median(times) if times else None,
    )  # fmt: skip


def _steady(kind: str, found: Sequence[Evaluation], *, against_itself: bool) -> Steadiness:
    from workbench.judge.timing import statistics

    times = [evaluation.time_us for evaluation in found if evaluation.time_us]
    middle = plain_statistics.median(times) if times else 0.0
    within = sum(abs(taken / middle - 1) <= WITHIN for taken in times) / len(times) if times else 0.0
    faster = sum(statistics.faster(evaluation.speedup) for evaluation in found) if against_itself else None
    ratios = tuple(round(evaluation.speedup.ratio, 4) for evaluation in found if evaluation.speedup is not None)
    _tell(kind, f"{len(times)} of {len(found)} confirmed, {within:.0%} within {WITHIN:.0%}, called faster: {faster}")
    return Steadiness(kind, len(found), len(times), middle, within, faster, ratios)


def _counted(found: Sequence[Evaluation]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for evaluation in found:
        counts[evaluation.verdict.value] = counts.get(evaluation.verdict.value, 0) + 1
        if not evaluation.verdict.passes:
            _tell(evaluation.verdict.value, evaluation.reason)
    return counts


def _kernelbench(checkout: Path) -> list[dict[str, Any]]:
    """The same candidates through KernelBench's own evaluation, in a process of its own."""
    from workbench.bench.kernelbench_eval import evaluate

    reference = texts.KERNELBENCH_REFERENCE.format(rows=4096, columns=8192)
    found = []
    for kind, backend, source in (("triton", "triton", texts.TRITON), ("nvrtc", "cuda", texts.NVRTC)):
        found.append(evaluate(checkout, kind, reference, texts.as_model(source), backend))
        _tell(f"KernelBench, {kind}", f"{found[-1].get('error') or found[-1]['seconds']}")
    return found


def _task(rows: int, columns: int) -> Task:
    from workbench.capture import capture_file
    from workbench.target import detect_target

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "softmax.py")
        path.write_text(texts.REFERENCE.format(rows=rows, columns=columns), encoding="utf-8")
        return capture_file(path, target=detect_target()).task


def _said(verdicts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in verdicts.items())


def _tell(what: str, text: str) -> None:
    print(f"{what}: {text}", file=sys.stderr, flush=True)


def main(
    device: str, judges: int | None, candidates: int, repeats: int, extension: bool, kernelbench: Path | None, as_json: bool
) -> int:  # fmt: skip
    """``python -m workbench bench judge``: progress on stderr, tables or one object on stdout."""
    report = run(device, judges, candidates, repeats, extension, kernelbench)
    print(report.json() if as_json else report.markdown())
    return 0
