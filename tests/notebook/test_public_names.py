"""``import workbench`` is light, and offers what it lists."""

from __future__ import annotations

import subprocess
import sys

import workbench

HEAVY = ("torch", "triton", "plotly", "IPython", "sqlalchemy", "openai", "anywidget", "ipywidgets", "numpy")


def test_importing_it_imports_nothing_heavy():
    code = f"import sys, workbench; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_every_listed_name_is_there():
    assert workbench.__all__ == sorted(workbench.__all__)
    for name in workbench.__all__:
        assert getattr(workbench, name) is not None
        assert name in dir(workbench)


def test_an_unknown_name_is_an_attribute_error():
    try:
        workbench.nothing  # noqa: B018
    except AttributeError as error:
        assert "nothing" in str(error)
    else:
        raise AssertionError("no error")
