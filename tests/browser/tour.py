"""Pictures of the board for people to look at: themes, widths, tabs, and the runs that are out of the ordinary.

python tests/browser/tour.py                    # all of them, into tests/browser/shots
python tests/browser/tour.py dark-Memory …      # some
python tests/browser/tour.py --readme           # the small ones of the README, into notebooks/img
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

from harness import CHROMIUM, FLAGS, deliver, messages, open_board  # noqa: E402
from recorded_run import RecordedRun  # noqa: E402
from sample_calls import REPLY, sample_calls  # noqa: E402
from sample_reports import sample_reports  # noqa: E402
from sample_run import run_events  # noqa: E402

TABS = ("Why", "Code", "Diff", "Compiler", "Memory", "Trace", "Prompt", "Evidence", "Edit", "Log")
IMAGES = ROOT / "notebooks" / "img"
LARGEST = 80_000
"""Bytes of a picture in the repository."""


@dataclass(frozen=True)
class Look:
    """One picture: a run, how it is shown, and what is done before it is taken."""

    run: str = "modelled"
    theme: str = "light"
    width: int = 1360
    tab: str = ""
    prepare: Callable[[Any], object] = field(default=lambda page: None)
    part: str = ""
    """What the picture shows, as a selector; the whole page by default."""
    editors: bool = True
    """Whether the editors come; else code stays plain."""


def runs() -> dict[str, dict[str, Any]]:
    """What Python sends, by run."""
    plain, gpu = run_events(44), run_events(120, measured=True, seed=8)
    modelled = RecordedRun(plain, calls=sample_calls(plain)).play()
    modelled.reports = sample_reports(modelled.candidate("k1").candidate.source)
    measured = RecordedRun(gpu, calls=sample_calls(gpu)).play()
    measured.reports = modelled.reports
    failed = messages(RecordedRun(run_events(20, ended=True, hopeless=True)).play())
    return {
        "modelled": messages(modelled), "measured": messages(measured), "failed": failed,
        "early": messages(RecordedRun(plain).play(1)), "stored": messages(RecordedRun(plain, live=False).play()),
        "many": messages(RecordedRun(run_events(10_000)).play()),
    }  # fmt: skip


def real(steps: int = 6) -> dict[str, Any]:
    """A search of the experts for RMSNorm, as this machine judges it, with the best variant's inspections."""
    import tempfile

    import torch

    import workbench

    def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight

    inputs = torch.randn(4096, 8192, dtype=torch.bfloat16), torch.randn(8192, dtype=torch.bfloat16)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        run = workbench.evolve(rms_norm, *inputs, steps=steps, auto=True, wait=True, store=place)
        best = run.best.evaluation.id
        run.reports = {what: run.inspect(best, what) for what in ("compiler", "memory", "trace")}
        sent = messages(run)
        run.close()
    return sent


def wide(page: Any) -> None:
    """The variant at full width."""
    page.get_by_role("button", name="Widen").click()


def lit(page: Any) -> None:
    """A line of the source and what it becomes."""
    wide(page)
    page.locator(".kw-side .cm-line", has_text="tl.program_id").first.click()


def walked(page: Any) -> None:
    """A program in the middle of the grid."""
    wide(page)
    page.locator(".kw-slider").fill("6")


def writing(page: Any) -> None:
    """Two models at work."""
    shared = {"why": "best reward a dollar so far", "at": 0, "failed": ""}
    answers = [
        {**shared, "brief": "b45", "model": "qwen3-coder", "seconds": 6.2, "text": REPLY[:560]},
        {**shared, "brief": "b46", "model": "gpt-5-mini", "seconds": 1.4, "text": "PLAN: Split each row over"},
    ]
    deliver(page, {"type": "writing", "answers": answers})


def selected(name: str) -> Callable[[Any], object]:
    """Selects a variant."""
    return lambda page: page.evaluate("(id) => window.model.set('selected', id)", name)


