"""Landlock, for machines that forbid user namespaces: a process gives up all files but those on a list, TCP, and signals to others.

The kernel's own interface by system calls, with the standard library alone, since `boot` runs it before anything else. What Landlock does
not cover (sockets that are not TCP, ptrace, mounts) is `seccomp`'s.

One rule is narrow on purpose: CUDA's driver writes thread names below ``/proc/<own id>/task``, and refuses to start where it can't. That
folder alone is writable, by this process; the rest of /proc is not.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Mapping
from typing import Any

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_VERSION = 1
_O_PATH = 0o10000000

_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_ALL = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_EVERY_TCP, _OWN_SIGNALS = 0b11, 0b11
LEAST = 4
"""The version from which it is worth the name: the first that closes TCP."""


def version() -> int:
    """What this kernel offers; 0 where there is no Landlock."""
    return max(0, _call(_CREATE, None, 0, _VERSION))


def restrict(allowed: Mapping[str, Any]) -> None:
    """Gives up everything but what is allowed, for good, for this process and all that it starts.

    Args:
        allowed: `version`, and lists of paths: `read` (and run), `write`, and `devices`. Paths that are not there are left out.

    Raises:
        OSError: the kernel refuses.
    """
    level = int(allowed["version"])
    files = _ALL.get(level, (1 << 16) - 1)
    words = [files, *([_EVERY_TCP] if level >= 4 else []), *([_OWN_SIGNALS] if level >= 6 else [])]
    attributes = struct.pack(f"<{len(words)}Q", *words)
    ruleset = _check(_call(_CREATE, attributes, len(attributes), 0))
    reading = (_EXECUTE | _READ | _LIST) & files
    for path in allowed["read"]:
        _allow(ruleset, path, reading)
    for path in allowed["write"]:
        _allow(ruleset, path, files & ~_IOCTL)
    for path in allowed["devices"]:
        _allow(ruleset, path, (_READ | _WRITE | _LIST | _IOCTL) & files)
    _allow(ruleset, "/proc/self/task", (_READ | _WRITE | _LIST | _TRUNCATE) & files)
    _check(_call(_RESTRICT, ruleset, 0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, _O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _FILE_RIGHTS
        _check(_call(_ADD, ruleset, 1, struct.pack("<Qi", rights, place), 0))
    finally:
        os.close(place)


def _call(number: int, *arguments: Any) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(number, *arguments))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno() or errno.EPERM
        raise OSError(number, os.strerror(number), "Landlock")
    return result
