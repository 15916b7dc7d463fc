"""How a run begins: from an op, or from the store."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.brief import Budget
from workbench.candidate import Candidate
from workbench.errors import StoreError
from workbench.events import Acted, Event, Noted, RunStarted
from workbench.evolution import registry
from workbench.evolution.calls import calls_models
from workbench.evolution.calm import calm
from workbench.evolution.choosing import check_budget
from workbench.evolution.control import Control
from workbench.evolution.evolution import Evolution
from workbench.evolution.lessons import AnyExperience, Unkept
from workbench.evolution.proposing import AnyProposer, make_proposers
from workbench.evolution.recorder import AnyStore, Recorder
from workbench.evolution.replay import replay
from workbench.evolution.run import AnyFleet, Diagnose, Run
from workbench.evolution.view import View
from workbench.records import encode
from workbench.search import Mechanisms
from workbench.search.mechanisms import DEFAULT
from workbench.store import MemoryStore
from workbench.store.owners import owner, runs_here
from workbench.task import Task

MakeFleet = Callable[[], AnyFleet]
MODEL_LANES = 2
"""How many more candidates than judges are on their way beside models, which take a while to write one."""
PAGE = 5000
"""So many events are read at a time: of most of them the view keeps little."""


def start(
    op: Any, *, budget: Budget | None = None, proposers: Sequence[str | AnyProposer] = ("experts",), store: AnyStore | None = None,
    seed: int = 0, device: str = "auto", target: str | None = None, auto: bool = False, cell: str = "", cell_source: str = "",
    elites_of: str | None = None, judges: int = 1, lanes: int | None = None, fleet: MakeFleet | None = None,
    diagnose: Diagnose | None = None, experience: AnyExperience | None = None, mechanisms: Mechanisms = DEFAULT,
    accept_degenerate: bool = False,
) -> Evolution:  # fmt: skip
    """Starts a run and returns at once. One candidate is judged, then it waits for `step` or `auto`.

    Args:
        op: what `capture` made of the op, or a Task.
        budget: hard caps; none by default.
        proposers: names (``experts``, ``person``, ``llm:gpt-5,gpt-5-mini``) or proposers; see `choose_proposers`.
        store: where the run is kept; None keeps it in memory.
        seed: of every random choice of the search. Judges draw seeds of their own.
        device: ``auto``, ``cuda`` or ``cpu``.
        target: overrides the Task's.
        auto: runs on without waiting for Step.
        cell: the notebook cell's id. An earlier run of the same cell is stopped, and its elites are judged again first.
        elites_of: another run to take elites from; empty for none.
        judges: how many judge processes; `lanes`: how many candidates may be on their way at once: as many by default, and two more
            beside models, so that the judge has work while they write.
        fleet: makes who judges, in place of judge processes on this machine.
        diagnose: in place of `explain.diagnosis.diagnose`.
        experience: cards for briefs, and where lessons are kept; the user's own by default, or the shipped cards where nothing is stored.
        mechanisms: which parts of the search are on.
        accept_degenerate: search even if the judge finds that it could not tell bad answers from good ones on this op.

    Raises:
        MisuseError: a cap is no amount, or a model's prices can't be read.
        StoreError: the store can't be written.
        NoSuchRunError: there is no run `elites_of`.
    """
    task: Task = getattr(op, "task", op)
    task = task if target is None else replace(task, target=target)
    store = store if store is not None else MemoryStore()
    check_budget(budget or Budget())
    named, missing = make_proposers([one for one in proposers if isinstance(one, str)], seed)
    writers = (*named, *(one for one in proposers if not isinstance(one, str)))
    names = tuple(one if isinstance(one, str) else one.name for one in proposers)
    experts, notes = _experts(task, device) if "experts" in names or any(map(calls_models, writers)) else ((), [])
    experts = next((had for one in writers if (had := getattr(one, "experts", ()))), experts)  # of a replayed run: those that it had
    earlier, elites, said = _earlier(store, task, cell, elites_of)
    started = RunStarted(
        task=task, budget=budget or Budget(), seed=seed, proposers=names, cell=cell, cell_source=cell_source, elites_of=earlier,
        elites=elites, experts=experts, device=device, mechanisms=encode(mechanisms.resolved(budget)),
        accept_degenerate=accept_degenerate,
    )  # fmt: skip
    events: list[Event] = [started, *said, *(Noted(note) for note in (*notes, *getattr(op, "notes", ())))]
    events += [Noted(f"there is no proposer {name!r}", level="warning") for name in missing]
    if auto:
        events.append(Acted("auto"))
    recorder = Recorder(store, _new_id(task), View(), owner())
    if not recorder.add(*events):
        raise StoreError(recorder.trouble)
    recorded = Evolution(recorder, _builder(
        recorder, fleet=fleet or _local(task, device, judges), lanes=lanes or _lanes(judges, writers), diagnose=diagnose,
        probe=_probe(op, seed), proposers=writers, experience=experience,
    ), proposers=writers)  # fmt: skip
    registry.remember(recorded)
    return recorded.begin()


def open_run(
    store: AnyStore, run: str, *, proposers: Sequence[AnyProposer] = (), device: str | None = None, judges: int = 1,
    lanes: int | None = None, fleet: MakeFleet | None = None, diagnose: Diagnose | None = None,
    experience: AnyExperience | None = None,
) -> Evolution:  # fmt: skip
    """A run as the store has it, to look at; `resume`, `step` and `auto` go on where it ends. Needs no judge to be looked at.

    Args:
        store: where it is kept.
        run: its id, the beginning of it, or ``last``.
        proposers: those that the run had and that can't be made from their names; models can, with the key of this environment.
        device: where to go on; where it was, by default.

    Raises:
        NoSuchRunError: the store has no such run.
        StoreError: it can't be read.
    """
    name = store.run(run).id
    live = registry.running(name)
    if live is not None and live.store.place == store.place and live.alive:
        return live
    summary = store.run(name)
    recorder = Recorder(store, name, load_view(store, name), owner())
    started = recorder.view.started
    if started is None:
        raise StoreError(f"run {name} does not begin with its start: the store is damaged")
    made, missing = make_proposers([one for one in started.proposers if one not in {given.name for given in proposers}], started.seed)
    writers = (*made, *proposers)
    opened = Evolution(recorder, _builder(
        recorder, fleet=fleet or _local(started.task, device or started.device, judges), lanes=lanes or _lanes(judges, writers),
        diagnose=diagnose, proposers=writers, missing=missing, experience=experience,
    ), proposers=writers, interrupted=recorder.view.state != "ended" and not runs_here(summary.owner))  # fmt: skip
    registry.remember(opened)
    return opened


def load_view(store: AnyStore, run: str) -> View:
    """The read models of a stored run."""
    view = View()
    with calm():
        while page := store.events(run, view.seq, limit=PAGE, short=True):
            for stamped in page:
                view.fold(stamped)
    return view


def _builder(
    recorder: Recorder, *, fleet: MakeFleet, lanes: int, diagnose: Diagnose | None, proposers: Sequence[AnyProposer],
    probe: Callable[[], Mapping[str, Any]] | None = None, missing: Sequence[str] = (),
    experience: AnyExperience | None = None,
) -> Callable[[Evolution], Run]:  # fmt: skip
    """What makes the loop's Run, in the thread: the search is rebuilt from the events, however many there are."""

    def build(evolution: Evolution) -> Run:
        recorder.store.claim(recorder.run, recorder.owner)
        recorder.catch_up()
        events = recorder.store.events(recorder.run)
        found = replay(events)
        lessons, warning = (experience, "") if experience is not None else _experience(recorder.store)
        if warning:
            recorder.add(Noted(warning, level="warning"))
        for name in missing:
            recorder.add(Noted(f"proposer {name!r} is not here: give it to open_run to go on with it", level="warning"))
        return Run(
            task=evolution.task, search=found.search, fleet=fleet(), proposers=proposers, recorder=recorder,
            control=Control(found.steps), diagnose=diagnose or _diagnose(), experience=lessons, stream=evolution.stream,
            lanes=lanes, earlier=events, probe=probe,
            on_settled=evolution.settle, on_end=evolution.hear_no_more, over=recorder.view.ended is not None,
        )  # fmt: skip

    return build