LOOKS: dict[str, Look] = {
    **{f"light-{tab}": Look(tab=tab) for tab in TABS},
    **{f"dark-{tab}": Look("measured", "dark", tab=tab) for tab in TABS},
    **{f"narrow-{tab}": Look(width=420, tab=tab) for tab in TABS},
    **{f"contrast-{tab}": Look(theme="contrast", tab=tab) for tab in ("Why", "Diff", "Compiler", "Memory", "Trace")},
    **{f"plain-{width}": Look(theme="none", width=width) for width in (700, 860, 1100)},
    **{f"text-{tab}": Look(tab=tab, editors=False) for tab in ("Code", "Diff", "Edit", "Compiler")},
    **{f"text-dark-{tab}": Look("measured", "dark", tab=tab, editors=False) for tab in ("Code", "Diff", "Edit", "Compiler")},
    **{name: Look(name) for name in ("many", "failed", "early", "stored")},
    "wide-Compiler": Look(tab="Compiler", prepare=lit), "wide-Memory": Look(tab="Memory", prepare=walked),
    "wide-Trace": Look(tab="Trace", theme="dark", prepare=wide), "child": Look(prepare=selected("k28"), tab="Why"),
    "asked": Look(prepare=selected("k6"), tab="Prompt"), "writing": Look(prepare=writing),
    "keys": Look(prepare=lambda page: page.get_by_role("button", name="Keys of the board").click()),
}  # fmt: skip

README: Mapping[str, Look] = {
    "board": Look("real", tab="Why"),
    "many": Look("many"),
    "failed": Look("failed"),
    "narrow": Look(width=420, tab="Why"),
    "compiler": Look("real", tab="Compiler", width=1100, prepare=lit, part=".kw-panel-inspector"),
    "memory": Look("real", tab="Memory", width=1100, prepare=walked, part=".kw-panel-inspector"),
    "trace": Look("real", tab="Trace", width=1100, prepare=wide, part=".kw-panel-inspector"),
    "board-dark": Look("measured", "dark", tab="Prompt", prepare=writing),
}
"""`board`, `compiler`, `memory` and `trace` show a search that was really made, on this machine; the others the made-up runs of the
tests."""


def take(browser: Any, sent: dict[str, Any], look: Look) -> bytes:
    """A PNG."""
    page = browser.new_page(viewport={"width": look.width, "height": 900})
    page.on("pageerror", lambda error: print("page error:", error))
    page.on("console", lambda message: message.type == "error" and print("console:", message.text))
    if not look.editors:
        page.add_init_script("window.editors = () => {};")
    open_board(page, sent, look.theme)
    if look.tab:
        page.get_by_role("tab", name=look.tab, exact=True).click()
        page.wait_for_timeout(250)
    look.prepare(page)
    page.wait_for_timeout(350)
    taken: bytes = page.locator(look.part).screenshot() if look.part else page.screenshot(full_page=True)
    page.close()
    return taken


def small(browser: Any, picture: bytes) -> bytes:
    """The same as WebP, of the best quality that fits."""
    page = browser.new_page()
    script = """async ([data, largest]) => {
        const image = new Image();
        image.src = `data:image/png;base64,${data}`;
        await image.decode();
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [image.width, image.height];
        canvas.getContext('2d').drawImage(image, 0, 0);
        for (const quality of [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]) {
            const url = canvas.toDataURL('image/webp', quality);
            if (url.length * 0.75 < largest) return url;
        }
        throw new Error('the picture is too large');
    }"""
    url: str = page.evaluate(script, [base64.b64encode(picture).decode(), LARGEST])
    page.close()
    return base64.b64decode(url.split(",", 1)[1])


def pictures(browser: Any, looks: Mapping[str, Look]) -> Iterator[tuple[str, bytes]]:
    """Each look, taken."""
    sent = runs()
    if any(look.run == "real" for look in looks.values()):
        sent["real"] = real()
    for name, look in looks.items():
        yield name, take(browser, json.loads(json.dumps(sent[look.run])), look)


def main(arguments: list[str]) -> None:
    """Takes what is asked for."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        if "--readme" in arguments:
            for name, picture in pictures(browser, README):
                made = IMAGES / f"{name}.webp"
                made.write_bytes(small(browser, picture))
                print(f"{made.relative_to(ROOT)}: {made.stat().st_size / 1000:.0f} kB")
        else:
            shots = HERE / "shots"
            shots.mkdir(exist_ok=True)
            for name, picture in pictures(browser, {name: look for name, look in LOOKS.items() if not arguments or name in arguments}):
                (shots / f"{name}.png").write_bytes(picture)
                print(name)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
