"""Workers that are warm before they are needed: the import of PyTorch takes seconds, and nobody should wait for it twice.

Where a fork can be closed in as well as a fresh process, a zygote is imported once for each kind of worker, and a spare one costs a few
hundredths of a second; elsewhere each spare worker imports for itself, in the background.

One thread starts them all and lives as long as the pool, since the kernel kills a process when the thread that started it ends.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from workbench.judge.isolation import homes, watchdog
from workbench.judge.isolation.process import ON_DEVICE, Kind, Worker, WorkerLost, environment
from workbench.judge.isolation.sandbox import Tier, can_fork
from workbench.judge.isolation.spawn import Zygote


class Nursery:
    """The thread that starts processes, and the zygotes that it has started. Several pools of one process may share it."""

    def __init__(self, tier: Tier) -> None:
        self.tier = tier
        self._zygotes: dict[tuple[Kind, str], Zygote] = {}
        self._work: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nursery", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], None]) -> None:
        """Runs `work` in the thread that outlives what it starts."""
        self._work.put(work)

    def zygote(self, kind: Kind, target: str) -> Zygote | None:
        """What forks workers of this kind, started at the first of them, and again should it have died. For use in `submit`."""
        if kind == "baseline" or not can_fork(self.tier):
            return None
        zygote = self._zygotes.get((kind, target))
        if zygote is None or not zygote.alive:
            if zygote is not None:
                zygote.close()
            zygote = Zygote(self.tier, kind=kind, target=target, environment=environment(kind), gpu=kind in ON_DEVICE)
            self._zygotes[kind, target] = zygote
        return zygote

    def close(self) -> None:
        """Ends the zygotes, and with them every worker."""
        self._work.put(None)
        self._ended.wait(10.0)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
        for zygote in self._zygotes.values():
            zygote.close()
        self._ended.set()


_MOST_REST = 30.0


def spares() -> int:
    """How many workers stand ready for a device: two where there are cores and memory to spare."""
    return 2 if (os.cpu_count() or 1) >= 8 and watchdog.available() > 16 << 30 else 1


class Pool:
    """Keeps spare workers of each kind; a taken one is replaced at once, in the background.

    Args:
        depth: how many spares of the kinds that run on a device; one of each other kind.
        busy: entered while a spare makes a card busy by warming up on it.
        pin: bytes of the memory shared with workers on a device that the card reaches itself.
    """

    def __init__(
        self, tier: Tier, kinds: Sequence[Kind], *, target: str, shared_bytes: int, memory_cap: int | None = None,
        nursery: Nursery | None = None, depth: int = 1, busy: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
        pin: int = 0,
    ) -> None:  # fmt: skip
        self.tier = tier
        homes.clear_stale()
        self.home = homes.make()
        self._busy, self._pin, self._depth = busy, pin, depth
        self._target = target
        self._shared_bytes = shared_bytes
        self._cap = memory_cap or watchdog.default_cap()
        self._spare: dict[Kind, queue.Queue[Worker | Exception]] = {kind: queue.Queue() for kind in kinds}
        self._lock = threading.Lock()
        self._coming: Counter[Kind] = Counter()  # ordered, but not there yet
        self._all: set[Worker] = set()
        self._closed = False
        self._nursery, self._own_nursery = nursery or Nursery(tier), nursery is None
        self._cold: queue.Queue[Worker | None] = queue.Queue()
        self._served: queue.Queue[Worker | None] = queue.Queue()
        self._buried = threading.Event()
        self._may_warm = threading.Event()
        self._may_warm.set()
        for _ in range(depth):
            threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()
        threading.Thread(target=self._bury, name="bury", daemon=True).start()
        for kind in kinds:
            for _ in range(depth if kind in ON_DEVICE else 1):
                self._order(kind)

    def take(self, kind: Kind) -> Worker:
        """A warm worker of that kind; waits for it if it is still importing.

        Raises:
            WorkerLost: it can't be started here.
        """
        spare = self._spare.setdefault(kind, queue.Queue())
        for attempt in range(2):
            with self._lock:
                missing = spare.empty() and not self._coming[kind]
            if missing:
                self._order(kind)
            found = spare.get()
            if kind != "baseline":
                self._order(kind)
            if isinstance(found, Exception):
                raise WorkerLost("start", f"no worker can be started: {found}")
            try:
                found.wait_ready()
                return found
            except WorkerLost as lost:
                log = found.log.strip().splitlines()
                self.discard(found)
                if attempt or lost.kind == "cancelled":
                    raise WorkerLost(lost.kind, f"no worker starts here: {log[-1] if log else lost.detail}") from None
        raise AssertionError("unreachable")

    def rest(self, rest: bool) -> None:
        """Whether spares may begin to warm up on the card. While one candidate is checked and timed they had better not."""
        if rest:
            self._may_warm.set()
        else:
            self._may_warm.clear()

    def discard(self, worker: Worker) -> None:
        """Kills a worker that has served. Nobody waits for its end, which takes a tenth of a second where it had a context."""
        worker.kill()
        self._served.put(worker)

    def cancel(self) -> None:
        """From any thread: kills the workers that are being used now."""
        with self._lock:
            spare = {item for kind in self._spare.values() for item in kind.queue if isinstance(item, Worker)}
            used = self._all - spare
        for worker in used:
            worker.cancel()

    @property
    def alive(self) -> int:
        """How many workers run, spare ones included."""
        with self._lock:
            return sum(worker.alive for worker in self._all)

    def close(self) -> None:
        """Kills everything."""
        self._closed = True
        self._may_warm.set()
        for _ in range(self._depth):
            self._cold.put(None)
        self._served.put(None)
        self._buried.wait(10.0)
        with self._lock:
            workers = list(self._all)
            self._all.clear()
        for worker in workers:
            worker.cancel()
        if self._own_nursery:
            self._nursery.close()
        for worker in workers:
            worker.close()
        homes.remove(self.home)

    def _order(self, kind: Kind) -> None:
        with self._lock:
            self._coming[kind] += 1
        self._nursery.submit(lambda: self._start(kind))

    def _start(self, kind: Kind) -> None:
        if self._closed:
            return
        arrived: Worker | OSError
        try:
            worker = Worker(
                kind, self.tier, target=self._target, shared_bytes=self._shared_bytes, memory_cap=self._cap, home=self.home,
                zygote=self._nursery.zygote(kind, self._target), pin=self._pin if kind in ON_DEVICE else 0,
            )  # fmt: skip
            worker.start()
            arrived = worker
        except OSError as error:
            arrived = error
        with self._lock:
            if isinstance(arrived, Worker):
                self._all.add(arrived)
                if kind != "baseline":
                    self._cold.put(arrived)
            self._spare[kind].put(arrived)
            self._coming[kind] -= 1
        if self._closed and isinstance(arrived, Worker):
            arrived.close()

    def _warm_up(self) -> None:
        """Greets each spare, which has it warm up, one after the other."""
        while (worker := self._cold.get()) is not None:
            with contextlib.suppress(WorkerLost, OSError, AssertionError):  # whoever takes it finds out
                worker.wait_awake()
                if worker.kind in ON_DEVICE:
                    self._may_warm.wait(_MOST_REST)
                    with self._busy():
                        worker.wait_ready()

    def _bury(self) -> None:
        while (worker := self._served.get()) is not None:
            worker.close()
            with self._lock:
                self._all.discard(worker)
        self._buried.set()
