"""The experts as a proposer: deterministic, never the same twice, true to the island's role, and done when all is tried."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from workbench.brief import Brief, Parent, Role
from workbench.candidate import Diagnosis, Evaluation, Verdict
from workbench.graph import Graph, Node
from workbench.knowledge import experts
from workbench.proposers.base import Proposer
from workbench.proposers.experts import ExpertProposer
from workbench.records import decode, digest, encode
from workbench.search import ROLES
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

FUSION, TRAFFIC, TILES, ALGORITHM = ROLES


def softmax_task(rows=4096, columns=8192):
    x = InputSpec("x", (rows, columns), "bfloat16", (columns, 1), Values("normal"))
    node = Node("softmax", "aten._softmax.default", ({"ref": "x"}, -1, False), {}, (rows, columns), "bfloat16")
    output = OutputSpec((rows, columns), "bfloat16", (columns, 1))
    return Task("softmax", "", "softmax", (x,), (output,), Work(0, 0), graph=Graph((node,), ("softmax",)))


TASK = softmax_task()


def ask(kind="seed", island=FUSION, **changes):
    brief = Brief(id="b1", kind=kind, candidate="k1", island=island, task=TASK, **changes)
    return asyncio.run(ExpertProposer().propose(brief))


def parent(recipe, id="k0", kind=""):
    choices = {key: value for key, value in recipe.items() if key != "expert"}
    made = ask(expert={"expert": recipe["expert"], **choices}).candidate
    diagnosis = Diagnosis("e", kind, "", "") if kind else None
    return Parent(replace(made, id=id), Evaluation("e", id, TASK.id, Verdict.RIGHT), diagnosis)


def default():
    return {"expert": "rows", **{key: values[0] for key, values in experts.choices("rows", TASK).items()}}


def test_it_is_a_proposer():
    assert isinstance(ExpertProposer(), Proposer)


def test_a_seed_is_the_expert_as_it_is_by_default():
    proposal = ask(expert={"expert": "rows"})
    made = proposal.candidate
    assert made.recipe == default()
    assert made.source == experts.write("rows", TASK, {})
    assert (made.id, made.entry, made.island, made.brief, made.cites) == ("k1", "softmax", FUSION.name, "b1", ("rows",))
    assert "rows of 8192 elements" in made.plan


def test_a_seed_that_was_tried_is_varied_by_the_islands_own_choices():
    first = ask(expert={"expert": "rows"}).candidate
    for island in (FUSION, TRAFFIC):
        second = ask(island=island, expert={"expert": "rows"}, tried=(digest(first.source),)).candidate
        changed = [key for key, value in second.recipe.items() if value != first.recipe[key]]
        assert [experts.role("rows", key) for key in changed] == [island.name]


def test_a_step_changes_one_choice_and_says_which():
    made = ask("step", TRAFFIC, parents=(parent(default()),), tried=(digest(experts.write("rows", TASK, {})),)).candidate
    changed = {key: value for key, value in made.recipe.items() if value != default()[key]}
    assert changed == {"cache": "stream"}
    assert made.plan == "Change cache from default to stream: " + experts.explain("rows", "cache", "stream") + "."
    assert made.parents == ("k0",)


@pytest.mark.parametrize("island", ROLES, ids=lambda role: role.name)
def test_steps_are_never_repeated_and_end_with_a_reason(island):
    tried, proposer, start = [], ExpertProposer(), parent(default())
    for number in range(200):
        brief = Brief(f"b{number}", "step", f"k{number}", island, TASK, parents=(start,), tried=tuple(tried))
        proposal = asyncio.run(proposer.propose(brief))
        if proposal.candidate is None:
            break
        tried.append(digest(proposal.candidate.source))
    assert len(set(tried)) == len(tried) > 8
    assert proposal.reason == "nothing new on this island: every structure of the fitting experts was tried"


def test_the_same_brief_has_the_same_answer():
    parents = (parent(default()), parent({**default(), "passes": "loop", "cache": "stream"}, "k9"))
    assert ask("crossover", parents=parents, seed=5) == ask("crossover", parents=parents, seed=5)


def test_a_crossover_takes_from_both():
    one, other = default(), {**default(), "passes": "loop", "online": "lanes"}
    made = ask("crossover", parents=(parent(one), parent(other, "k9"))).candidate
    assert made.recipe == other or {made.recipe["passes"], made.recipe["online"]} & {"loop", "lanes"}
    assert made.parents == ("k0", "k9")
    assert "of k9" in made.plan


def test_a_repair_goes_back_to_what_the_diagnosis_blames():
    broken = {**default(), "passes": "loop", "prefetch": "pipelined", "cache": "stream"}
    made = ask("repair", parents=(parent(broken, kind="build"),)).candidate
    assert made.recipe == {**broken, "prefetch": "plain"}
    assert made.plan.startswith("Go back to prefetch = plain, the safer choice")


def test_recipes_survive_json():
    brief = Brief("b2", "step", "k2", TILES, TASK, parents=(parent(default()),))
    again = decode(Brief, encode(brief))
    one, other = (asyncio.run(ExpertProposer().propose(which)) for which in (brief, again))
    assert one == other and one.candidate is not None


def test_bans_and_hints_are_heard():
    tried = (digest(experts.write("rows", TASK, {})),)
    hinted = ask("step", ALGORITHM, parents=(parent(default()),), tried=tried, hints=("try a persistent kernel",)).candidate
    assert hinted.recipe["grid"] == "persistent"
    for _ in range(60):
        made = ask("step", FUSION, parents=(parent(default()),), tried=tried, bans=("no persistent kernels", "no split rows")).candidate
        if made is None:
            break
        assert made.recipe["grid"] != "persistent" and made.recipe["passes"] != "split"
        tried += (digest(made.source),)


def test_an_op_that_no_expert_knows_gets_a_reason():
    node = Node("sort", "aten.sort.default", ({"ref": "x"},), {}, (4, 8), "float32")
    task = replace(TASK, graph=Graph((node,), ("sort",)))
    proposal = asyncio.run(ExpertProposer().propose(Brief("b1", "seed", "k1", FUSION, task)))
    assert proposal.candidate is None
    assert proposal.reason == "no expert fits: aten.sort.default is not an op that the experts know"


def test_a_parent_of_another_proposer_leads_to_an_experts_seed():
    stranger = replace(parent(default()).candidate, recipe={}, proposer="llm:x")
    made = ask("step", FUSION, parents=(Parent(stranger, Evaluation("e", "k0", TASK.id, Verdict.RIGHT)),)).candidate
    assert made.recipe == default()


def test_an_island_without_choices_of_its_own_still_proposes():
    role = Role(name="something else", aim="")
    assert ask("step", role, parents=(parent(default()),), tried=(digest(experts.write("rows", TASK, {})),)).candidate is not None
