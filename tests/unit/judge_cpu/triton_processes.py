import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def run_lines(script: str, *arguments: str, interpret: bool = True, cache: str = "") -> list[dict]:
    """Runs a script of this folder in a fresh process, and gives the JSON lines that it printed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": f"{HERE}:{HERE.parents[2]}"}
    environment.pop("TRITON_INTERPRET", None)
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    if cache:
        environment["TRITON_CACHE_DIR"] = cache
    command = [sys.executable, str(HERE / script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, done.stderr[-3000:]
    return lines
