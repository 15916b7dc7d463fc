"""Workers that are warm before they are needed: the import of PyTorch takes seconds, and nobody should wait for it twice.

Where a fork can be closed in as well as a fresh process, a zygote is imported once for each kind of worker, and a spare one costs a few
hundredths of a second; elsewhere each spare worker imports for itself, in the background.

One thread starts them all and lives as long as the pool, since the kernel kills a process when the thread that started it ends.
"""

from __future__ import annotations

import queue
import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from workbench.judge import watchdog
from workbench.judge.process import ON_DEVICE, Kind, Worker, WorkerLost, environment
from workbench.judge.sandbox import Tier, can_fork
from workbench.judge.spawn import Zygote


class Pool:
    """Keeps one spare worker of each kind; a taken one is replaced at once, in the background."""

    def __init__(self, tier: Tier, kinds: Sequence[Kind], *, target: str, shared_bytes: int, memory_cap: int | None = None) -> None:
        self.tier = tier
        self._target = target
        self.home = Path(tempfile.mkdtemp(prefix="workbench-judge-"))
        self.home.chmod(0o711)  # a worker with an id of its own passes through, and sees nothing
        self._shared_bytes = shared_bytes
        self._cap = memory_cap or watchdog.default_cap()
        self._spare: dict[Kind, queue.Queue[Worker | Exception]] = {kind: queue.Queue() for kind in kinds}
        self._orders: queue.Queue[Kind | None] = queue.Queue()
        self._lock = threading.Lock()
        self._all: set[Worker] = set()
        self._zygotes: dict[Kind, Zygote] = {}
        self._closed = False
        for kind in kinds:
            self._orders.put(kind)
        self._thread = threading.Thread(target=self._start_workers, name="workers", daemon=True)
        self._thread.start()

    def take(self, kind: Kind) -> Worker:
        """A warm worker of that kind; waits for it if it is still importing.

        Raises:
            WorkerLost: it can't be started here.
        """
        spare = self._spare.setdefault(kind, queue.Queue())
        for attempt in range(2):
            if spare.empty():
                self._orders.put(kind)
            found = spare.get()
            if kind != "baseline":
                self._orders.put(kind)
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

    def discard(self, worker: Worker) -> None:
        """Kills a worker that has served."""
        worker.close()
        with self._lock:
            self._all.discard(worker)

    def cancel(self) -> None:
        """From any thread: kills the workers that are being used now."""
        with self._lock:
            spare = {item for kind in self._spare.values() for item in kind.queue if isinstance(item, Worker)}
            used = self._all - spare
        for worker in used:
            worker.cancel()

    def close(self) -> None:
        """Kills everything."""
        self._closed = True
        self._orders.put(None)
        self._thread.join(timeout=10.0)
        with self._lock:
            workers = list(self._all)
            self._all.clear()
        for worker in workers:
            worker.cancel()
        for zygote in self._zygotes.values():
            zygote.close()
        for worker in workers:
            worker.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def _start_workers(self) -> None:
        while (kind := self._orders.get()) is not None and not self._closed:
            try:
                worker = Worker(
                    kind, self.tier, target=self._target, shared_bytes=self._shared_bytes, memory_cap=self._cap, home=self.home,
                    zygote=self._zygote(kind),
                )  # fmt: skip
                with self._lock:
                    self._all.add(worker)
                worker.start()
            except OSError as error:
                self._spare[kind].put(error)
                continue
            self._spare[kind].put(worker)
        # The thread that started them must outlive them: `close` kills what is left and only then ends the process.
        while not self._closed:
            self._orders.get()

    def _zygote(self, kind: Kind) -> Zygote | None:
        """What forks workers of this kind, started at the first of them, and again should it have died."""
        if kind == "baseline" or not can_fork(self.tier):
            return None
        zygote = self._zygotes.get(kind)
        if zygote is None or not zygote.alive:
            if zygote is not None:
                zygote.close()
            zygote = Zygote(self.tier, kind=kind, target=self._target, environment=environment(kind), gpu=kind in ON_DEVICE)
            self._zygotes[kind] = zygote
        return zygote
