"""The system calls that a worker may not make, as a BPF program.

A deny-list: CUDA, PyTorch and Triton need a wide and moving set of calls, and the namespaces already hide most of what there is to
reach. What is refused lets a process look into others, make new namespaces, change mounts, or reach rarely tested parts of the kernel.
Refused calls fail with EPERM. ``clone3`` fails with ENOSYS, since its flags lie in memory that a filter can't read; the C library
then falls back to ``clone``, whose flags are looked at.
"""

from __future__ import annotations

import errno
import platform
import struct

# name: (number on x86_64, number on aarch64); None where the architecture lacks it.
DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "unshare": (272, 97), "setns": (308, 268), "chroot": (161, 51),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "uselib": (134, None),
}  # fmt: skip

NEW_NAMESPACES = 0x00000080 | 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""

# For clone, the bit of CLONE_NEWTIME belongs to the exit signal.
_CLONE_FLAGS = NEW_NAMESPACES & ~0xFF

_ARCHITECTURES = {"x86_64": (0, 0xC000003E, 56), "aarch64": (1, 0xC00000B7, 220)}  # column, AUDIT_ARCH, clone
_CLONE3 = 435
_SOCKET = (41, 198)
_OUTWARD = (2, 10, 17, 21, 30, 31, 40)
"""Families of sockets that leave the machine, or talk to another one on it: internet, packets, RDS, TIPC, Bluetooth, virtual machines."""
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _ARG0 = 0, 4, 16  # offsets in struct seccomp_data; the low half of an argument comes first


def program(machine: str | None = None, *, network: bool = True) -> bytes | None:
    """The filter as an array of ``struct sock_filter``, for ``bwrap --seccomp``; None on an architecture that is not known.

    Args:
        network: allow sockets of the internet's kind, since there is a network namespace of their own to be in.
    """
    known = _ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    column, arch, clone = known
    refuse = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    code = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, arch), refuse,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32), refuse,
        (_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]  # fmt: skip
    for numbers in DENIED.values():
        if (number := numbers[column]) is not None:
            code += [(_EQUAL, 0, 1, number), refuse]
    if not network:
        refused = [step for family in _OUTWARD for step in ((_EQUAL, 0, 1, family), refuse)]
        code += [(_EQUAL, 0, len(refused) + 2, _SOCKET[column]), (_LOAD, 0, 0, _ARG0), *refused, (_RETURN, 0, 0, _ALLOW)]
    code += [
        (_EQUAL, 0, 3, clone), (_LOAD, 0, 0, _ARG0), (_ANY_BIT, 0, 1, _CLONE_FLAGS), refuse,
        (_RETURN, 0, 0, _ALLOW),
    ]  # fmt: skip
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)