def _lanes(judges: int, writers: Sequence[AnyProposer]) -> int:
    return judges + (MODEL_LANES if any(map(calls_models, writers)) else 0)


def _experience(store: AnyStore) -> tuple[AnyExperience, str]:
    """The user's experience, and why it can't be had if so. A run that is kept nowhere keeps no experience either."""
    if isinstance(store, MemoryStore):
        return Unkept(), ""
    from workbench.store import open_experience

    try:
        return open_experience(), ""
    except StoreError as error:
        return Unkept(), f"the experience of this run is not kept: {error}"


def _experts(task: Task, device: str) -> tuple[tuple[str, ...], list[str]]:
    from workbench.knowledge.experts import match, why_none

    found = match(task, ("triton", "cuda") if _on_nvidia(task, device) else ("triton",))
    if found:
        return tuple(one.expert for one in found), []
    return (), [f"no built-in expert fits this op: {why_none(task)}"]


def _on_nvidia(task: Task, device: str) -> bool:
    """Whether candidates will run on a card of NVIDIA's: only there CUDA C++ can be judged."""
    if device not in ("auto", "cuda") or not task.target.startswith("cuda:"):
        return False
    import torch

    return bool(torch.version.cuda) and torch.cuda.is_available()


def _earlier(store: AnyStore, task: Task, cell: str, elites_of: str | None) -> tuple[str, tuple[Candidate, ...], list[Event]]:
    """The run that elites come from, those elites, and what to tell the person. An earlier run of the same cell is stopped."""
    stopped = [run for run in registry.of_cell(cell) if run.alive]
    for run in stopped:
        run.stop()
    said: list[Event] = [Noted(f"the earlier run {run.id} of this cell is stopped") for run in stopped]
    if elites_of:
        name = store.run(elites_of).id
    elif elites_of is None and cell and (earlier := store.runs(cell=cell)):
        name = earlier[0].id
    else:
        return "", (), said
    view = load_view(store, name)
    old = view.started.task if view.started else None
    if old is None or (old.candidate_entry, [spec.name for spec in old.inputs]) != (
        task.candidate_entry, [spec.name for spec in task.inputs],
    ):  # fmt: skip
        return "", (), said
    elites = view.elites()
    if elites:
        said.append(Noted(f"the best {len(elites)} of run {name} are judged again first"))
    return (name, elites, said) if elites else ("", (), said)


def _local(task: Task, device: str, judges: int) -> MakeFleet:
    def make() -> AnyFleet:
        from workbench.fleet import Local

        return Local(task, device=device, judges=judges)

    return make


def _diagnose() -> Diagnose:
    from workbench.explain.diagnosis import diagnose

    made: Diagnose = diagnose
    return made


def _probe(op: Any, seed: int) -> Callable[[], Mapping[str, Any]] | None:
    """The live op's answer, where there is a live op: what the judge holds its rebuilt reference against."""
    if not hasattr(op, "live"):
        return None

    def make() -> Mapping[str, Any]:
        from workbench.capture import probe

        return probe(op, seed)

    return make


def _new_id(task: Task) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", task.name.lower()).strip("-")[:40] or "op"
    return f"{slug}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
