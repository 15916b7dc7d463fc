"""The directory in which a judge's workers have theirs, and what to do with those that a killed judge left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "workbench-judge-"


def make() -> Path:
    """A new one. Its name says whose it is, so that it is found again when that process is gone."""
    home = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-{_started(os.getpid())}-"))
    home.chmod(0o711)  # a worker with an id of its own passes through, and sees nothing
    return home


def remove(home: Path) -> None:
    """Removes one, with what workers put there."""
    shutil.rmtree(home, ignore_errors=True)


def clear_stale() -> None:
    """Removes those of processes that are gone, as far as they are this user's."""
    for home in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*-*"):
        pid, _, rest = home.name.removeprefix(_PREFIX).partition("-")
        started = rest.partition("-")[0]
        if not pid.isdigit() or _started(int(pid)) == started:
            continue
        with contextlib.suppress(OSError):
            if home.lstat().st_uid == os.getuid() and not home.is_symlink():
                remove(home)


def _started(pid: int) -> str:
    """When a process started, in ticks since boot: with its id it names it for good. Empty if there is none."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""
