"""Proposals from an earlier run: recorded as they are made, and given again without a key and without a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.brief import Brief, Proposal, Usage
from workbench.errors import MisuseError
from workbench.events import Asked, Event, Proposed, RunStarted, Stamped
from workbench.proposers.base import Proposer
from workbench.records import decode, digest, encode

MODELS_ALONE = "recording:llm"
"""The name of the replay of a run in which models wrote and experts did not: its search asks for no expert's seeds."""


@dataclass(frozen=True)
class Recorded:
    """What a brief asked for, in short, and the answer to it.

    Attributes:
        asked: what has to be equal for the answer to fit, by name.
    """

    brief: str
    asked: Mapping[str, str]
    proposal: Proposal


class RecordingProposer:
    """Passes briefs on to another proposer and keeps what it answers.

    >>> proposer = RecordingProposer(LlmProposer(("gpt-5",)))   # doctest: +SKIP
    >>> proposer.save("run.jsonl")                              # doctest: +SKIP

    Args:
        inner: the proposer that answers.
        on_recorded: called with each record as it is made.
    """

    def __init__(self, inner: Proposer, on_recorded: Callable[[Recorded], None] | None = None) -> None:
        self.name = inner.name
        self.inner = inner
        self.records: list[Recorded] = []
        self._on_recorded = on_recorded

    async def propose(self, brief: Brief) -> Proposal:
        proposal = await self.inner.propose(brief)
        record = Recorded(brief.id, fingerprint(brief), proposal)
        self.records.append(record)
        if self._on_recorded:
            self._on_recorded(record)
        return proposal

    def save(self, path: str | Path) -> None:
        """Writes the records, one JSON object a line."""
        lines = (json.dumps(encode(record), ensure_ascii=False) + "\n" for record in self.records)
        Path(path).write_text("".join(lines), encoding="utf-8")


class ReplayProposer:
    """Answers each brief as the recorded run answered it.

    The search is deterministic, so a run with the same task, seed, budget and verdicts asks the same briefs in the same order. Where
    a brief differs from the recorded one of its id, the answer is no candidate, and the reason says what differs.

    >>> replay = ReplayProposer.of_events(store.events(run))   # doctest: +SKIP

    Args:
        records: in any order; of several for one brief the last counts.
        started: how the recorded run began; a run that replays it has its experts.
        charge: whether answers bear the recorded usage, so that a token budget ends the replay where it ended the run.
    """

    def __init__(self, records: Iterable[Recorded], *, started: RunStarted | None = None, charge: bool = True) -> None:
        names = started.proposers if started is not None else ()
        alone = "experts" not in names and any(name.startswith(("llm:", MODELS_ALONE)) for name in names)
        self.name = MODELS_ALONE if alone else "recording"
        self.experts = started.experts if started is not None else ()
        self._records = {record.brief: record for record in records}
        self._charge = charge

    @classmethod
    def of_events(cls, events: Iterable[Stamped | Event], *, charge: bool = True) -> ReplayProposer:
        """From the events of a stored run."""
        asked: dict[str, Brief] = {}
        records = []
        started = None
        for item in events:
            event = item.event if isinstance(item, Stamped) else item
            if isinstance(event, RunStarted):
                started = event
            elif isinstance(event, Asked):
                asked[event.brief.id] = event.brief
            elif isinstance(event, Proposed) and event.proposal.brief in asked:
                brief = asked[event.proposal.brief]
                records.append(Recorded(brief.id, fingerprint(brief), event.proposal))
        return cls(records, started=started, charge=charge)

    @classmethod
    def load(cls, path: str | Path, *, charge: bool = True) -> ReplayProposer:
        """From a file that `RecordingProposer.save` wrote.

        Raises:
            MisuseError: it is not such a file; the message names the line.
        """
        records = []
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MisuseError(f"the recording {path} can't be read: {error}") from None
        for number, line in enumerate(text.splitlines(), 1):
            try:
                records.append(decode(Recorded, json.loads(line)))
            except (ValueError, TypeError, KeyError, AttributeError):
                raise MisuseError(
                    f"line {number} of {path} is no recorded proposal: give a file that RecordingProposer.save wrote"
                ) from None
        return cls(records, charge=charge)

    async def propose(self, brief: Brief) -> Proposal:
        record = self._records.get(brief.id)
        if record is None:
            return Proposal(brief.id, None, f"the recording has no answer to {brief.id}: it holds {len(self._records)} answers")
        differing = _difference(record.asked, fingerprint(brief))
        if differing:
            return Proposal(brief.id, None, f"the recording's {brief.id} differs: {differing}; replay with the same task, seed and budget")
        answer = record.proposal
        return Proposal(answer.brief, answer.candidate, answer.reason, answer.usage if self._charge else Usage())


def fingerprint(brief: Brief) -> dict[str, str]:
    """What an answer depends on, in short. What is left of the budget, times and retrieved knowledge may differ."""
    return {
        "kind": brief.kind,
        "task": brief.task.id,
        "candidate": brief.candidate,
        "island": brief.island.name,
        "parents": ", ".join(f"{parent.candidate.id} ({digest(parent.candidate.source, 8)})" for parent in brief.parents),
        "expert": digest(brief.expert, 8) if brief.expert else "",
    }


def _difference(recorded: Mapping[str, str], asked: Mapping[str, str]) -> str:
    for name, value in asked.items():
        if recorded.get(name, "") != value:
            return f"its {name} was {recorded.get(name) or 'none'}, now it is {value or 'none'}"
    return ""
