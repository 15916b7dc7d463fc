"""Inductor's own kernels join the seeds: judged first, labelled, once a run, and a resumed run has them too."""

from __future__ import annotations

from dataclasses import replace

from scripted_fleet import TASK, ScriptedFleet, source_of

from workbench.brief import Budget
from workbench.events import Proposed
from workbench.evolution.replay import replay
from workbench.knowledge.inductor import PLAN, PROPOSER
from workbench.records import dumps
from workbench.search import Search
from workbench.search.mechanisms import DEFAULT


class Compiled(ScriptedFleet):
    """The judge of an op that torch.compile has compiled."""

    async def prepare(self, probe):
        return replace(await super().prepare(probe), inductor=source_of(1))


def proposed(run):
    return [stamped.event.proposal.candidate for stamped in run.events() if isinstance(stamped.event, Proposed)]


def test_the_run_begins_with_what_torch_compile_does(begin):
    run, _ = begin(fleet=Compiled(), auto=True, budget=Budget(evaluations=6))
    run.wait(20)
    first, *rest = proposed(run)
    assert (first.id, first.proposer, first.plan, first.source) == ("k1", PROPOSER, PLAN, source_of(1))
    assert rest and all(one.proposer != PROPOSER and one.source != first.source for one in rest)


def test_a_rebuilt_search_has_had_it(begin):
    run, _ = begin(fleet=Compiled(), auto=True, budget=Budget(evaluations=6))
    run.wait(20)
    live, rebuilt = run._run.search, replay(run.events()).search
    assert dumps(live.elites()) == dumps(rebuilt.elites()) and live.tried == rebuilt.tried
    run.resume()
    run.wait(20)
    assert [one.proposer for one in proposed(run)].count(PROPOSER) == 1


def test_without_it_nothing_is_offered(begin):
    run, _ = begin(fleet=ScriptedFleet(), auto=True, budget=Budget(evaluations=3))
    run.wait(20)
    assert all(one.proposer != PROPOSER for one in proposed(run))


def test_a_search_takes_it_once_and_only_with_seeds():
    search = Search(TASK)
    search.offer(source_of(1), PROPOSER, PLAN)
    search.offer(source_of(2), PROPOSER, PLAN)
    brief = search.ask()
    assert search.wishes == 0 and brief.kind == "seed" and search.given(brief).candidate.source == source_of(1)
    unseeded = Search(TASK, mechanisms=replace(DEFAULT, seeds=False))
    unseeded.offer(source_of(1), PROPOSER, PLAN)
    assert unseeded.wishes == 0
