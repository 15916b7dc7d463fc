"""The board's module in a bare page, without Jupyter: fast enough to look at every change.

The messages are those that the Python `Board` sends. Nothing is served over a socket: the browser's requests are answered from disk by
Playwright, and every other request is refused.

`tour.py` takes pictures of all looks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workbench.bench.jupyter import FLAGS as FLAGS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
URL = "http://127.0.0.1:1/"
BOARD = ROOT / "workbench" / "board" / "static" / "board.js"
CHROMIUM = "/usr/bin/chromium"
THEMES = {
    "light": "theme-light-extension",
    "dark": "theme-dark-extension",
    "contrast": "theme-dark-high-contrast-extension",
    "none": "",
}


def messages(run: Any) -> dict[str, Any]:
    """What Python sends to a browser that opens the board of `run`: the snapshot, and every detail."""
    from workbench.board import rows
    from workbench.board.feed import Feed
    from workbench.board.prompts import prompt

    sent: list[dict[str, Any]] = []
    feed = Feed(run, sent.append)
    feed.snapshot()
    feed.close()
    snapshot = next(message for message in sent if message["type"] == "snapshot")
    shown = snapshot["upserts"]
    best = snapshot["header"]["best"]
    shown = shown if len(shown) <= 500 else [row for row in shown if row["order"] <= 50 or (best and row["id"] == best["id"])]
    details = {row["id"]: {"type": "detail", "id": row["id"], "detail": rows.detail(run, row["id"]), "error": ""} for row in shown}
    prompts = {row["id"]: {"type": "prompt", "id": row["id"], "prompt": prompt(run, row["id"]), "error": ""} for row in shown}
    return {"snapshot": snapshot, "details": details, "prompts": prompts, "reports": run.reports}


def theme_css(theme: str) -> str:
    """A theme of the installed JupyterLab; empty for `none`, where the board falls back on its own colours."""
    import jupyterlab

    name = THEMES[theme]
    return (Path(jupyterlab.__file__).parent / "themes" / "@jupyterlab" / name / "index.css").read_text() if name else ""


def serve(page: Any, theme: str) -> list[str]:
    """Answers the page's requests from disk. Returns the list of requests to anywhere else, which a test wants empty."""
    strange: list[str] = []
    files = {
        "": ("text/html", (HERE / "page.html").read_text()),
        "board.js": ("text/javascript", BOARD.read_text()),
        "editors.js": ("text/javascript", BOARD.with_name("editors.js").read_text()),
        "theme.css": ("text/css", theme_css(theme)),
    }

    def answer(route: Any) -> None:
        name = route.request.url.removeprefix(URL)
        if name in files:
            route.fulfill(content_type=files[name][0], body=files[name][1])
            return
        if not name.endswith("favicon.ico"):
            strange.append(route.request.url)
        route.abort()

    page.route("**/*", answer)
    return strange


def open_board(page: Any, sent: dict[str, Any], theme: str = "light", notebook: str = "") -> list[str]:
    """Shows the board. `notebook` is JavaScript for the shared notebook that the widget's manager gives away, if any."""
    strange = serve(page, theme)
    if notebook:
        page.add_init_script(f"window.notebook = {notebook};")
    page.goto(URL)
    page.wait_for_function("window.ready")
    page.evaluate("(text) => window.begin(JSON.parse(text))", json.dumps(sent))
    page.wait_for_selector(".kw-tbody .kw-tr, .kw-empty")
    return strange


def deliver(page: Any, message: dict[str, Any]) -> None:
    """A message as Python sends it."""
    page.evaluate("(text) => window.deliver(JSON.parse(text))", json.dumps(message))


def sent(page: Any, kind: str) -> list[dict[str, Any]]:
    """The messages of one kind that the board has sent."""
    found: list[dict[str, Any]] = page.evaluate("(kind) => window.sent.filter((message) => message.type === kind)", kind)
    return found
