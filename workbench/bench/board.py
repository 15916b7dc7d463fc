"""How fast the board is: a stored run of ten thousand variants in JupyterLab and a headless Chromium.

What is measured is what a person waits for. *Open*: from running the cell that shows the board until its rows are painted, with the
first module loaded for the first time, and again. *Scroll*: frames while the table is scrolled through. *Event*: from the moment before an
event is given to the run, which commits it, until its row is painted. *Memory*: of the page with one board that was scrolled through,
and how much of it the board added.

Waiting is what counts, and it grows with whatever else the machine does. So the processor's time of the page's main thread stands
beside it, which grows little: a frame has 16.7 ms.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.bench.jupyter import Lab, cell_text, chromium, jupyterlab, quiet_page, run_cell
from workbench.bench.sample_run import run_events
from workbench.records import encode

VARIANTS = 10_000
EVENTS = 40
"""How many events are timed on their way to the screen."""

FRAMES = 240
ROW = 27
"""Height of a row in px; four of them a frame are scrolled."""

TARGETS: Mapping[str, tuple[str, float]] = {
    "open_first_s": ("<", 1.0), "open_s": ("<", 1.0), "frames_per_s": (">", 50.0), "event_ms": ("<", 200.0), "page_mb": ("<", 300.0),
    "module_kb": ("<", 700.0),
}  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """What was found. Times are wall times of this machine, with whatever else ran on it: `load` is its load average.

    Attributes:
        read_s: `workbench.open` of the stored run, before any board.
        open_first_s, open_s: until the rows are painted; the first time the browser also loads the module. `open_s` is the median of
            three.
        frames_per_s, frame_p95_ms: of the scripted scroll, the median of three.
        event_ms, event_p95_ms: from the event to its row.
        open_cpu_ms, frame_cpu_ms, event_cpu_ms: processor time of the page's main thread, for one opening, a frame of the scroll, and an
            event.
        heap_mb: JavaScript objects of the page; `board_heap_mb`: those that came with the board. `page_mb`: resident memory of the
            page's process, and `lab_mb` what it was before there was a board; `own_mb`: the part of it that is this process's alone, as
            the browser's task manager counts, without the browser's program. None where the system does not say.
        module_kb, first_kb: the board's modules, and the one of them that the first screen waits for.
        rendering: who draws.
    """

    variants: int
    read_s: float
    open_first_s: float
    open_s: float
    frames_per_s: float
    frame_p95_ms: float
    event_ms: float
    event_p95_ms: float
    open_cpu_ms: float
    frame_cpu_ms: float
    event_cpu_ms: float
    heap_mb: float
    board_heap_mb: float
    page_mb: float | None
    lab_mb: float | None
    own_mb: float | None
    module_kb: float
    first_kb: float
    rendering: str
    load: float

    def missed(self) -> tuple[str, ...]:
        """The targets that were not met, in words."""
        out = []
        for name, (sign, limit) in TARGETS.items():
            value = getattr(self, name)
            if value is not None and not (value < limit if sign == "<" else value > limit):
                out.append(f"{name} is {value:.3g}, wanted {sign} {limit:g}")
        return tuple(out)

    def text(self) -> str:
        """A table for people."""
        page = "not known here"
        if self.page_mb is not None:
            page = f"{self.page_mb:.0f} MB, of them {self.own_mb or 0:.0f} MB its own ({self.lab_mb or 0:.0f} MB before the board)"
        rows = [
            ("read the stored run", f"{self.read_s:.2f} s", "", ""),
            ("open the board, first time", f"{self.open_first_s:.2f} s", "", "< 1 s"),
            ("open the board", f"{self.open_s:.2f} s", f"{self.open_cpu_ms:.0f} ms", "< 1 s"),
            ("scroll", f"{self.frames_per_s:.0f} frames/s, p95 {self.frame_p95_ms:.1f} ms", f"{self.frame_cpu_ms:.1f} ms", "> 50 frames/s"),
            ("event to row", f"median {self.event_ms:.0f} ms, p95 {self.event_p95_ms:.0f} ms", f"{self.event_cpu_ms:.0f} ms", "< 200 ms"),
            ("page", page, "", "< 300 MB"),
            ("JavaScript objects", f"{self.heap_mb:.0f} MB, the board's {self.board_heap_mb:.0f} MB", "", ""),
            ("modules", f"{self.module_kb:.0f} kB, the first {self.first_kb:.0f} kB", "", "< 700 kB"),
        ]
        lines = [
            f"The board with {self.variants:,} variants ({self.rendering}; load average {self.load:.1f} on {os.cpu_count()} processors):",
            f"  {'':<28}{'':<58}{'its thread':<12}wanted",
        ]
        lines += [f"  {name:<28}{value:<58}{busy:<12}{target}".rstrip() for name, value, busy, target in rows]
        lines += [f"Target missed: {one}" for one in self.missed()]
        return "\n".join(lines)


def run(variants: int = VARIANTS) -> Figures:
    """Measures the board.

    Raises:
        MisuseError: JupyterLab, playwright or Chromium is missing; one line with the mend.
    """
    with tempfile.TemporaryDirectory(prefix="workbench-bench-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        with jupyterlab(folder) as lab, chromium() as browser:
            name = _write(lab.root / ".workbench", variants)
            return _measure(lab, browser, name, variants)


def _write(place: Path, variants: int) -> str:
    """The run, in a store. Briefs name no parents here: they are not shown, and would be most of the database."""
    from workbench.events import Asked
    from workbench.store import Store

    store = Store(place)
    made = run_events(variants, ended=True)
    bodies = [
        replace(one.event, brief=replace(one.event.brief, parents=(), cards=())) if isinstance(one.event, Asked) else one.event
        for one in made
    ]
    store.extend(made[0].run, bodies)
    store.close()
    return made[0].run


def _measure(lab: Lab, browser: Any, name: str, variants: int) -> Figures:
    page = quiet_page(browser)
    page.set_default_timeout(120_000)
    lab.open(page, "bench.ipynb", [READ.format(name=name), "board = Board(run)\nboard", EVENT.format(count=EVENTS)])
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    # First of all: the collection that this asks for throws compiled code away too, and nobody who opens a board has just done that.
    before, (lab_mb, _) = _heap(devtools), _resident(browser)
    run_cell(page, 0)
    read_s = float(cell_text(page, 0))
    opened = [_open(page, variants)]
    _pause(page, 500)
    began = _busy(devtools)
    passes = [page.evaluate(SCROLL, [FRAMES, 4 * ROW])[5:] for _ in range(3)]
    frame_cpu = (_busy(devtools) - began) / sum(len(times) + 5 for times in passes)
    frames = sorted(passes, key=statistics.fmean)[1]
    heap = _heap(devtools)
    resident, own = _resident(browser)
    began = _busy(devtools)
    opened += [_open(page, variants) for _ in range(3)]
    open_cpu = (_busy(devtools) - began) / 3
    _pause(page, 500)
    began = _busy(devtools)
    page.evaluate(WATCH, [f"L{number}" for number in range(EVENTS)])
    run_cell(page, 2)
    given = json.loads(cell_text(page, 2))
    page.wait_for_function("(count) => Object.keys(window.painted).length === count", arg=EVENTS, timeout=30_000)
    painted = page.evaluate("window.painted")
    event_cpu = (_busy(devtools) - began) / EVENTS
    waits = sorted(painted[event] - given[event] for event in given)
    first, second = (Path(__file__).parents[1] / "board" / "static" / name for name in ("board.js", "editors.js"))
    return Figures(
        variants=variants, read_s=read_s, open_first_s=opened[0], open_s=statistics.median(opened[1:]),
        frames_per_s=1000 / statistics.fmean(frames), frame_p95_ms=_p95(frames), event_ms=statistics.median(waits),
        event_p95_ms=_p95(waits), open_cpu_ms=1000 * open_cpu, frame_cpu_ms=1000 * frame_cpu, event_cpu_ms=1000 * event_cpu,
        heap_mb=heap, board_heap_mb=heap - before, page_mb=resident, lab_mb=lab_mb, own_mb=own,
        module_kb=(first.stat().st_size + second.stat().st_size) / 1000, first_kb=first.stat().st_size / 1000,
        rendering="drawn in software", load=os.getloadavg()[0],
    )  # fmt: skip


def _open(page: Any, variants: int) -> float:
    """Seconds from running the cell until rows are painted. What an earlier run of the cell showed is taken away first."""
    page.evaluate("document.querySelectorAll('.kw-board').forEach((board) => board.remove())")
    page.evaluate(
        """(rows) => { window.shown = 0; window.began = performance.now(); const look = () => {
            const table = document.querySelector('.kw-table');
            if (table && Number(table.getAttribute('aria-rowcount')) > rows && document.querySelectorAll('.kw-tbody .kw-tr').length > 8)
                requestAnimationFrame(() => setTimeout(() => { window.shown = performance.now() - window.began; }));
            else requestAnimationFrame(look); }; look(); }""",
        variants,
    )
    run_cell(page, 1, wait=False)
    page.wait_for_function("window.shown > 0")
    _pause(page, 300)
    return float(page.evaluate("window.shown")) / 1000


def _pause(page: Any, ms: float) -> None:
    page.wait_for_timeout(ms)


def _heap(devtools: Any) -> float:
    """MB of JavaScript objects that are in use, after a collection."""
    devtools.send("HeapProfiler.collectGarbage")
    return _metric(devtools, "JSHeapUsedSize") / 1e6


def _busy(devtools: Any) -> float:
    """Seconds of processor time that the page's main thread has had for its tasks."""
    return _metric(devtools, "TaskDuration")


