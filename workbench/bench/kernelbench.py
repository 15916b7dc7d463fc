"""The experts on the tasks of a KernelBench checkout: its files are read where they lie, by several processes side by side.

Searching and compiling overlap; the card's lock keeps timing to one at a time, and a share of its memory is claimed before a task's
tensors are made.
"""

from __future__ import annotations

import collections
import json
import math
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.bench.experts import Row, Table, line, row_of
from workbench.errors import MisuseError

SECONDS = 420.0


def tasks(directory: str | Path, level: int, only: Sequence[int] = ()) -> tuple[Path, ...]:
    """The task files of a level by number, or those that are asked for in their order.

    Raises:
        MisuseError: there are none in that folder, or not one that is asked for.
    """
    folders = [Path(directory) / name for name in (f"KernelBench/level{level}", f"level{level}", ".")]
    for folder in folders:
        found = sorted((int(match[1]), path) for path in folder.glob("*.py") if (match := re.match(r"(\d+)_", path.name)))
        if found:
            by_number = dict(found)
            if missing := [number for number in only if number not in by_number]:
                raise MisuseError(f"no task {missing[0]} in {folder}: there are {min(by_number)} to {max(by_number)}")
            return tuple(by_number[number] for number in only) if only else tuple(by_number.values())
    raise MisuseError(f"no KernelBench tasks in {directory}: name a checkout, which has KernelBench/level{level} in it")


def run(
    directory: str | Path, *, level: int = 1, only: Sequence[int] = (), jobs: int | None = None, device: str = "auto",
    evaluations: int = 4, out: str | Path | None = None, seconds: float = SECONDS, backends: Sequence[str] = ("triton",),
) -> Table:  # fmt: skip
    """Benchmarks every task file.

    Args:
        directory: the checkout; nothing in it is copied or changed.
        only: numbers of tasks, in the order in which they are done; all by default.
        jobs: tasks at a time; by the number of cores by default.
        out: a folder for the tables, written after each task.
        seconds: that one task may take.
        backends: of the experts.
    """
    paths = tasks(directory, level, only)
    rows: dict[Path, Row] = {}
    waiting, done = collections.deque(paths), queue.Queue[tuple[Path, Row]]()
    settings = {"device": device, "evaluations": evaluations, "backends": list(backends)}
    lanes = [_Lane(settings, seconds) for _ in range(min(len(paths), jobs or max(1, (os.cpu_count() or 2) // 3)))]
    for lane in lanes:
        threading.Thread(target=lane.work, args=(waiting, done), daemon=True).start()
    try:
        while len(rows) < len(paths):
            path, row = done.get()
            rows[path] = row
            table = Table(tuple(rows[path] for path in paths if path in rows))
            print(line(row), file=sys.stderr, flush=True)
            if out is not None:
                table.write(out, f"level{level}", summary(table))
    finally:
        for lane in lanes:
            lane.end()
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


class _Lane:
    """A process that does one task after the other, see `lane`; a new one where a task has killed it or takes too long."""

    def __init__(self, settings: Mapping[str, Any], seconds: float) -> None:
        self._settings, self._seconds = settings, seconds
        self._process: subprocess.Popen[str] | None = None
        self._said: queue.Queue[str] = queue.Queue()
        self._errors = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - as long as the lane; of the task that is being done
        self._ended = False

    def work(self, waiting: collections.deque[Path], done: queue.Queue[tuple[Path, Row]]) -> None:
        """Takes tasks until none waits."""
        while not self._ended:
            try:
                path = waiting.popleft()
            except IndexError:
                break
            done.put((path, self._row(path)))
        self.end()

    def end(self) -> None:
        """Ends the process, and with it its judge and workers: they watch its end of a pipe."""
        self._ended = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _row(self, path: Path) -> Row:
        try:
            process = self._started()
            assert process.stdin is not None
            self._errors.truncate(0)
            process.stdin.write(f"{path.resolve()}\n")
            process.stdin.flush()
            text = self._said.get(timeout=self._seconds)
            if text:
                return row_of(json.loads(text))
            why = f"its process ended ({process.wait()})"
            self._errors.seek(0)
            if said := self._errors.read().decode("utf-8", "replace").strip():
                why += f": {said.splitlines()[-1]}"
        except queue.Empty:
            why = f"not done in {self._seconds:.0f} s"
        except (OSError, ValueError) as error:
            why = str(error)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        return Row(path.stem, error=why[:300])

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", "workbench.bench.lane"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            text=True, start_new_session=True,
        )  # fmt: skip
        said: queue.Queue[str] = queue.Queue()
        self._said = said
        assert process.stdin is not None
        process.stdin.write(json.dumps(self._settings) + "\n")

        def listen() -> None:
            assert process.stdout is not None
            for text in process.stdout:
                said.put(text)
            said.put("")

        threading.Thread(target=listen, daemon=True).start()
        return process
