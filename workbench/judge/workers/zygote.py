"""A process that has imported everything and is forked for each candidate, so that nobody waits seconds for an import.

It never runs a line of a candidate. It lives in the sandbox, and each fork closes itself in further before it becomes a worker: mount,
process, IPC and network namespaces of its own with a fresh /tmp, /dev/shm, /proc and work directory, an unused user id, limits, a seccomp
filter. So candidates share nothing but the memory pages of the libraries, and can't even see that there are others.

Three processes a candidate: the *keeper*, in the zygote's namespaces, tells the judge its process id and later how the worker ended; the
*init* of the new process namespace, whose end takes everything with it; and the *worker*.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.judge.isolation import watchdog
from workbench.judge.workers import boot

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWPID, _CLONE_NEWNET = 0x00020000, 0x08000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 1 << 5, 1 << 12, 1 << 14, 1 << 18
_PR_SET_CHILD_SUBREAPER = 36
_ORDER_BYTES = 1 << 16


def main(order: Mapping[str, Any]) -> None:
    """Imports, then forks a worker for each message on the line, until the judge closes it."""
    line = socket.socket(fileno=order["line"])
    from workbench.judge.workers import worker

    worker.warm(order["kind"], order["target"])
    gc.collect()
    gc.freeze()  # what is here now stays shared between the forks
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are reaped by the kernel
    while True:
        try:
            message, files, _, _ = socket.recv_fds(line, _ORDER_BYTES, 3)
        except OSError:
            return
        if not message:
            return
        if os.fork() == 0:
            _keep(line, json.loads(message), files)
        for file in files:
            os.close(file)


def _keep(control: socket.socket, order: dict[str, Any], files: list[int]) -> None:
    """The keeper: makes the namespaces, has the worker run, and says how it ended."""
    status = 255
    try:
        zygote = os.getppid()
        boot.die_with_parent(zygote)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        number = order["number"]
        control.send(json.dumps({"worker": number, "begun": True}).encode())  # its credentials tell the judge who it is
        libc = ctypes.CDLL(None, use_errno=True)
        if order["sandboxed"]:
            _check(libc.unshare(_CLONE_NEWNS | _CLONE_NEWIPC | _CLONE_NEWPID | _CLONE_NEWNET))
            _check(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
        else:
            libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans stay where the judge finds and kills them
        child = os.fork()
        if child == 0:
            control.close()
            _begin(libc, order, files)
        for file in files:
            os.close(file)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not order["sandboxed"]:
            _bury_orphans()
        control.send(json.dumps({"worker": number, "status": status if status >= 0 else 128 - status}).encode())
    finally:
        os._exit(status & 0xFF)


def _begin(libc: Any, order: dict[str, Any], files: list[int]) -> None:
    """In the new process namespace: mounts, then init and worker. Without a sandbox: the worker at once."""
    status = 254
    try:
        if order["sandboxed"]:
            boot.die_with_parent(None)
            _mount(libc, order)
            worker = os.fork()
            if worker:
                for file in (*files, 1, 2):
                    os.close(file)
                status = _reap_until(worker)
                return
        _work(order, files)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 253
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


def _work(order: dict[str, Any], files: list[int]) -> None:
    line, log, shared = files
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    boot.close_in(order | {"sandboxed": True} if order["sandboxed"] else order | {"parent": os.getppid()})
    os.environ.update(order["environment"])
    tempfile.tempdir = None  # the zygote has made temporary files, and remembers where: its forks may have another place
    from workbench.judge.workers import worker

    worker.main(order | {"line": line, "shared": shared})


def _bury_orphans() -> None:
    """Kills what the worker left behind. Orphans have become the keeper's children, since it is their subreaper."""
    for _ in range(1000):
        for pid in watchdog.tree(os.getpid())[1:]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _reap_until(worker: int) -> int:
    """What an init has to do: buries orphans until the worker ends. Returns how."""
    while True:
        pid, status = os.wait()
        if pid == worker:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _mount(libc: Any, order: dict[str, Any]) -> None:
    flags = _MS_NOSUID | _MS_NODEV
    _check(libc.mount(b"proc", b"/proc", b"proc", flags, None))
    size = order["scratch_bytes"]
    # What lies under the new mounts and is still needed is held open, and bound again on top of them.
    kept = [(place, os.open(place, os.O_PATH | os.O_CLOEXEC)) for place in order["readable"]]
    for place, mode in (("/tmp", "1777"), ("/dev/shm", "1777"), (order["directory"], "0700")):
        owner = f",uid={order['user']},gid={order['user']}" if mode == "0700" else ""
        _check(libc.mount(b"tmpfs", place.encode(), b"tmpfs", flags, f"size={size},mode={mode}{owner}".encode()))
    for place, file in kept:
        Path(place).mkdir(mode=0o755, parents=True)
        _check(libc.mount(f"/proc/self/fd/{file}".encode(), place.encode(), None, _MS_BIND | _MS_REC, None))
        _check(libc.mount(None, place.encode(), None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | flags, None))
        os.close(file)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
