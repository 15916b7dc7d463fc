from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from workbench.board.prompts import prompt
from workbench.brief import Brief, Role
from workbench.candidate import Candidate
from workbench.capture import capture_call
from workbench.errors import NoSuchCandidateError
from workbench.evolution.view import Detail


class Written:
    """A run with one candidate."""

    def __init__(self, task, candidate, brief):
        self.task, self._detail = task, Detail(candidate, None, None, (), {}, (), brief)

    def candidate(self, name):
        return self._detail


@pytest.fixture(scope="module")
def task():
    return capture_call(torch.softmax, (torch.randn(64, 128), -1)).task


def test_calls_come_with_prompt_reply_tokens_price_and_choice(called):
    asked = prompt(called, "k6")
    failed, whole = asked["calls"]
    assert failed["error"] and failed["estimated"] and failed["money"] is None
    assert whole["money"] == 0.0041 and whole["attempt"] == 1 and whole["why"] and whole["reply"].startswith("PLAN")
    assert [message["role"] for message in whole["messages"]] == ["system", "user"] and whole["messages"][1]["tokens"] > 100
    assert asked["rendered"] == []  # what was sent is shown, not what would have been
    assert {one["id"]: one["kind"] for one in asked["cited"]} == {"rows": "expert", "card-7": "card"}


def test_without_a_call_it_is_the_prompt_that_a_model_would_have_got(called):
    asked = prompt(called, "k4")
    assert asked["calls"] == [] and "rmsnorm" in asked["rendered"][1]["content"]


def test_an_experts_choices_are_laid_open(task):
    brief = Brief("b1", "seed", "k1", Role("fusion", "one pass"), task, expert={"expert": "rows"}, experts=("rows",))
    candidate = Candidate(
        "k1", "triton", "x = 1", "softmax", recipe={"expert": "rows", "passes": "row"}, proposer="experts", cites=("rows",)
    )
    choices = prompt(Written(task, candidate, brief), "k1")["choices"]
    passes = next(row for row in choices["rows"] if row["name"] == "passes")
    assert choices["expert"] == "rows" and passes["chosen"] == "row" and "row" in passes["values"] and passes["why"]
    assert all(row["chosen"] is not None for row in choices["rows"])  # what is not in the recipe is at its default


def test_a_step_that_asks_for_no_source_says_so(task):
    brief = Brief("b2", "tune", "k1", Role("fusion", "one pass"), task)
    asked = prompt(Written(task, Candidate("k1", "triton", "x = 1", "softmax"), brief), "k1")
    assert asked["rendered"] == [] and "kind tune asks for no new source" in asked["unrendered"]


def test_a_persons_variant_has_no_prompt(task):
    asked = prompt(Written(task, Candidate("k1", "triton", "x = 1", "softmax", proposer="person"), None), "k1")
    assert asked["brief"] is None and asked["unrendered"].startswith("You wrote this one")


def test_an_op_that_the_expert_no_longer_fits_still_shows_what_was_chosen(task):
    candidate = Candidate("k1", "triton", "x = 1", "softmax", recipe={"expert": "matmul", "order": "grouped"})
    untraced = replace(task, graph=type(task.graph)())
    choices = prompt(Written(untraced, candidate, Brief("b", "seed", "k1", Role("a", "b"), untraced)), "k1")["choices"]
    assert [(row["name"], row["chosen"], row["values"]) for row in choices["rows"]] == [("order", "grouped", [])]


def test_an_unknown_candidate_is_a_misuse(called):
    with pytest.raises(NoSuchCandidateError):
        prompt(called, "k999")
