"""The object that people hold: a run in a thread of its own; commands go in, events come out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from workbench.brief import Brief, Parent
from workbench.build.cuda_source import backend_of
from workbench.candidate import Backend, Candidate, Evaluation
from workbench.errors import MisuseError, NoSuchCandidateError, WorkbenchError
from workbench.events import Asked, Ended, Event, Prepared, RunStarted, Stamped, Submitted
from workbench.evolution.entry import columns
from workbench.evolution.inspecting import Inspecting
from workbench.evolution.loop import evolve
from workbench.evolution.proposing import AnyProposer
from workbench.evolution.recorder import AnyStore, Recorder, Subscriber
from workbench.evolution.run import Run
from workbench.evolution.stream import Stream
from workbench.evolution.summary import summarise
from workbench.evolution.view import Detail
from workbench.explain.inspection import What
from workbench.store import KeptCall
from workbench.task import Task

Build = Callable[["Evolution"], Run]
INTERRUPTED = "the process that ran it is gone: resume() goes on where the store ends"
log = logging.getLogger(__name__)

_AT_ONCE = 500
"""Candidates whose rows are read while nothing else can happen in the run."""


class Evolution:
    """One search for a faster kernel, as it runs or as it is stored.

    Every method may be called from any thread, and none blocks but `wait`, `result` and `inspect`. Commands return the object itself, so
    that they can be chained::

        run = workbench.evolve(softmax, x)
        run.step(3).wait()
        run.hint("try one pass").auto().wait()
        run.best

    *Pause* makes no new candidates: running ones finish, and the run can resume. *Stop* finishes the running ones and ends. *Cancel*
    kills them and ends. *Resume* goes on, also with a run that was stored by an earlier process.

    Attributes:
        id: of the run, what `workbench.open` takes.
        task: what is being made fast.
        proposers: who writes candidates.
        stream: what models write while they write it: ``stream.listen(callback)`` and ``stream.open()``. It is not stored.
    """

    def __init__(
        self, recorder: Recorder, build: Build, proposers: Sequence[AnyProposer] = (), interrupted: bool = False
    ) -> None:  # fmt: skip
        """Use `start` and `open_run`. `interrupted`: the process that ran it is gone, and it has not been gone on with."""
        started = recorder.view.started
        assert started is not None
        self.id = recorder.run
        self.task: Task = started.task
        self.cell = started.cell
        self.cell_source = started.cell_source
        self._interrupted = interrupted
        self.proposers = tuple(proposers)
        self.stream = Stream()
        self._recorder = recorder
        self._build = build
        self._run: Run | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        self._pending: set[Future[Any]] = set()
        self._settled = True
        self._hears = False
        self._watchers: list[Callable[[], Any]] = []
        self._inspecting = Inspecting(self.task, device=started.device, place=str(recorder.store.place))

    # ---- commands

    def step(self, n: int = 1) -> Evolution:
        """Judges `n` more candidates, then waits."""
        if n < 1:
            raise MisuseError(f"step: {n} steps make no sense, give a number from 1 on")
        return self._go_on("step", str(n))

    def auto(self) -> Evolution:
        """Runs on until the search ends, or the person says otherwise."""
        return self._go_on("auto")

    def resume(self) -> Evolution:
        """Goes on after a pause, after an end, or where an earlier process left off."""
        return self._go_on("resume")

    def pause(self) -> Evolution:
        """No new candidates; running ones finish; the run can resume."""
        return self._say("pause")

    def stop(self) -> Evolution:
        """Finishes the running ones and ends."""
        return self._say("stop")

    def cancel(self) -> Evolution:
        """Kills the running ones and ends."""
        return self._say("cancel")

    def hint(self, text: str, island: str = "") -> Evolution:
        """Tells every later proposal something to try; only those on one island, if it is named."""
        words = _words("hint", text)
        known = [one["name"] for one in self.header()["islands"]]
        if island and island not in known:
            raise MisuseError(f"hint: there is no island {island!r}; there is {', '.join(known) or 'none yet'}")
        return self._must("hint", f"on {island}: {words}" if island else words)

    def ban(self, text: str) -> Evolution:
        """Forbids something in every later proposal."""
        return self._must("ban", _words("ban", text))

    def pin(self, candidate: str = "") -> Evolution:
        """From now on every step starts from this candidate; without an id the pin is lifted."""
        if candidate:
            self._check_judged(candidate)
        return self._must("pin", candidate)

    def branch(self, candidate: str) -> Evolution:
        """One step from this candidate, next."""
        self._check_judged(candidate)
        return self._must("branch", candidate)

    def submit(self, source: str, backend: Backend | None = None, *, parent: str = "", plan: str = "") -> str:
        """Hands in a variant of your own, which is judged next; returns its id.

        Args:
            backend: what it is written in; seen from its text by default.

        Raises:
            MisuseError: the run is over, or has judged this very source before.
        """
        if parent:
            self._check_judged(parent)

        def put(run: Run) -> str:
            candidate = run.search.submit(source, backend or backend_of(source), parent=parent, plan=plan)
            run.control.grant()
            run.record(Submitted(candidate))
            run.control.changed.set()
            return candidate.id

        name: str = self._call(put).result(timeout=30)
        return name

    def answer(self, source: str, *, brief: str = "", plan: str = "") -> Evolution:
        """Answers a brief that waits for the person: the oldest, if none is named.

        Raises:
            MisuseError: none is waiting.
        """
        person: Any = next((one for one in self.proposers if one.name == "person"), None)
        if person is None:
            raise MisuseError("answer: no brief goes to the person in this run: start it with proposers=('experts', 'person')")
        person.answer(source, brief=brief, plan=plan)
        return self

    def record(self, event: Event) -> None:
        """Adds an event to the run, running or not: that a candidate was accepted, for instance."""
        if self.alive:
            self._call(lambda run: run.record(event)).result(timeout=30)
        else:
            self._recorder.note(event)

    # ---- waiting

    def wait(self, timeout: float | None = None) -> Evolution:
        """Blocks until nothing more happens by itself: the run waits for the person, is paused, or has ended.

        An interrupt (the stop button of the notebook) pauses the run and returns.
        """
        if threading.current_thread() is self._thread:
            raise MisuseError("wait: a subscriber can't wait for the run that calls it")
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._idle, timeout)
        except KeyboardInterrupt:
            self.pause()
        return self

    def result(self, timeout: float | None = None) -> Parent | None:
        """Waits, then gives the best candidate with its evaluation; None where none is right."""
        self.wait(timeout)
        return self.best

    async def finished(self) -> Evolution:
        """`wait` for coroutines."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        with self._changed:
            if self._idle:
                return self
            self._watchers.append(lambda: loop.call_soon_threadsafe(done.set))
        await done.wait()
        return self

    def close(self) -> None:
        """Ends the run if it still goes, and waits for its judge to be gone."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            self.cancel()
            thread.join(timeout=30)
        self._inspecting.close()

    # ---- reading

    @property
    def alive(self) -> bool:
        """Whether commands are heard: from the start to the end, not of a run that is only looked at."""
        return self._hears

    @property
    def state(self) -> str:
        """preparing, waiting, running, paused, stopping, ended; or interrupted, where the process that ran it is gone."""
        return "interrupted" if self._interrupted else self._recorder.view.state

    @property
    def reason(self) -> str:
        """Why it is in that state, for people."""
        return INTERRUPTED if self._interrupted else self._recorder.view.reason

    @property
    def store(self) -> AnyStore:
        return self._recorder.store

    @property
    def best(self) -> Parent | None:
        """The fastest right candidate with the evaluation that made it so; None where none is right."""
        with self._recorder.lock:
            best = self._recorder.view.best
            if best is None:
                return None
            detail = self._recorder.view.candidate(best.candidate)
        found = next(one for one in detail.evaluations if one.id == best.evaluation)
        return Parent(candidate=detail.candidate, evaluation=found, diagnosis=detail.diagnoses.get(found.id))

    def rows(self, after: int = 0) -> list[dict[str, Any]]:
        """One dict a candidate, for a table; only those that changed since event number `after`."""
        with self._recorder.lock:
            return self._recorder.view.rows(after)

    def columns(self, names: Iterable[str]) -> dict[str, list[Any]]:
        """The rows of all candidates by field, of the fields `entry.OFTEN`: quicker than `rows` where there are thousands.

        The run is not held up for longer than a part of them takes: rows that change meanwhile may be old or new.
        """
        cells: list[tuple[Any, ...]] = []
        while True:
            with self._recorder.lock:
                part = self._recorder.view.cells(len(cells), _AT_ONCE)
            if not part:
                break
            cells += part
        return columns(cells, names)

    def header(self) -> dict[str, Any]:
        """What stands above the table: the op, baselines, floor, best, budget, state. `seq` is the last event that it knows of."""
        with self._recorder.lock:
            return self._recorder.view.header() | {"state": self.state, "reason": self.reason}

    def candidate(self, name: str) -> Detail:
        """Everything about one candidate.

        Raises:
            NoSuchCandidateError: the run has none of that id.
        """
        with self._recorder.lock:
            detail = self._recorder.view.candidate(name)
        return replace(detail, brief=self._brief(detail.candidate.brief))

    def told(self) -> tuple[RunStarted | None, Prepared | None, tuple[Evaluation, ...]]:
        """How the run began, what the judge said when it was ready, and every evaluation in the order in which it spoke."""
        with self._recorder.lock:
            view = self._recorder.view
            return view.started, view.prepared, tuple(view.judged)

    def names(self) -> tuple[str, ...]:
        """Ids of all candidates."""
        with self._recorder.lock:
            return self._recorder.view.names()

    def events(self, after: int = 0) -> tuple[Stamped, ...]:
        """The stored events from number `after` + 1 on."""
        return self._recorder.store.events(self.id, after)

    def calls(self, brief: str = "") -> tuple[KeptCall, ...]:
        """The stored calls to language models in order, with prompt, reply, tokens, price and latency; only those for a brief if named."""
        return self._recorder.store.calls(self.id, brief)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Calls `callback` with each event from now on, in the run's thread; returns what ends that. It must return quickly."""
        return self._recorder.subscribe(callback)

    def summary(self) -> dict[str, Any]:
        """The run as plain data: the best candidate, every candidate in short, what was spent, and why it ended."""
        return summarise(self.header(), self.rows(), self.best, self.calls())

    def inspect(self, evaluation: str, what: What, *, cancel: threading.Event | None = None, **options: Any) -> dict[str, Any]:
        """Looks into a variant: ``compiler``, ``memory`` or ``trace``, as `explain.inspection` describes. It blocks, for seconds.

        Args:
            evaluation: its id, such as ``k3.1``, or a candidate's id for the evaluation that stands for it.
            what: which of the three.
            cancel: once set, the answer is the error "cancelled".
            options: of that inspection.

        Returns:
            A record of `explain.inspection` as JSON data, or ``{"error": line}`` with the mend. Found once, it is kept in the store's
            folder.
        """
        if threading.current_thread() is self._thread:
            raise MisuseError("inspect: a subscriber can't wait for it: ask in a thread of your own")
        try:
            candidate, parameters = self._variant(evaluation)
        except NoSuchCandidateError as error:
            return {"error": str(error)}
        return self._inspecting.inspect(candidate, parameters, what, options, cancel)

    def cached_inspection(self, evaluation: str, what: What, **options: Any) -> dict[str, Any] | None:
        """What `inspect` has found before, at once; None where it has not been asked.

        Raises:
            NoSuchCandidateError: the run has no such variant.
        """
        candidate, parameters = self._variant(evaluation)
        return self._inspecting.cached(candidate, parameters, what, options)

    def _variant(self, evaluation: str) -> tuple[Candidate, Mapping[str, Any]]:
        with self._recorder.lock:
            detail = self._recorder.view.candidate(evaluation.rsplit(".", 1)[0])
        named = next((one for one in detail.evaluations if one.id == evaluation), None)
        if named is None and "." in evaluation:
            raise NoSuchCandidateError(f"run {self.id} has no evaluation {evaluation!r} of {detail.candidate.id}")
        shown = named or detail.evaluation
        return detail.candidate, dict(shown.parameters) if shown is not None else {}

    def __repr__(self) -> str:
        best = self.best
        time = best.evaluation.time_us if best else None
        found = "nothing right yet" if best is None or time is None else f"best {best.candidate.id} {time:.2f} µs"
        return f"<Evolution {self.id}: {self.state}, {len(self.names())} candidates, {found}>"

    # ---- the thread

    def begin(self, verb: str = "", argument: str = "") -> Evolution:
        """Starts the thread; the first command is carried out before anything else happens."""
        loop = asyncio.new_event_loop()
        with self._changed:
            self._loop, self._hears, self._settled, self._interrupted = loop, True, False, False
        self._thread = threading.Thread(target=self._main, args=(loop, verb, argument), name=f"run {self.id}", daemon=True)
        self._thread.start()
        return self

    def _main(self, loop: asyncio.AbstractEventLoop, verb: str, argument: str) -> None:
        asyncio.set_event_loop(loop)
        try:
            run = self._run = self._build(self)
            if verb:
                run.act(verb, argument)
            loop.run_until_complete(evolve(run))
        except WorkbenchError as error:
            self._recorder.show(Ended(reason=str(error)))
        except Exception as error:
            log.exception("run %s failed", self.id)
            self._recorder.show(Ended(reason=f"the run failed: {type(error).__name__}: {error}"))
        finally:
            with self._changed:
                unheard, self._pending = self._pending, set()
                self._loop, self._hears, self._settled = None, False, True
                self._notify()
            for done in unheard:  # said while the run was ending
                done.set_exception(self._not_running())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    def settle(self, settled: bool) -> None:
        """The loop says whether anything goes on by itself."""
        with self._changed:
            self._settled = settled
            self._notify()

    def hear_no_more(self) -> None:
        """The run is about to end: what is said from now on would be lost."""
        with self._changed:
            self._hears = False

    def _notify(self) -> None:
        self._changed.notify_all()
        watchers, self._watchers = (self._watchers, []) if self._idle else ([], self._watchers)
        for watcher in watchers:
            with contextlib.suppress(RuntimeError):  # the watcher's loop was closed meanwhile
                watcher()

    @property
    def _idle(self) -> bool:
        return self._settled and not self._pending

    def _call(self, action: Callable[[Run], Any]) -> Future[Any]:
        """Carries out `action` in the run's thread. Nothing else ever touches the run from outside."""
        done: Future[Any] = Future()

        def carry_out() -> None:
            run = self._run
            with self._changed:
                self._pending.discard(done)
                self._settled = False
            try:
                assert run is not None
                done.set_result(action(run))
            except Exception as error:
                done.set_exception(error)
            if run is not None:
                run.control.changed.set()  # the loop looks again, and says whether it is settled

        with self._changed:
            if self._loop is None or not self._hears:
                raise self._not_running()
            self._pending.add(done)
            self._loop.call_soon_threadsafe(carry_out)
        return done

    def _not_running(self) -> MisuseError:
        return MisuseError(f"run {self.id} is not running ({self.reason or self.state}): call resume() to go on with it")

    def _go_on(self, verb: str, argument: str = "") -> Evolution:
        with contextlib.suppress(MisuseError):
            return self._must(verb, argument)
        if self._thread is not None:  # it may be on its last steps
            self._thread.join()
        return self.begin(verb, argument)

    def _say(self, verb: str, argument: str = "") -> Evolution:
        with contextlib.suppress(MisuseError):  # what has ended needs no pause, stop or cancel
            self._must(verb, argument)
        return self

    def _must(self, verb: str, argument: str) -> Evolution:
        self._call(lambda run: run.act(verb, argument))
        return self

    def _check_judged(self, name: str) -> None:
        with self._recorder.lock:
            judged = self._recorder.view.candidate(name).evaluation is not None
        if not judged:
            raise NoSuchCandidateError(f"run {self.id}: {name} is still being judged")

    def _brief(self, name: str) -> Brief | None:
        at = self._recorder.view.asked_at.get(name)
        if at is None:
            return None
        found: Sequence[Stamped] = self._recorder.store.events(self.id, at - 1, limit=1)
        event = found[0].event if found else None
        return event.brief if isinstance(event, Asked) else None


def _words(verb: str, text: str) -> str:
    if not text.strip():
        raise MisuseError(f"{verb}: say what, for instance run.{verb}('atomics')")
    return text.strip()
