"""What the loop works with: the search, the fleet, the recorder, the person's wishes, and the state of it all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from workbench.brief import Brief, Budget, Proposal
from workbench.candidate import Candidate, Diagnosis, Evaluation, Mode, Verdict
from workbench.events import Acted, Asked, Ended, Event, Noted, Prepared, Proposed, RunState, Spent, Stamped, StateChanged
from workbench.evolution.calls import Calls
from workbench.evolution.control import Control, Stopwatch
from workbench.evolution.lessons import AnyExperience, Lessons, Unkept
from workbench.evolution.proposing import AnyProposer, Writers
from workbench.evolution.recorder import Recorder
from workbench.evolution.stream import Stream
from workbench.search import Search
from workbench.store import KeptCall
from workbench.task import Task

LOST = 5
"""So many candidates in a row that could not be judged end the run: something is wrong with the judge, not with them."""

Diagnose = Callable[[Evaluation, Task, float], Diagnosis]


class AnyFleet(Protocol):
    """What a run needs of whoever judges; `fleet.Local` has it."""

    async def prepare(self, probe: Mapping[str, Any] | None) -> Prepared: ...
    async def evaluate(
        self, candidate: Candidate, parameters: Mapping[str, Any], *, id: str, mode: Mode = "quick"
    ) -> Evaluation: ...  # fmt: skip
    def cancel(self) -> None: ...
    async def close(self) -> None: ...


@runtime_checkable
class Closable(Protocol):
    """An experience that holds a database open."""

    def close(self) -> None: ...


@dataclass
class Run:
    """One run in its own thread. Nothing in here is touched by any other thread.

    Attributes:
        lanes: how many attempts may be in flight.
        earlier: the events before.
        probe: makes the live op's answer that the judge compares its rebuilt reference with.
        experience: cards for briefs, and where what this run teaches is kept.
        stream: what models write while they write it.
        on_settled: called with True when nothing goes on until the person acts, with False when something does again.
        on_end: called when no more commands are heard, before the last event.
        over: whether the run had ended before it was taken up again.
        lost, last_loss: candidates in a row that could not be judged, and why the last could not.
    """

    task: Task
    search: Search
    fleet: AnyFleet
    proposers: Sequence[AnyProposer]
    recorder: Recorder
    control: Control
    diagnose: Diagnose
    experience: AnyExperience = field(default_factory=Unkept)
    stream: Stream = field(default_factory=Stream)
    lanes: int = 1
    earlier: Sequence[Stamped] = ()
    probe: Callable[[], Mapping[str, Any]] | None = None
    on_settled: Callable[[bool], None] = lambda settled: None
    on_end: Callable[[], None] = lambda: None
    over: bool = False
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    lost: int = 0
    last_loss: str = ""
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calls = Calls(self.recorder, self.search, self.stream, self._keep_call, lambda line: self.record(Noted(line)))
        self.calls.listen_to(self.proposers)
        self.writers = Writers(self.proposers, self.calls, self.warn)
        on = self.search.mechanisms
        self.lessons = Lessons(self.experience, self.proposers, self.record, on=on.experience, cards=on.cards)
        for bandit in (one.bandit for one in self.proposers if hasattr(one, "bandit")):
            bandit.learning = on.bandit
        self.stored = self.lessons.replay(self.earlier)

    async def prepare_judge(self) -> Prepared:
        """The live op runs in a thread of its own, so that commands are heard meanwhile."""
        probe = await asyncio.to_thread(self.probe) if self.probe is not None else None
        return await self.fleet.prepare(probe)

    def record(self, *events: Event) -> None:
        """Stores and publishes. When the store fails the run pauses and says why; what happened waits in order."""
        failed_before = bool(self.recorder.trouble)
        if events and not self.recorder.add(*events) and not failed_before:
            self._pause_for_the_store()

    def warn(self, line: str) -> None:
        self.record(Noted(line, level="warning"))

    def _keep_call(self, call: KeptCall) -> None:
        failed_before = bool(self.recorder.trouble)
        if not self.recorder.keep_call(call) and not failed_before:
            self._pause_for_the_store()

    def _pause_for_the_store(self) -> None:
        self.control.paused = True
        self.recorder.show(StateChanged("paused", self.recorder.trouble))

    def state(self, state: RunState, reason: str = "") -> None:
        """Says what the run is doing, if that has changed."""
        view = self.recorder.view
        self.stopwatch.follow(state)
        if (view.state, view.reason) != (state, reason):
            self.record(StateChanged(state, reason))

    def look(self, flying: int) -> None:
        """What the person sees now."""
        if self.control.stopping:
            self.state("stopping", self.control.stopping)
        elif self.control.paused:
            self.state("paused", self.recorder.trouble or self.writers.silent or ("" if not flying else "running ones finish"))
        elif flying:
            self.state("running", "auto" if self.control.auto else "")
        else:
            self.state("waiting", self.search.tired or "press Step, or Auto")
        self.on_settled(not flying and not self.control.stopping)

    def end(self, reason: str) -> None:
        """The last event. What could not be stored by now is named."""
        best = self.search.best
        ended = Ended(reason=reason, best=best.candidate.id if best else "")
        self.stopwatch.follow("ended")
        self.on_end()
        if not self.recorder.add(ended):
            kept = f"{reason}; {len(self.recorder.unsaved)} events could not be stored: {self.recorder.trouble}"
            self.recorder.show(replace(ended, reason=kept))

    async def close(self) -> None:
        """The judge is gone after this, and the experience is no longer held open."""
        await self.fleet.close()
        if isinstance(self.experience, Closable):
            self.experience.close()

    # ---- what may be done

    def may_ask(self, flying: int) -> bool:
        broken = self.lost >= LOST or self.recorder.trouble or self.writers.capped or self.writers.silent
        return self.control.may_ask() and flying < self.lanes and not broken and self.seconds_left() != 0.0

    def ask(self) -> Brief | None:
        """The next brief with what experience says to it, on the record; None where the search has nothing to ask now."""
        asked = self.search.ask()
        if asked is None:
            return None
        asked = self.lessons.furnish(asked)
        self.control.use()
        self.record(Asked(self.for_the_record(asked)))
        return asked

    def unfinished(self) -> tuple[Brief, ...]:
        """What was in flight when an earlier process ended, word for word as it was asked: a stored answer is found by that."""
        return tuple(
            replace(self.stored[brief.id], tried=brief.tried) if brief.id in self.stored else brief for brief in self.search.open_briefs
        )

    async def propose(self, brief: Brief) -> Proposal:
        """An answer from whoever writes candidates. Answers to earlier briefs may have come since this one was asked: it is told."""
        return await self.writers.propose(replace(brief, tried=tuple(self.search.tried)))

    def receive(self, proposal: Proposal) -> Proposal:
        """A proposer's answer as it stands in this run."""
        received = self.search.receive(proposal)
        self.calls.settled(proposal.brief)
        return received

    def nothing(self, brief: Brief, proposal: Proposal) -> None:
        """A brief that brought no candidate: what the search concludes, and what it cost, on the record."""
        self.control.grant()  # a step is a candidate judged, and this one was not
        learnt = self.search.tell(proposal)
        paid = proposal.usage.tokens_in + proposal.usage.tokens_out
        self.record(Proposed(proposal), *learnt, *((Spent(self.search.spent),) if paid else ()))
        self.lessons.told(brief, proposal)

    def nobody_writes(self) -> str:
        """Why a model that can't be asked ends the run. A run that is stepped is paused instead, and may go on when that is mended."""
        if self.writers.silent and not self.control.auto and not self.writers.capped:
            self.control.paused = True
            return ""
        return self.writers.capped or self.writers.silent

    def waits_for_the_person(self) -> bool:
        """Proposers that have nothing end a run that runs by itself; one that is stepped, or never began, waits for a variant."""
        return not self.control.auto or not self.search.spent.evaluations

    def seconds_left(self) -> float | None:
        """Until the time is up; None where there is no cap."""
        cap = self.search.budget.seconds
        if cap is None:
            return None
        return max(cap - (self.search.spent.seconds or 0.0) - self.stopwatch.pending, 0.0)

    def next_look(self) -> float | None:
        """When the loop has to look again by itself, in seconds from now."""
        return self.seconds_left() if self.stopwatch.runs else None

    def out_of_time(self) -> bool:
        if self.seconds_left() != 0.0:
            return False
        self.search.charge(Budget(seconds=self.stopwatch.take()))
        return True

    def count_losses(self, evaluation: Evaluation) -> None:
        self.lost = self.lost + 1 if evaluation.verdict is Verdict.NOT_JUDGED else 0
        self.last_loss = evaluation.reason

    def next_evaluation(self, candidate: str) -> str:
        """``<candidate>.<n>``, never the same twice, also after a restart."""
        number = max(self._numbers.get(candidate, -1), self.recorder.view.last_number(candidate)) + 1
        self._numbers[candidate] = number
        return f"{candidate}.{number}"

    @staticmethod
    def for_the_record(brief: Brief) -> Brief:
        """A brief as it is stored: the sources tried so far are those of all earlier candidates, and need no list."""
        return replace(brief, tried=())

    # ---- what the person does, called in the run's thread

    def act(self, verb: str, argument: str = "") -> None:
        """Takes a word of the person, and lets the loop look again.

        Raises:
            NoSuchCandidateError: the verb names a candidate that the run has not judged.
        """
        made: tuple[Event, ...] = ()
        if verb in ("step", "auto", "resume"):
            self._go_on(verb, argument)
            return
        if verb == "pause":
            self.control.paused = True
        elif verb == "stop":
            self.control.stop("stopped by the person")
        elif verb == "cancel":
            self.control.stop("cancelled by the person", cancel=True)
        elif verb == "hint":
            self.search.hint(argument)
        elif verb == "ban":
            made = self.search.ban(argument)
        elif verb == "pin":
            made = self.search.pin(argument)
        elif verb == "branch":
            self.search.branch(argument)
            self.control.grant()
        else:
            raise ValueError(f"unknown verb {verb!r}")
        self.record(Acted(verb, argument), *made)
        self.control.changed.set()

    def _go_on(self, verb: str, argument: str) -> None:
        self.recorder.flush()  # the disk may have room again
        if verb == "step":
            self.control.step(int(argument or 1))
        elif verb == "auto":
            self.control.run_on()
        else:
            self.control.paused = False
        self.record(Acted(verb, argument))
        if self.search.tired or self.over or self.writers.stopped or self.writers.capped:
            self.over = False
            self.writers.go_on()
            self.search.reopen()
            self.record(Acted("reopen"))
        if self.recorder.trouble:
            self.control.paused = True
            self.recorder.show(StateChanged("paused", self.recorder.trouble))
        self.control.changed.set()
