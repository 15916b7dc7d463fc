"""The first code of a worker's process: limits, identity, and only then the worker.

Run as a script by ``python -I``, with the standard library alone. Everything here is done before a candidate is read, and can't be
undone by it.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
SECCOMP_MODE_FILTER = 2
PR_CAPBSET_DROP = 24
_CAPABILITY_VERSION = 0x20080522


def main() -> None:
    """Becomes the worker, or the zygote that worker processes are forked from, as ordered by the first argument."""
    order = json.loads(sys.argv[1])
    # Last on the path: nothing that lies beside the package can shadow a module.
    sys.path.append(order["package"])
    if order.get("zygote"):
        from workbench.judge.workers.zygote import main as serve

        die_with_parent(order["parent"] if not order["sandboxed"] else None)
        serve(order)
        return
    close_in(order)
    if order.get("probe"):
        print(look_around(order))  # noqa: T201 - the answer
        return
    from workbench.judge.workers.worker import main as work

    work(order)


def close_in(order: Mapping[str, Any]) -> None:
    """Takes from this process what the candidate may not have: resources, identity, rights, system calls."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for name, value in order["limits"].items():
        limit(name, value)
    if order["user"] is not None and os.getuid() == 0:
        # RLIMIT_NPROC binds no root; an id that nobody else uses makes it count this worker's processes alone.
        os.setgroups([])
        os.setgid(order["user"])
        os.setuid(order["user"])
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    if not order["sandboxed"]:  # bwrap sees to it elsewhere
        die_with_parent(order["parent"])
    os.umask(0o077)
    os.chdir(order["directory"])
    if allowed := order.get("landlock"):
        _drop_capabilities(prctl)
        from workbench.judge.isolation.landlock import restrict

        restrict(allowed)
    if filter_code := order.get("seccomp"):
        _install(prctl, bytes.fromhex(filter_code))


def limit(name: str, value: int) -> None:
    """Lowers a limit for good; one that is already lower stays."""
    which = getattr(resource, f"RLIMIT_{name}")
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def die_with_parent(parent: int | None) -> None:
    """Has the kernel kill this process when its parent ends. Call it after any change of identity, which would clear it."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def look_around(order: Mapping[str, Any]) -> str:
    """What a process in here could still reach of the outside, or ``closed``."""
    if os.getuid() == 0 and not order.get("landlock"):
        return "it runs as root"
    if order.get("landlock"):
        return _look_past_landlock(order)
    with open("/proc/net/dev") as file:  # noqa: PTH123 - no more imports than needed
        links = {line.split(":")[0].strip() for line in file if ":" in line}
    if links - {"lo", "sit0", "ip6tnl0", "tunl0"}:
        return "the network is reachable"
    if any(os.access(place, os.W_OK) for place in (order["package"], order["package"] + "/workbench", "/usr", "/")):
        return "the file system is writable"
    try:
        os.kill(order["parent"], 0)
    except ProcessLookupError:
        pass
    except OSError:
        return "processes outside are visible"
    return "closed" if os.access(order["directory"], os.W_OK) else "the work directory is not writable"


def _look_past_landlock(order: Mapping[str, Any]) -> str:
    """The same for a process that shares the machine's namespaces: what it tries has to fail."""
    import socket

    with open("/proc/self/status") as file:  # noqa: PTH123 - no more imports than needed
        if any(line.startswith("CapEff:") and int(line.split()[1], 16) for line in file):
            return "it has capabilities"
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.socket(family, socket.SOCK_DGRAM).close()
            return "the network is reachable"
        except OSError:
            pass
    for place in (order["package"] + "/workbench", "/tmp", "/dev/shm", "/proc/sys/kernel"):
        try:
            os.close(os.open(place + "/probe", os.O_WRONLY | os.O_CREAT, 0o600))
            return f"{place} is writable"
        except OSError:
            pass
    for place in ("/etc/passwd", f"/proc/{order['parent']}/environ", "/root", "/home"):
        try:
            os.close(os.open(place, os.O_RDONLY))
            return f"{place} is readable"
        except OSError:
            pass
    try:
        os.kill(order["parent"], 0)
        return "signals reach processes outside"
    except OSError:
        pass
    try:
        with open(order["directory"] + "/probe", "w") as file:  # noqa: PTH123 - no more imports than needed
            file.write("x")
        with open(f"/proc/self/task/{os.getpid()}/comm", "w") as file:  # noqa: PTH123
            file.write("probe")
    except OSError as error:
        return f"{error.filename} is not writable"
    return _start_cuda() or "closed"


def _start_cuda() -> str:
    """Whether CUDA's driver starts in here, where there is one: it wants more of the machine than it says."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    for step, arguments in (
        (driver.cuInit, (0,)), (driver.cuDeviceGet, (ctypes.byref(device), 0)),
        (driver.cuDevicePrimaryCtxRetain, (ctypes.byref(context), device)),
    ):  # fmt: skip
        error = step(*arguments)
        if error == 100:  # no device: nothing to be kept from
            return ""
        if error:
            return f"CUDA does not start in it (error {error})"
    return ""


def _drop_capabilities(prctl: Any) -> None:
    """Without namespaces of its own a process keeps none, whoever it is."""
    for capability in range(64):
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "capabilities can't be given up")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def _install(prctl: Any, code: bytes) -> None:
    """Puts a seccomp filter over this process; it can't be taken off."""
    program = _Program(len(code) // 8, code)
    if prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the seccomp filter was refused")


if __name__ == "__main__":
    main()
