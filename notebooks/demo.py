"""The main job without a screen: runs the first lesson from top to bottom, then prints its variants and the kernel it accepted.

``make demo`` calls this. Needs neither a GPU nor a key.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

LESSON = Path(__file__).parent / "01_first_kernel.ipynb"


def run_lesson(lesson: Path, folder: Path) -> None:
    """Executes the notebook in `folder`, naming each cell as it starts.

    Raises:
        CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(lesson, as_version=4)
    started = time.monotonic()

    def announce(cell: nbformat.NotebookNode, cell_index: int) -> None:
        if cell.cell_type == "code" and cell.source.strip():
            first = cell.source.strip().splitlines()[0]
            print(f"[{time.monotonic() - started:5.1f} s] {first[:100]}", flush=True)

    client = NotebookClient(
        notebook, timeout=280, kernel_name="python3", resources={"metadata": {"path": str(folder)}}, on_cell_start=announce,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )  # fmt: skip
    client.execute()


def main() -> int:
    """Runs the lesson in a fresh folder and reports from its store alone."""
    with tempfile.TemporaryDirectory(prefix="workbench-demo-") as name:
        folder = Path(name)
        os.environ["WORKBENCH_STORE"] = str(folder / ".workbench")
        try:
            run_lesson(LESSON, folder)
        except CellExecutionError as error:
            print(error, file=sys.stderr)
            return 1
        import workbench
        from workbench.events import AcceptedCandidate
        from workbench.notebook.static import render

        run = workbench.open()
        print("\n" + render(run)[1])
        accepted = [stamped.event for stamped in run.events() if isinstance(stamped.event, AcceptedCandidate)]
        if not accepted:
            print("no kernel was accepted", file=sys.stderr)
            return 1
        evaluation = accepted[-1].evidence.evaluation
        timing = evaluation.timing
        if timing is None:
            cost = "no time"
        else:
            cost = f"{timing.median_us:.1f} µs " + ("modelled for " + run.task.target if timing.modelled else "measured")
        print(f"accepted {accepted[-1].evidence.candidate} for {run.task.name}: {evaluation.verdict.value}, {cost}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
