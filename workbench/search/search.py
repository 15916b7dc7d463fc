"""The search: what to try next, as ask and tell.

It decides and remembers, and does nothing else: no files, no clock, no threads. Whoever drives it asks for a brief, has it answered
and judged, and tells what came of it::

    search = Search(task, experts=("row_reduction",), budget=Budget(evaluations=60))
    while not search.finished:
        brief = search.ask()
        proposal = search.receive(search.given(brief) or propose(brief))
        evaluation = judge(proposal.candidate, brief.parameters)
        search.tell(proposal, evaluation)
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.brief import Brief, Budget, Parent, Proposal, Role
from workbench.candidate import Backend, Candidate, Diagnosis, Evaluation
from workbench.errors import MisuseError, OrderError
from workbench.events import Event, Noted
from workbench.explain.strategy import describe as describe_strategy
from workbench.records import digest
from workbench.search import bans
from workbench.search.asked import Asked, AskQueue
from workbench.search.briefs import directive_of, hints_for, role_of, turn_seed
from workbench.search.ideas import Choice, Idea, island_idea, take
from workbench.search.ledger import Ledger
from workbench.search.mechanisms import DEFAULT, Mechanisms
from workbench.search.members import Member
from workbench.search.plateau import PATIENCE, Plateau, Stage
from workbench.search.population import Describe, Population
from workbench.search.roles import ROLES
from workbench.task import Task

REPAIRS = 3
CLOSE_TO_FLOOR = 0.95
NOBODY = "nobody here writes candidates for this op: submit a variant, or start again with a model"


class Search:
    """Ask and tell over role islands.

    Several asks may be in flight. Tells are applied in ask order: one that comes early is held until its turn, so that the same
    answers give the same search however long each took. Equal arguments and equal calls give equal briefs, byte for byte.

    Attributes:
        islands: the populations, in the order of turns.
        tried: digests of all sources proposed so far, and who had each.
        floor_us: the roofline floor; the run stops within 5 % of it. None, or 0, where there is none.
    """

    def __init__(
        self, task: Task, *, experts: Sequence[str] = (), budget: Budget | None = None, seed: int = 0,
        elites: Sequence[Candidate] = (), floor_us: float | None = None, roles: Sequence[Role] = ROLES,
        repairs: int = REPAIRS, patience: int = PATIENCE, proposing: bool = True,
        seeding: bool = True, describe: Describe = describe_strategy, mechanisms: Mechanisms = DEFAULT,
    ) -> None:  # fmt: skip
        """A search that has asked nothing yet.

        Args:
            experts: names of the expert kernels that fit the op, best first; seeds are spread over the islands.
            elites: of an earlier run; they are judged again before anything else.
            repairs: links of a repair chain.
            patience: evaluations without a gain before each change of course.
            proposing: whether there is anybody to write candidates. If not, only what the person hands in is judged and tuned.
            seeding: whether the experts write seeds; if not, briefs only name them.
            describe: strategy descriptors of a candidate.
            mechanisms: what is on.
        """
        self.task = task
        self.experts = tuple(experts)
        self.seed = seed
        self.floor_us = floor_us
        self.mechanisms = mechanisms.resolved(budget)
        self._population = Population(roles, repairs, describe, self.mechanisms)
        self.islands = self._population.islands
        self._ledger = Ledger(budget or Budget())
        self._plateau = Plateau(patience)
        self._proposing = proposing
        self._asked = AskQueue()
        self._wishes: deque[Idea] = deque()
        self._offered: set[str] = set()
        self._seeding = seeding
        self.tried: dict[str, str] = {}
        self._hints: list[str] = []
        self._bans: list[str] = []
        self._pinned: Member | None = None
        self._candidates = 0
        self._end = self._tired = self._last_miss = ""
        if seeding and self.mechanisms.seeds:
            self._population.spread(self.experts)
        self._wishes.extend(self._population.earlier(elites))

    # ---- ask and tell

    def ask(self, again: Brief | None = None) -> Brief | None:
        """The next brief; None when nothing may or can be asked now.

        Then either answers are in flight, and telling one may change that, or the search is `finished`. A replay gives the brief that was
        asked then, `again`: its tunable point is taken in place of a new one, which another release of the tuner might draw otherwise.
        """
        if self.finished or self._ledger.refusal():
            return None
        number = len(self._asked) + 1
        rng = random.Random(f"{self.seed}:{number}")
        idea = self._next_idea(rng, again.parameters if again is not None and again.kind == "tune" else None)
        if idea is None:
            if self._asked.empty:
                nothing = f"nothing new: {self._last_miss or 'no proposer has an answer'}"
                self._tired = nothing if self._proposing else NOBODY
            return None
        take(idea)
        brief = self._write_brief(idea, number)
        self._asked.add(Asked(brief, idea))
        self._ledger.open += 1
        self._ledger.unanswered += idea.given is None
        return brief

    def given(self, brief: Brief) -> Proposal | None:
        """The answer to a brief that needs no proposer: a tunable point, a person's variant, an elite of an earlier run."""
        return self._asked.find("given", brief.id).given()

    def receive(self, proposal: Proposal) -> Proposal:
        """Takes a proposer's answer before it is judged, and returns it as it stands in this run.

        Its candidate gets the id, island, parents and (for a repair) the plan that the brief implies. A source that was proposed
        before, or that uses what the person banned, is turned down: the candidate is None then, and the reason says whose it is, or what
        is banned. Nothing is judged twice.

        Raises:
            OrderError: the brief was never asked, or was answered before.
        """
        asked = self._asked.find("receive", proposal.brief)
        if asked.received is not None:
            raise OrderError(f"receive: brief {proposal.brief} was answered before")
        if asked.idea.kind != "tune":
            proposal = self._own(asked, proposal)
        self._ledger.add_usage(proposal.usage)
        self._ledger.unanswered -= asked.idea.given is None
        if proposal.candidate is None:
            self._ledger.open -= 1
        asked.received = proposal
        return proposal

    def tell(
        self, proposal: Proposal, evaluation: Evaluation | None = None, diagnosis: Diagnosis | None = None
    ) -> tuple[Event, ...]:  # fmt: skip
        """What came of a brief: the evaluation of its candidate, or none where there was no candidate.

        Returns:
            What the search concludes, in order: a new best, a migration, a change of course. Empty while the tell is held
            because an earlier ask is still unanswered; its conclusions come with the tell that frees it.

        Raises:
            OrderError: the brief was never asked or was told before, or candidate and evaluation don't belong together.
        """
        asked = self._asked.find("tell", proposal.brief)
        if asked.told is not None:
            raise OrderError(f"tell: brief {proposal.brief} was told before")
        if asked.received is None:
            self.receive(proposal)
        received = asked.expects(evaluation)
        asked.told = (received, evaluation, diagnosis)
        return tuple(event for ready in self._asked.ready() for event in self._apply(ready))

    def charge(self, spent: Budget) -> None:
        """Adds what the driver measured (seconds, above all) to what the run has spent. Tokens, money and evaluations are
        taken from proposals and evaluations, and need no call.
        """
        self._ledger.charge(spent)

    @property
    def finished(self) -> str | None:
        """Why nothing more will be asked, in words; None while something may be.

        A cap that only asks in flight use up does not finish the run before they are told.
        """
        if self._end or self._tired:
            return self._end or self._tired
        if self._asked.empty or self._ledger.overtime:
            return self._ledger.refusal() or None
        return None

    @property
    def tired(self) -> str:
        """Why the proposers have nothing to ask for, where that is what finished the run. A word of the person may wake them."""
        return "" if self._end else self._tired

    @property
    def wishes(self) -> int:
        """What the person asked for by name (submit, branch) or an earlier run left, and is still to be asked."""
        return len(self._wishes)

    @property
    def open_briefs(self) -> tuple[Brief, ...]:
        """Briefs that are asked and not yet told, in ask order."""
        return self._asked.open()

    def received(self, brief: str) -> Proposal | None:
        """The proposal that has come for the brief of that id, if one has."""
        return self._asked.find("received", brief).received

    # ---- what it knows

    @property
    def budget(self) -> Budget:
        return self._ledger.budget

    @property
    def spent(self) -> Budget:
        """Every figure filled in; `tune` counts tunable points."""
        return self._ledger.spent

    @property
    def best(self) -> Parent | None:
        """The fastest right candidate with its best evaluation."""
        return self._population.best.as_parent() if self._population.best else None

    def elites(self) -> tuple[Parent, ...]:
        """The elites of all islands, the fastest first; each once."""
        return tuple(member.as_parent() for member in self._population.elites())

    # ---- the person

    def hint(self, text: str) -> None:
        """Every later brief carries the hint."""
        self._hints.append(text)
        self._wake()

    def ban(self, text: str) -> tuple[Event, ...]:
        """Every later brief forbids it, and a later candidate that plainly uses it is turned down; says whether that can be told."""
        self._bans.append(text)
        self._wake()
        return (Noted(bans.note(text)),) if self.mechanisms.bans else ()

    def pin(self, candidate: str = "") -> tuple[Event, ...]:
        """From now on every island steps from this candidate; an empty id lifts the pin.

        The candidate comes to every island, so that children stay on their parent's.
        """
        if not candidate:
            self._pinned = None
            return ()
        self._pinned = self._population.member(candidate)
        self._wake()
        return tuple(self._population.migrate(self._pinned, island) for island in self.islands if candidate not in island.members)

    def branch(self, candidate: str) -> None:
        """The next ask is one step from this candidate, on its own island."""
        member = self._population.member(candidate)
        self._wishes.append(Idea("step", self._population.home(member.candidate) or self.islands[0], parents=(member,), counts=False))
        self._wake()

    def submit(self, source: str, backend: Backend = "triton", parent: str = "", plan: str = "") -> Candidate:
        """A variant of the person's own, judged next. Returns it with the id that it will bear.

        Raises:
            MisuseError: the same source is in the run already.
            NoSuchCandidateError: there is no candidate of the id `parent`.
        """
        twin = self.tried.get(digest(source))
        if twin:
            raise MisuseError(f"this is the source of {twin}: change something, or look at {twin}")
        parents = (self._population.member(parent),) if parent else ()
        nearest = parents[0] if parents else self._population.best
        island = (self._population.home(nearest.candidate) if nearest else None) or self.islands[0]
        candidate = Candidate(
            id=self._next_candidate(), backend=backend, source=source, entry=self.task.candidate_entry,
            parents=tuple(member.id for member in parents), island=island.name, proposer="person", plan=plan,
        )  # fmt: skip
        self.tried[digest(source)] = candidate.id
        # Before everything else, but after what the person handed in earlier.
        earlier = sum(1 for wish in self._wishes if wish.kind == "person")
        self._wishes.insert(earlier, Idea("person", island, parents=parents, given=candidate, counts=False))
        self._wake()
        return candidate

    def offer(self, source: str, proposer: str, plan: str, backend: Backend = "triton") -> None:
        """A seed that nobody here writes, such as Inductor's own kernels: judged before the experts'. One a proposer, each source once."""
        if proposer in self._offered or digest(source) in self.tried or not (self._seeding and self.mechanisms.seeds):
            return
        self._offered.add(proposer)
        seed = Candidate(id="", backend=backend, source=source, entry=self.task.candidate_entry, proposer=proposer, plan=plan)
        self._wishes.extend(self._population.earlier((seed,), plan))

    def reopen(self) -> None:
        """Goes on after a plateau, the floor, or nothing new. Caps stay caps."""
        self.floor_us = None if self._end.startswith("floor") else self.floor_us
        self._end = ""
        self._plateau.reopen()
        self._wake()

    # ---- asking

    def _next_idea(self, rng: random.Random, again: Mapping[str, Any] | None = None) -> Idea | None:
        if self._wishes:
            return self._wishes.popleft()
        choice = Choice(
            tune_cap=self.budget.tune, mechanisms=self.mechanisms, again=again, proposing=self._proposing, pinned=self._pinned,
            family=self._population.family(self._pinned),
            repair_first=self._population.odds.favour_repair or not self.mechanisms.odds,
            avoid=frozenset({self._population.best.id} if self._population.best and self._plateau.stage is Stage.OTHER_ANCESTOR else ()),
        )  # fmt: skip
        for island in sorted(self.islands, key=lambda island: (island.asked, island.index)):
            idea = island_idea(island, self.islands, rng, choice)
            if idea is not None:
                return idea
        return None

    def _write_brief(self, idea: Idea, number: int) -> Brief:
        if idea.kind == "tune":
            candidate = idea.parents[0].id
        else:
            candidate = (idea.given.id if idea.given else "") or self._next_candidate()
        role = role_of(idea.island, self.islands, self._plateau)
        return Brief(
            id=f"b{number}", kind=idea.kind, candidate=candidate, island=role, task=self.task,
            parents=self._shown(idea.parents), parameters=dict(idea.parameters),
            expert=dict(idea.expert), directive=directive_of(idea, role, self._plateau, self.mechanisms.diagnosis), experts=self.experts,
            hints=hints_for(idea.island, self.islands, self._hints), bans=tuple(self._bans), left=self._ledger.left(),
            tried=tuple(self.tried), seed=turn_seed(self.seed, number),
        )  # fmt: skip

    def _shown(self, members: Sequence[Member]) -> tuple[Parent, ...]:
        parents = tuple(member.as_parent() for member in members)
        return parents if self.mechanisms.diagnosis else tuple(replace(parent, diagnosis=None) for parent in parents)

    def _next_candidate(self) -> str:
        self._candidates += 1
        return f"k{self._candidates}"

    # ---- receiving

    def _own(self, asked: Asked, proposal: Proposal) -> Proposal:
        brief, candidate = asked.brief, proposal.candidate
        if candidate is None:
            return proposal
        twin = self.tried.setdefault(digest(candidate.source), brief.candidate)
        if twin != brief.candidate:
            return replace(proposal, candidate=None, reason=f"the same source as {twin}")
        forbidden = bans.violation(candidate.source, candidate.backend, self._bans) if self.mechanisms.bans and not asked.idea.given else ""
        if forbidden:
            return replace(proposal, candidate=None, reason=forbidden)
        return replace(proposal, candidate=asked.as_in_the_run(candidate, self.task.candidate_entry))

    # ---- telling, in ask order

    def _apply(self, asked: Asked) -> list[Event]:
        assert asked.told is not None
        idea, (proposal, evaluation, diagnosis) = asked.idea, asked.told
        idea.island.open -= 1
        if proposal.candidate is None or evaluation is None:
            self._last_miss = proposal.reason
            return self._population.missed(idea.island) if idea.counts else []
        self._ledger.open -= 1
        self._ledger.add_evaluation(evaluation, tuned=idea.kind == "tune")
        return [*self._population.judged(idea, proposal.candidate, evaluation, diagnosis), *self._course()]

    def _course(self) -> list[Event]:
        """Stop at the floor; on a plateau change course, and stop in the end."""
        name, time = self._population.best.id if self._population.best else "", self._population.best_us
        note = self._plateau.told(time, name, self.spent) if self.mechanisms.plateau else ""
        if self.mechanisms.floor and time and self.floor_us and self.floor_us / time >= CLOSE_TO_FLOOR:
            self._end = f"floor: {name} takes {time:.2f} µs, the roofline allows {self.floor_us:.2f} µs"
        elif self._plateau.verdict:
            self._end = self._plateau.verdict
        return [Noted(note)] if note else []

    def _wake(self) -> None:
        """Something new came from outside: proposers that had nothing may have something now."""
        self._tired = ""
        self._population.wake()
