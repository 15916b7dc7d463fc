"""The person as a proposer: briefs wait, answers come from any thread, and cancelling withdraws."""

from __future__ import annotations

import asyncio
import threading

import pytest

from workbench.brief import Brief, Role
from workbench.errors import MisuseError
from workbench.proposers.base import Proposer
from workbench.proposers.person import PersonProposer
from workbench.task import Task, Work

TASK = Task("op", "", "op", (), (), Work(0, 0))


def brief(number):
    return Brief(f"b{number}", "person", f"k{number}", Role("tiles and parameters", ""), TASK)


def test_an_answer_from_another_thread_ends_the_wait():
    shown = threading.Event()
    proposer = PersonProposer(on_waiting=lambda brief: shown.set())

    def person():
        assert shown.wait(10)
        assert [one.id for one in proposer.waiting] == ["b1"]
        proposer.answer("def op(): ...", plan="by hand, with care")

    thread = threading.Thread(target=person)
    thread.start()
    proposal = asyncio.run(asyncio.wait_for(proposer.propose(brief(1)), 10))
    thread.join()
    made = proposal.candidate
    assert (made.id, made.source, made.entry, made.plan, made.proposer, made.brief) == (
        "k1", "def op(): ...", "op", "by hand, with care", "person", "b1",
    )  # fmt: skip
    assert proposer.waiting == ()


def test_several_briefs_wait_and_are_answered_by_name():
    async def run():
        proposer = PersonProposer()
        waits = [asyncio.ensure_future(proposer.propose(brief(number))) for number in (1, 2)]
        await asyncio.sleep(0)
        proposer.answer("second", brief="b2")
        proposer.decline(brief="b1", reason="no idea")
        return await asyncio.gather(*waits)

    first, second = asyncio.run(run())
    assert first.candidate is None and first.reason == "no idea"
    assert second.candidate.source == "second"


def test_cancelling_withdraws_the_brief():
    async def run():
        proposer = PersonProposer()
        wait = asyncio.ensure_future(proposer.propose(brief(1)))
        await asyncio.sleep(0)
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        return proposer

    proposer = asyncio.run(run())
    assert proposer.waiting == ()
    with pytest.raises(MisuseError, match="no brief is waiting"):
        proposer.answer("too late")


def test_an_unknown_brief_is_named():
    with pytest.raises(MisuseError, match="brief b7 is not waiting"):
        PersonProposer().decline(brief="b7")


def test_it_is_a_proposer():
    assert isinstance(PersonProposer(), Proposer)
