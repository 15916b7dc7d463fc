"""Who goes on with a run: a name for a process, and whether that process is still there."""

from __future__ import annotations

import os
import secrets
import socket


def owner() -> str:
    """A name for whoever goes on with a run: this machine, this process, this time."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"


def runs_here(owner: str) -> bool:
    """Whether the process of that name is another one of this machine, and alive. On other machines it is taken for gone."""
    process = _process(owner)
    if process is None or process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True


def is_this_process(owner: str) -> bool:
    """Whether the name is one of this process."""
    return _process(owner) == os.getpid()


def _process(owner: str) -> int | None:
    """The process's number where it is one of this machine."""
    host, _, rest = owner.rpartition(":")[0].rpartition(":")
    return int(rest) if host == socket.gethostname() and rest.isdigit() else None