def _metric(devtools: Any, name: str) -> float:
    return float(next(one["value"] for one in devtools.send("Performance.getMetrics")["metrics"] if one["name"] == name))


def _resident(browser: Any) -> tuple[float | None, float | None]:
    """MB of the largest page process: resident, and what is its alone; None where the system does not tell."""
    try:
        session = browser.new_browser_cdp_session()
        processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    except Exception:  # a browser without this command is still measured otherwise
        return None, None
    sizes: list[tuple[float | None, float | None]] = []
    for process in processes:
        if process["type"] == "renderer":
            with contextlib.suppress(OSError, ValueError):
                status = dict(line.split(":", 1) for line in Path(f"/proc/{process['id']}/status").read_text().splitlines())
                resident, own = (int(status[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "RssAnon"))
                sizes.append((resident, own))
    return max(sizes, key=lambda size: size[0] or 0, default=(None, None))


def _p95(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


READ = """import time
import workbench
from workbench.board import Board
began = time.perf_counter()
run = workbench.open("{name}")
print(time.perf_counter() - began)
"""

EVENT = """import json
from dataclasses import replace
from workbench.brief import Proposal
from workbench.events import Evaluated, Proposed
best = run.best
given = {{}}
for number in range({count}):
    name = f"L{{number}}"
    made = replace(best.candidate, id=name, parents=())
    judged = replace(best.evaluation, id=f"{{name}}.0", candidate=name,
                     timing=replace(best.evaluation.timing, median_us=31.0 - 0.1 * number))
    given[name] = time.time() * 1000
    run.record(Proposed(Proposal(f"b{{name}}", made)))
    run.record(Evaluated(f"b{{name}}", judged))
    time.sleep(0.25)
print(json.dumps(given))
"""

SCROLL = """([frames, step]) => new Promise((done) => {
    const grid = [...document.querySelectorAll('.kw-table')].at(-1);
    const times = [];
    let last = 0;
    const next = (now) => {
        if (last) times.push(now - last);
        last = now;
        grid.scrollTop += step;
        times.length < frames ? requestAnimationFrame(next) : done(times);
    };
    requestAnimationFrame(next);
})"""

WATCH = """(names) => {
    window.painted = {};
    const grid = [...document.querySelectorAll('.kw-table')].at(-1);
    grid.scrollTop = 0;
    const left = new Set(names);
    const look = () => {
        const good = [...grid.querySelectorAll('[data-id] .kw-verdict.kw-good')].map((verdict) => verdict.closest('[data-id]').dataset.id);
        const seen = good.filter((name) => left.has(name));
        for (const name of seen) {
            left.delete(name);
            setTimeout(() => { window.painted[name] = Date.now(); });  // after this frame is painted
        }
        if (left.size) requestAnimationFrame(look);
    };
    look();
}"""


def main(variants: int, as_json: bool) -> int:
    """Prints the figures; 0 where all targets are met, else 1."""
    began = time.monotonic()
    found = run(variants)
    if as_json:
        print(json.dumps({**encode(found), "missed": list(found.missed())}))
    else:
        print(found.text())
    print(f"measured in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 1 if found.missed() else 0
