"""The loop: ask, propose, judge, diagnose, tell.

Everything the workbench does happens around these lines. The search says what to try, a proposer writes it, the judge says whether it
is right and how fast, the diagnosis says why, and the search learns from that. Each event is in the store before anybody sees it.
"""

from __future__ import annotations

import asyncio
import contextlib

from workbench.brief import Brief, Budget
from workbench.candidate import Diagnosis, Evaluation
from workbench.errors import WorkbenchError
from workbench.events import Evaluated, Event, Noted, Proposed, Spent
from workbench.evolution.replay import take_prepared
from workbench.evolution.run import LOST, Run


async def evolve(run: Run) -> None:
    """One run, from the start of its judge to its end."""
    flight: dict[str, asyncio.Task[None]] = {}
    try:
        if await prepare(run):
            for brief in run.unfinished():  # what was in flight when an earlier process ended
                launch(run, flight, brief)
            while True:
                while run.may_ask(len(flight)) and (asked := run.ask()) is not None:
                    launch(run, flight, asked)
                if end := reason_to_end(run, flight):
                    break
                run.look(len(flight))
                await something_happens(run, flight)
            await kill(run, flight)
            run.end(end)
    except Exception as error:  # an error of ours: nobody may wait for ever
        await kill(run, flight)
        run.end(f"the run failed: {type(error).__name__}: {error}")
    finally:
        await run.close()


async def prepare(run: Run) -> bool:
    """Starts the judge, which rebuilds the task and finds its baselines and its floor. False if the run ends here."""
    run.state("preparing", "the judge starts")  # from here on its seconds count
    work = asyncio.ensure_future(run.prepare_judge())
    work.add_done_callback(lambda _: run.control.changed.set())
    while not (work.done() or run.control.stopping or run.out_of_time()):
        await something_happens(run, {})
    if run.control.stopping or not work.done():
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError, WorkbenchError):
            await work
        run.end(run.control.stopping or run.search.finished or "the time is up")
        return False
    try:
        prepared = work.result()
    except WorkbenchError as error:
        run.end(str(error))
        return False
    before = run.recorder.view.prepared
    if before is not None and before.device != prepared.device:
        run.end(f"this run was judged on {before.device}, here is {prepared.device}: start a new run, its elites come along")
        return False
    take_prepared(run.search, prepared)
    run.record(prepared)
    started = run.recorder.view.started
    told = before is not None and before.degenerate  # who resumes such a run knows
    if prepared.degenerate and not told and not (started is not None and started.accept_degenerate):
        run.end(f"{prepared.warning}. To search all the same: resume, or start with --accept-degenerate")
        return False
    return True


async def attempt(run: Run, brief: Brief) -> None:
    """One candidate, or one point of its tunable space: from the brief to what the search makes of it."""
    # Propose. Tunable points, the person's variants and earlier elites need no proposer.
    proposal = run.search.received(brief.id)
    if proposal is None:
        proposal = run.receive(run.search.given(brief) or await run.propose(brief))
        if proposal.candidate is None:
            run.nothing(brief, proposal)
            return
        if brief.kind != "tune":
            run.record(Proposed(proposal))
    assert proposal.candidate is not None

    # Judge.
    name = run.next_evaluation(proposal.candidate.id)
    evaluation = await run.fleet.evaluate(proposal.candidate, dict(brief.parameters), id=name, mode="quick")

    # Diagnose.
    diagnosis, trouble = diagnose(run, evaluation)

    # Tell the search, and keep what it learnt in the same transaction.
    learnt = run.search.tell(proposal, evaluation, diagnosis)
    run.count_losses(evaluation)
    run.search.charge(Budget(seconds=run.stopwatch.take()))
    run.record(Evaluated(brief.id, evaluation, diagnosis), *learnt, Spent(run.search.spent), *trouble)
    run.lessons.told(brief, proposal, evaluation)


def diagnose(run: Run, evaluation: Evaluation) -> tuple[Diagnosis | None, tuple[Event, ...]]:
    """Why it came out as it did. A diagnosis that fails is a note, not the end of the run."""
    try:
        return run.diagnose(evaluation, run.task, run.search.floor_us or 0.0), ()
    except Exception as error:
        return None, (Noted(f"no diagnosis of {evaluation.id}: {type(error).__name__}: {error}", level="warning"),)


def launch(run: Run, flight: dict[str, asyncio.Task[None]], brief: Brief) -> None:
    """Lets one attempt run beside the others."""
    flight[brief.id] = asyncio.ensure_future(attempt(run, brief))
    flight[brief.id].add_done_callback(lambda _: run.control.changed.set())


async def something_happens(run: Run, flight: dict[str, asyncio.Task[None]]) -> None:
    """Waits for an answer, a word of the person, or the end of the time."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(run.control.changed.wait(), run.next_look())
    run.control.changed.clear()
    for name in [name for name, task in flight.items() if task.done()]:
        flight.pop(name).result()


def reason_to_end(run: Run, flight: dict[str, asyncio.Task[None]]) -> str:
    """Why the run is over; empty while it is not. What is in flight may finish first, unless it is cancelled or its time is up."""
    if run.control.cancelled:
        return run.control.stopping
    if run.out_of_time():
        return run.search.finished or "the time is up"
    if flight:
        return ""
    if run.lost >= LOST:
        return f"{run.lost} candidates in a row could not be judged: {run.last_loss}"
    if reason := run.nobody_writes():
        return run.control.stopping or run.search.finished or reason
    waits = run.recorder.trouble or (run.search.tired and run.waits_for_the_person())
    return run.control.stopping or ("" if waits else run.search.finished or "")


async def kill(run: Run, flight: dict[str, asyncio.Task[None]]) -> None:
    """Nothing is in flight after this. Killed judgings come back as not judged, and are told like any other."""
    if not flight:
        return
    run.fleet.cancel()
    _, slow = await asyncio.wait(flight.values(), timeout=0.5)
    for task in slow:  # a proposer that still waits for its answer
        task.cancel()
    await asyncio.gather(*flight.values(), return_exceptions=True)
    flight.clear()
