"""How much memory a worker and all its descendants hold, seen from outside.

Address space can't be limited, because CUDA reserves it by the terabyte, so resident memory is looked at while the judge waits.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

RESERVE = 512 << 20
"""What must stay free on the machine: below it the worker that is being waited for is killed."""


def default_cap() -> int:
    """Bytes that one worker may hold: at most 32 GiB, and at most 60 % of what is free now."""
    return min(32 << 30, int(available() * 0.6))


def available() -> int:
    """Bytes that the kernel could hand out now."""
    with contextlib.suppress(OSError), Path("/proc/meminfo").open() as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 1 << 62


def tree(pid: int) -> list[int]:
    """`pid` and its descendants. With a process namespace of their own, orphans stay in the tree."""
    found: list[int] = []
    queue = [pid]
    while queue and len(found) < 4096:
        current = queue.pop()
        found.append(current)
        with contextlib.suppress(OSError, ValueError):
            for task in Path(f"/proc/{current}/task").iterdir():
                queue += [int(child) for child in Path(task, "children").read_text().split()]
    return found


def held(pid: int, limit: int) -> int:
    """Bytes of private and shared memory that the whole tree holds; files that are merely mapped don't count.

    Forks share pages until one writes, so a first quick sum may count them many times; only if that reaches `limit` is it made exact.
    """
    processes = tree(pid)
    rough = sum(_sum(process, "status", ("RssAnon:", "RssShmem:")) for process in processes)
    if rough < limit:
        return rough
    return sum(_sum(process, "smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) for process in processes)


def _sum(pid: int, file: str, lines: tuple[str, ...]) -> int:
    total = 0
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(lines):
                total += int(line.split()[1]) << 10
    return total
