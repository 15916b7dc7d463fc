"""The tracer is loaded in the background once the person has imported torch, and never before."""

import subprocess
import sys

SCRIPT = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "workbench")
warm_up = shell._workbench_warm_up
shell.run_cell("1 + 1")
assert "torch" not in sys.modules and warm_up.thread is None, "loading the extension imported torch"
shell.run_cell("import torch")
warm_up.thread.join(120)
assert "torch._dynamo" in sys.modules, "the tracer is not loaded"
first = warm_up.thread
shell.run_cell("1 + 1")
assert warm_up.thread is first
shell.run_line_magic("unload_ext", "workbench")
print("warm")
"""


def test_the_tracer_is_loaded_when_the_person_has_imported_torch():
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=200)
    assert run.stdout.strip().endswith("warm"), run.stdout + run.stderr
