"""``make demo``: the first lesson runs from top to bottom, and its last line names what was accepted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.timeout(400)
def test_the_demo_ends_with_an_accepted_kernel_its_verdict_and_its_time():
    run = subprocess.run([sys.executable, str(ROOT / "notebooks" / "demo.py")], capture_output=True, text=True, timeout=390)
    assert run.returncode == 0, run.stdout + run.stderr
    last = run.stdout.strip().splitlines()[-1]
    assert re.fullmatch(r"accepted k\d+ for rms_norm: right, \d+\.\d µs (modelled for cuda:90|measured)", last)
    assert re.search(r"★ k\d+\.\d+ +right", run.stdout), "the table of variants marks the best"


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_each_cell_of_a_lesson_runs_by_nbval(lesson, tmp_path):
    copy = tmp_path / lesson.name
    copy.write_bytes(lesson.read_bytes())
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-current-env", "-p", "no:cacheprovider", "-c", "/dev/null", str(copy)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=890)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]


def test_lessons_are_kept_without_outputs():
    import nbformat

    for lesson in LESSONS:
        for cell in nbformat.read(lesson, as_version=4).cells:
            assert cell.cell_type != "code" or (not cell.outputs and cell.execution_count is None), f"{lesson.name} has outputs"
