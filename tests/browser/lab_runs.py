"""What test notebooks run: a real search with a judge that is a formula, so that a step takes milliseconds and needs no GPU."""

from __future__ import annotations

import hashlib

OP = "def double(x):\n    return x * 2\n\ny = double(1)"
OP_HASH = hashlib.sha256(OP.encode()).hexdigest()

LOAD = "%load_ext workbench"

BEGIN = """
import threading
from scripted_fleet import TASK, ScriptedFleet, ScriptedProposer, diagnose
from workbench import evolution
from workbench.notebook.session import SESSION, open_store

def begin(cell="", cell_source="", **more):
    run = evolution.start(
        TASK, fleet=ScriptedFleet, proposers=(ScriptedProposer(),), diagnose=diagnose, store=open_store(), cell=cell,
        cell_source=cell_source, **more)
    SESSION.add(run)
    return run
"""

SHOW = (
    BEGIN
    + """
from workbench.notebook.display import show
run = begin()
show(run);
"""
)

BOARD = (
    BEGIN
    + f"""
from workbench.board import Board
SOURCE = {OP!r}
run = begin("c0", SOURCE).step(4)
told = []
def accept(candidate, place, consent=False):
    import hashlib
    return {{"code": f"# accepted {{candidate}}\\n" + SOURCE.replace("x * 2", "x + x"), "cell": "c0",
             "expected_hash": hashlib.sha256(SOURCE.encode()).hexdigest(), "message": "right, judged again",
             "provenance": {{"run": run.id, "candidate": candidate}}}}
board = Board(run, accept=accept, applied=lambda candidate, outcome: told.append((candidate, outcome)))
board
"""
)

ROWS = "Number(document.querySelector('.kw-table')?.getAttribute('aria-rowcount') ?? 0)"
GOOD = ".kw-accept[data-tone=good]"


def command(page, name, args="{}"):
    """Executes a command of the front end and waits for what it promises."""
    return page.evaluate(f"window.jupyterapp.commands.execute('kernel-workbench:{name}', {args})")


def cell(page, index):
    return page.locator(".jp-Notebook .jp-Cell").nth(index)


def edit_cell(page, index, keys):
    """Clicks into a cell's editor and types."""
    cell(page, index).locator(".cm-content").first.click()
    for key in keys:
        page.keyboard.press(key)


def accepted(source):
    """What accept writes in place of `source`, but for its first line."""
    return source.replace("x * 2", "x + x")
