"""The tracer is loaded between cells once the person has imported torch, never before, and in no other thread."""

import subprocess
import sys

SCRIPT = """
import asyncio, sys, threading, time
from IPython.core.interactiveshell import InteractiveShell

async def cells():
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "workbench")
    warm_up = shell._workbench_warm_up
    shell.run_cell("1 + 1")
    assert "torch" not in sys.modules and warm_up.handle is None, "loading the extension imported torch"
    shell.run_cell("import torch")
    assert "torch._dynamo" not in sys.modules, "the cell that imports torch waits for the tracer"
    # What traces at once, by itself, finds no other trace under way.
    shell.run_cell("import workbench.capture as c; done = c.capture_call(lambda x: x.exp(), (torch.randn(8, 8),), name='e')")
    assert shell.user_ns["done"].task.graph.ops() == ("exp",), shell.user_ns["done"].notes
    assert [thread.name for thread in threading.enumerate() if "warm" in thread.name] == []
    first = warm_up.handle
    shell.run_cell("1 + 1")
    assert warm_up.handle is first
    await asyncio.sleep(0.2)
    assert "torch._dynamo" in sys.modules, "the tracer is not loaded"
    shell.run_line_magic("unload_ext", "workbench")
    print("warm")

asyncio.run(cells())
"""


def test_the_tracer_is_loaded_between_cells_once_the_person_has_imported_torch():
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=200)
    assert run.stdout.strip().endswith("warm"), run.stdout + run.stderr
