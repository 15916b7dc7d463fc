"""The experts on the tasks of a KernelBench checkout: its files are read where they lie, each in a process of its own, several at a time.

Searching and compiling overlap; the card's lock keeps timing to one at a time, and a share of its memory is claimed before a task's
tensors are made.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from workbench.bench.experts import Row, Table, line, row_of
from workbench.errors import MisuseError

SECONDS = 420.0


def tasks(directory: str | Path, level: int, only: Sequence[int] = ()) -> tuple[Path, ...]:
    """The task files of a level by number, or those that are asked for in their order.

    Raises:
        MisuseError: there are none in that folder.
    """
    folders = [Path(directory) / name for name in (f"KernelBench/level{level}", f"level{level}", ".")]
    for folder in folders:
        found = sorted((int(match[1]), path) for path in folder.glob("*.py") if (match := re.match(r"(\d+)_", path.name)))
        if found:
            by_number = dict(found)
            return tuple(by_number[number] for number in only if number in by_number) if only else tuple(by_number.values())
    raise MisuseError(f"no KernelBench tasks in {directory}: name a checkout, which has KernelBench/level{level} in it")


def run(
    directory: str | Path, *, level: int = 1, only: Sequence[int] = (), jobs: int | None = None, device: str = "auto",
    evaluations: int = 4, out: str | Path | None = None, seconds: float = SECONDS, backends: str = "triton",
) -> Table:  # fmt: skip
    """Benchmarks every task file.

    Args:
        directory: the checkout; nothing in it is copied or changed.
        only: numbers of tasks, all by default.
        jobs: tasks at a time; by the number of cores by default.
        out: a folder for the tables, written after each task.
        seconds: that one task may take.
        backends: of the experts: triton, cuda or both.
    """
    paths = tasks(directory, level, only)
    rows: dict[Path, Row] = {}
    workers = jobs or max(1, (os.cpu_count() or 2) // 3)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        waiting = {pool.submit(_one, path, device, evaluations, seconds, backends): path for path in paths}
        for done in concurrent.futures.as_completed(waiting):
            rows[waiting[done]] = done.result()
            table = Table(tuple(rows[path] for path in paths if path in rows))
            print(line(done.result()), file=sys.stderr, flush=True)
            if out is not None:
                folder = Path(out)
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"level{level}.json").write_text(table.json(), encoding="utf-8")
                (folder / f"level{level}.md").write_text(table.markdown() + summary(table), encoding="utf-8")
    return table


def summary(table: Table) -> str:
    """How many tasks have a right kernel, and how fast these are as a geometric mean."""
    right = [row for row in table.rows if row.best_us and not row.error]
    text = f"\nright: {len(right)} of {len(table.rows)} tasks"
    for name, ratios in (
        ("torch.compile", [row.compile_us / row.best_us for row in right if row.compile_us and row.best_us]),
        ("the faster of eager and torch.compile", [row.ratio for row in right if row.ratio]),
    ):
        if ratios and not any(row.modelled for row in right):
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            text += f"; {mean:.2f}× over {name} (geometric mean of {len(ratios)})"
    return text + "\n"


def _one(path: Path, device: str, evaluations: int, seconds: float, backends: str) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "workbench", "bench", "experts", "--reference", str(path), "--device", device]
        command += ["--evaluations", str(evaluations), "--out", folder, "--backends", backends]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()  # its judge and workers end with it: they watch its end of a pipe
            process.communicate()
            return Row(path.stem, error=f"not done in {seconds:.0f} s")
        with contextlib.suppress(OSError, ValueError, IndexError):
            return row_of(json.loads((Path(folder) / "experts.json").read_text())[0])
        last = (errors.strip().splitlines() or ["no output"])[-1]
        return Row(path.stem, error=last[:300])
