"""The wheel, installed as a person has it: a virtual environment of its own whose JupyterLab finds the extension.

Everything but the workbench is borrowed from the environment that runs the tests, so this takes a few seconds and no network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAME = "kernel-workbench"


def build_wheel(folder: Path, environment: dict[str, str] | None = None) -> Path:
    """The wheel of this checkout, made by hatchling as it is installed here."""
    command = [sys.executable, "-c", "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / done.stdout.strip().splitlines()[-1]


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel."""

    root: Path

    @property
    def python(self) -> str:
        return str(self.root / "bin" / "python")

    def run(self, *arguments: str) -> str:
        done = subprocess.run([self.python, *arguments], capture_output=True, text=True, timeout=120, check=False, cwd=self.root)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def add_kernel(self, name: str, packages: Path) -> str:
        """A kernel whose ipykernel comes from `packages`."""
        place = self.root / "share" / "jupyter" / "kernels" / name
        place.mkdir(parents=True, exist_ok=True)
        argv = [self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        path = os.pathsep.join(map(str, (packages, HERE, HERE.parent / "unit" / "evolution")))
        spec = {"argv": argv, "display_name": name, "language": "python", "env": {"PYTHONPATH": path}}
        (place / "kernel.json").write_text(json.dumps(spec))
        return name


def install(folder: Path, wheel: Path) -> Environment:
    """Makes the environment and installs the wheel into it, and nothing else."""
    made = Environment(folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    # Named by a .pth file, the lender's own .pth files (and with them an editable workbench) are not read.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", made.python, "install", "--quiet", "--no-deps", "--no-index", "--force-reinstall",
         "--disable-pip-version-check", str(wheel)],
        check=True, timeout=120,
    )  # fmt: skip
    lent, share = Path(sys.prefix) / "share" / "jupyter", folder / "share" / "jupyter"
    (share / "labextensions").mkdir(parents=True, exist_ok=True)
    (share / "lab").symlink_to(lent / "lab")
    for extension in (lent / "labextensions").iterdir():
        if extension.name != NAME:
            (share / "labextensions" / extension.name).symlink_to(extension)
    return made


def exchange_jupyterlab(made: Environment, version: str) -> None:
    """Another JupyterLab for that environment, from the index. Notebook's own extension goes: it is built for one JupyterLab alone."""
    share = made.root / "share" / "jupyter"
    (share / "lab").unlink()
    (share / "labextensions" / "@jupyter-notebook").unlink(missing_ok=True)
    quiet = ("--quiet", "--no-deps", "--disable-pip-version-check")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", made.python, "install", *quiet, f"jupyterlab=={version}"], check=True, timeout=300
    )


def fetch(folder: Path, *requirements: str) -> Path:
    """Packages for one kernel, from the index; they come before the borrowed ones."""
    quiet = ("--quiet", "--no-deps", "--disable-pip-version-check")
    subprocess.run([sys.executable, "-m", "pip", "install", *quiet, "--target", str(folder), *requirements], check=True, timeout=300)
    return folder
