"""A front end on a loopback port with folders and a token of its own, and a Chromium that can reach nothing else.

Benchmarks and browser tests stand on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import workbench
from workbench.errors import MisuseError

PACKAGE = Path(workbench.__file__).parents[1]
CURRENT = "window.jupyterapp.shell.currentWidget"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab; notebooks are made in `root`."""

    url: str
    token: str
    root: Path

    def open(self, page: Any, name: str, cells: list[str]) -> None:
        """Writes a notebook of these code cells, opens it in the page, and waits for its kernel."""
        made: list[dict[str, Any]] = [
            {"cell_type": "code", "id": f"c{number}", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
            for number, source in enumerate(cells)
        ]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        (self.root / name).write_text(json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
        page.goto(f"{self.url}doc/workspaces/{secrets.token_hex(4)}/tree/{name}?token={self.token}")
        page.wait_for_function("window.jupyterapp !== undefined", timeout=120_000)
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
        page.wait_for_function(f"({CURRENT})?.sessionContext.session?.kernel?.connectionStatus === 'connected'", timeout=120_000)


def run_cell(page: Any, index: int, wait: bool = True) -> None:
    """Runs one cell as a person does. Without `wait` it returns when the cell was sent to the kernel."""
    page.evaluate(
        f"""([index, wait]) => {{ ({CURRENT}).content.activeCellIndex = index;
            const done = window.jupyterapp.commands.execute('notebook:run-cell'); return wait ? done.then(() => null) : null; }}""",
        [index, wait],
    )


def cell_text(page: Any, index: int) -> str:
    """What a cell printed.

    Raises:
        MisuseError: the cell failed; the line says how.
    """
    outputs = page.evaluate(f"(index) => ({CURRENT}).content.model.sharedModel.cells[index].toJSON().outputs", index)
    for output in outputs:
        if output["output_type"] == "error":
            raise MisuseError(f"cell {index} of the benchmark failed: {output.get('ename')}: {output.get('evalue')}")
    return "".join("".join(output.get("text", "")) for output in outputs)


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser that draws in software.

    Raises:
        MisuseError: there is none, or no playwright; one line with the mend.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise MisuseError("bench board needs playwright: pip install 'kernel-workbench[test]'") from None
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        except Error:
            raise MisuseError("bench board needs a Chromium: apt install chromium, or playwright install chromium") from None
        yield browser
        browser.close()


def quiet_page(browser: Any) -> Any:
    """A page whose every request to another host than 127.0.0.1 is refused."""
    context = browser.new_context(viewport={"width": 1360, "height": 1000})
    context.route("**/*", lambda route: route.continue_() if urlsplit(route.request.url).hostname in ("127.0.0.1", None) else route.abort())
    return context.new_page()


@contextlib.contextmanager
def jupyterlab(
    folder: Path, *, python: str = sys.executable, app: str = "jupyterlab", pythonpath: Sequence[Path] = (PACKAGE,),
    options: Sequence[str] = (),
) -> Iterator[Lab]:  # fmt: skip
    """Starts a front end with everything that it writes in `folder`, and ends it.

    Args:
        python: whose JupyterLab it is.
        app: ``jupyterlab``, or ``notebook`` for Notebook 7.
        pythonpath: what it and its kernels find first.
        options: more of its command line.

    Raises:
        MisuseError: it is not installed, or does not start.
    """
    application = {"jupyterlab": "LabApp", "notebook": "JupyterNotebookApp"}[app]
    root, settings = folder / "notebooks", folder / "settings"
    root.mkdir(exist_ok=True)
    quiet = settings / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))
    token = secrets.token_hex(16)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "WORKBENCH"))}
    for name in ("CONFIG", "DATA", "RUNTIME"):
        environment[f"JUPYTER_{name}_DIR"] = str(folder / name.lower())
    environment |= {"IPYTHONDIR": str(folder / "ipython"), "XDG_DATA_HOME": str(folder / "share"), "JUPYTER_TOKEN": token}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, pythonpath))
    log = folder / "lab.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [
                python, "-m", app, "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0",
                f"--ServerApp.root_dir={root}", f"--{application}.user_settings_dir={settings}",
                f"--{application}.workspaces_dir={folder / 'workspaces'}", f"--{application}.expose_app_in_browser=True",
                "--LabApp.extension_manager=readonly", "--LabApp.check_for_updates_class=", *options,
            ],
            env=environment, cwd=root, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield Lab(_address(server, folder / "runtime", log), token, root)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(15)


def _address(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Where the server listens: it writes so itself, once it knows its port."""
    for _ in range(600):
        if server.poll() is not None:
            said = log.read_text().strip().splitlines() or ["it said nothing"]
            raise MisuseError(f"JupyterLab did not start ({said[-1][:200]}): pip install 'kernel-workbench[test]'")
        for file in runtime.glob("jpserver-*.json"):
            try:
                url = str(json.loads(file.read_text())["url"])
                urllib.request.urlopen(f"{url}api", timeout=5).read()
            except (OSError, ValueError, KeyError):
                continue
            return url
        time.sleep(0.1)
    raise MisuseError(f"JupyterLab did not start in a minute: see {log}")
