"""What the board shows of a run, made from its events alone: so a stored run looks as it did when it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from workbench.brief import Brief
from workbench.candidate import Candidate, Diagnosis, Evaluation
from workbench.errors import NoSuchCandidateError
from workbench.events import (
    AcceptedCandidate,
    Acted,
    Asked,
    BestChanged,
    Ended,
    Evaluated,
    Migrated,
    Noted,
    Prepared,
    Proposed,
    RunStarted,
    Spent,
    Stamped,
    StateChanged,
    Submitted,
)  # fmt: skip
from workbench.evolution.entry import Entry, often, row
from workbench.records import encode

NOTES = 20
"""How many of the latest notes the header keeps."""


@dataclass(frozen=True)
class Detail:
    """Everything about one candidate.

    Attributes:
        evaluation: the one that stands for it: the fastest right one, else the first; None while it is being judged.
        diagnosis: of that evaluation. `diagnoses`: by id of the evaluation.
        children: ids of the candidates made from it.
        brief: what its proposer was asked; None where it was not asked for.
    """

    candidate: Candidate
    evaluation: Evaluation | None
    diagnosis: Diagnosis | None
    evaluations: tuple[Evaluation, ...]
    diagnoses: Mapping[str, Diagnosis]
    children: tuple[str, ...]
    brief: Brief | None = None


class View:
    """Folds events into rows, details and a header. It is not locked: one thread folds and reads, or the owner locks around it.

    Attributes:
        seq: the number of the last event that it has seen.
        state, reason: of the run.
        judged: every evaluation, in the order in which the judge spoke.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.state = "preparing"
        self.reason = ""
        self.started: RunStarted | None = None
        self.prepared: Prepared | None = None
        self.best: BestChanged | None = None
        self.ended: Ended | None = None
        self.asked_at: dict[str, int] = {}
        self.judged: list[Evaluation] = []
        self._tally: dict[str, dict[str, Any]] = {}
        self._aims: dict[str, str] = {}
        self._entries: dict[str, Entry] = {}
        self._kinds: dict[str, str] = {}
        self._spent: Spent | None = None
        self._notes: list[dict[str, str]] = []
        self._hints: list[str] = []
        self._bans: list[str] = []
        self._pinned = ""
        self._began = 0.0
        self._last = 0.0
        self._id = ""

    def fold(self, stamped: Stamped) -> None:
        """Takes in the next event. One with number 0 was shown without being stored."""
        seq, event = stamped.seq or self.seq, stamped.event
        self.seq, self._id, self._last = seq, stamped.run, stamped.time
        match event:
            case RunStarted():
                self.started, self._began = event, stamped.time
            case Prepared():
                self.prepared = event
            case Asked(brief=brief):
                self.asked_at[brief.id] = seq
                self._kinds[brief.id] = brief.kind
                self._aims[brief.island.name] = brief.island.aim
            case Submitted(candidate=candidate):
                self._enter(candidate, seq).kind = "person"
            case Proposed(proposal=proposal) if proposal.candidate is not None:
                self._enter(proposal.candidate, seq).kind = self._kinds.get(proposal.brief, "")
            case Evaluated(evaluation=evaluation, diagnosis=diagnosis):
                self._evaluated(evaluation, diagnosis, seq)
            case BestChanged():
                for name in {event.candidate, self.best.candidate if self.best else event.candidate}:
                    self._entries[name].seq, self._entries[name].best = seq, name == event.candidate
                self.best = event
            case Migrated(candidate=name, to=island):
                self._entries[name].islands.append(island)
                self._entries[name].seq = seq
                self._best_of_islands(self._entries[name])
            case Acted(verb=verb, argument=argument):
                self._acted(verb, argument)
            case StateChanged(state=state, reason=reason):
                self.state, self.reason = state, reason
                if state != "ended":
                    self.ended = None
            case Spent():
                self._spent = event
            case Noted(message=message, level=level) if level != "lesson":  # those would push everything else out
                self._notes = [*self._notes[1 - NOTES :], {"message": message, "level": level}]
            case AcceptedCandidate(evidence=evidence):
                if evidence.candidate in self._entries:
                    self._entries[evidence.candidate].accepted = True
                    self._entries[evidence.candidate].seq = seq
            case Ended():
                self.ended, self.state, self.reason = event, "ended", event.reason

    # ---- reading

    def rows(self, after: int = 0) -> list[dict[str, Any]]:
        """One dict a candidate, in the order in which they came; only those that changed since event number `after`."""
        return [row(entry) for entry in self._entries.values() if entry.seq > after]

    def cells(self, begin: int, count: int) -> list[tuple[Any, ...]]:
        """The fields `entry.OFTEN` of some candidates, from the `begin`-th on. A table of thousands is made of these several times as
        quickly as of `rows`: each entry is fetched from memory once, which takes longer than all else.
        """
        return list(map(often, islice(self._entries.values(), begin, begin + count)))

    def candidate(self, name: str) -> Detail:
        """Everything about one candidate.

        Raises:
            NoSuchCandidateError: the run has none of that id.
        """
        entry = self.entry(name)
        evaluation = entry.evaluation
        return Detail(
            candidate=entry.candidate, evaluation=evaluation,
            diagnosis=entry.diagnoses.get(evaluation.id) if evaluation else None, evaluations=tuple(entry.evaluations),
            diagnoses=dict(entry.diagnoses), children=tuple(entry.children),
        )  # fmt: skip

    def entry(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            known = f": it has {', '.join(list(self._entries)[-5:])}" if self._entries else " yet"
            raise NoSuchCandidateError(f"run {self._id} has no candidate {name!r}{known}") from None

    def last_number(self, name: str) -> int:
        """The number of a candidate's latest evaluation; -1 where there is none."""
        entry = self._entries.get(name)
        return max((int(one.id.rsplit(".", 1)[1]) for one in entry.evaluations), default=-1) if entry else -1

    def names(self) -> tuple[str, ...]:
        """Ids of all candidates, in the order in which they came."""
        return tuple(self._entries)

    def elites(self, count: int = 4) -> tuple[Candidate, ...]:
        """The fastest right candidates, the fastest first."""
        right = [entry for entry in self._entries.values() if entry.evaluation is not None and entry.evaluation.time_us is not None]
        right.sort(key=lambda entry: (entry.evaluation.time_us if entry.evaluation else 0.0, entry.number))
        return tuple(entry.candidate for entry in right[:count])

    def header(self) -> dict[str, Any]:
        """What stands above the table: the op, its baselines and floor, the best so far, the budget."""
        started, prepared = self.started, self.prepared
        task = started.task if started else None
        return {
            "run": self._id, "seq": self.seq, "state": self.state, "reason": self.reason,
            "name": task.name if task else "", "target": task.target if task else "",
            "inputs": [
                {"name": spec.name, "shape": list(spec.shape), "dtype": spec.dtype, "role": spec.role} for spec in task.inputs
            ] if task else [],
            "outputs": [{"shape": list(spec.shape), "dtype": spec.dtype} for spec in task.outputs] if task else [],
            "work": encode(task.work) if task else None,
            "precision": task.precision if task else "",
            "device": prepared.device if prepared else "",
            "environment": encode(prepared.environment) if prepared else None,
            "baselines": encode(prepared.baselines) if prepared else [],
            "floor_us": prepared.floor_us if prepared else None,
            "best": row(self._entries[self.best.candidate]) if self.best else None,
            "budget": encode(started.budget) if started else None,
            "spent": encode(self._spent.spent) if self._spent else None,
            "proposers": list(started.proposers) if started else [],
            "experts": list(started.experts) if started else [],
            "seed": started.seed if started else 0,
            "cell": started.cell if started else "",
            "elites_of": started.elites_of if started else "",
            "candidates": len(self._entries),
            "evaluations": len(self.judged),
            "islands": self._islands(), "hints": list(self._hints), "bans": list(self._bans), "pinned": self._pinned,
            "notes": list(self._notes), "began": self._began, "last": self._last,
        }  # fmt: skip

    # ---- folding

    def _enter(self, candidate: Candidate, seq: int) -> Entry:
        old = self._entries.get(candidate.id)
        if old is not None:  # a submitted variant, now on its way to the judge
            old.candidate, old.seq = candidate, seq
            return old
        entry = Entry(candidate=candidate, number=len(self._entries) + 1, seq=seq, islands=[candidate.island])
        self._entries[candidate.id] = entry
        self._island(candidate.island)["candidates"] += 1
        for parent in candidate.parents:
            if parent in self._entries:
                self._entries[parent].children.append(candidate.id)
        return entry

    def _evaluated(self, evaluation: Evaluation, diagnosis: Diagnosis | None, seq: int) -> None:
        entry = self._entries[evaluation.candidate]
        entry.seq = seq
        entry.evaluations.append(evaluation)
        self.judged.append(evaluation)
        if diagnosis is not None:
            entry.diagnoses[evaluation.id] = diagnosis
        new, old = evaluation.time_us, entry.evaluation.time_us if entry.evaluation else None
        if entry.evaluation is None or (new is not None and (old is None or new < old)):
            entry.evaluation = evaluation
        self._island(entry.islands[0])["evaluations"] += 1
        self._best_of_islands(entry)

    def _acted(self, verb: str, argument: str) -> None:
        if verb == "hint":
            self._hints.append(argument)
        elif verb == "ban":
            self._bans.append(argument)
        elif verb == "pin":
            self._pinned = argument

    # ---- rows

    def _islands(self) -> list[dict[str, Any]]:
        named = {name: self._island(name) for name in self._aims}
        return [dict(island) for island in {**named, **self._tally}.values()]

    def _island(self, name: str) -> dict[str, Any]:
        """The tally of an island. It is kept as events come: to count ten thousand candidates anew for each of them would take too long."""
        island = self._tally.get(name)
        if island is None:
            island = self._tally[name] = {"name": name, "aim": "", "candidates": 0, "evaluations": 0, "best": "", "best_us": None}
        island["aim"] = self._aims.get(name, "")
        return island

    def _best_of_islands(self, entry: Entry) -> None:
        time = entry.evaluation.time_us if entry.evaluation else None
        for name in entry.islands if time is not None else ():
            island = self._island(name)
            if island["best_us"] is None or time < island["best_us"]:
                island["best"], island["best_us"] = entry.candidate.id, time
