"""The bandit: deterministic, learns what pays, minds the price as the kind of work asks, and shows its choice."""

import collections

import llm_briefs
import pytest

from workbench.candidate import Verdict
from workbench.proposers.llm import Bandit
from workbench.proposers.llm.rewards import reward_of

COSTS = {"small": 0.001, "large": 0.02}


def play(bandit, kind, worth, turns=300):
    picked = []
    for _ in range(turns):
        choice = bandit.choose(kind)
        picked.append(choice.model)
        bandit.learn(kind, choice.model, worth[choice.model], COSTS[choice.model])
    return collections.Counter(picked[turns // 2 :])


def test_same_seed_and_lessons_same_choices_and_another_seed_others():
    def history(seed):
        bandit = Bandit(("small", "large"), seed=seed)
        out = []
        for turn in range(40):
            choice = bandit.choose("step")
            out.append(choice)
            bandit.learn("step", choice.model, (turn % 3) / 2, COSTS[choice.model])
        return out

    assert history(3) == history(3) != history(4)


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_model_that_is_better(seed):
    assert play(Bandit(("small", "large"), seed=seed, expected=COSTS), "step", {"small": 0.1, "large": 0.8})["large"] > 120


@pytest.mark.parametrize("seed", range(5))
def test_of_equals_the_cheap_one_does_the_repairs(seed):
    assert play(Bandit(("small", "large"), seed=seed, expected=COSTS), "repair", {"small": 0.6, "large": 0.7})["small"] > 140


def test_every_model_is_tried_whatever_its_price():
    assert set(play(Bandit(("small", "large"), seed=0, expected=COSTS), "step", {"small": 0.4, "large": 0.4})) == {"small", "large"}


def test_kinds_of_work_are_learnt_apart():
    bandit = Bandit(("small", "large"), seed=0)
    for _ in range(50):
        bandit.learn("repair", "large", 0.0)
        bandit.learn("step", "large", 1.0)
    assert [arm.mean for arm in bandit.arms("repair")] == [0.0, 0.0] and [arm.mean for arm in bandit.arms("step")] == [0.0, 1.0]


def test_a_choice_shows_its_scores_and_reason_and_an_unknown_price_is_said():
    bandit = Bandit(("small", "large"), seed=0, expected={"small": 0.001, "large": None})
    choice = bandit.choose("seed")
    assert set(choice.scores) == {"small", "large"} and choice.scores[choice.model] == max(choice.scores.values())
    assert choice.why == "not tried yet, prices not compared"
    bandit.learn("seed", choice.model, 0.5, 0.01)
    assert next(arm for arm in bandit.arms("seed") if arm.model == choice.model).pulls == 1
    assert Bandit(("only",)).choose("step").why == "the only model"
    assert bandit.choose("seed", among=("large",)).model == "large"


def test_rewards_are_bounded_and_costs_are_means():
    bandit = Bandit(("m",))
    bandit.learn("step", "m", 5.0, 0.02)
    bandit.learn("step", "m", -5.0, 0.04)
    (arm,) = bandit.arms("step")
    assert arm.reward == 1.0 and arm.cost == pytest.approx(0.03)


def test_no_model_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        Bandit(())
    with pytest.raises(ValueError, match="no model to choose"):
        Bandit(("m",)).choose("step", among=())


def _evaluation(verdict, us=None):
    import dataclasses

    timing = None if us is None else dataclasses.replace(llm_briefs.RIGHT.timing, median_us=us)
    return dataclasses.replace(llm_briefs.RIGHT, verdict=verdict, timing=timing)


def test_rewards_follow_what_each_kind_of_work_is_for():
    step, repair, seed = (llm_briefs.brief(kind) for kind in ("step", "repair", "seed"))
    assert reward_of(step, _evaluation(Verdict.RIGHT, 24.1 / 2)) == pytest.approx(1.0)
    assert reward_of(step, _evaluation(Verdict.RIGHT, 24.1 / 8)) == 1.0
    assert reward_of(step, _evaluation(Verdict.RIGHT, 24.1)) == reward_of(step, _evaluation(Verdict.RIGHT, 30.0)) == 0.2
    assert 0.3 < reward_of(step, _evaluation(Verdict.RIGHT, 20.0)) < 0.6
    assert reward_of(step, _evaluation(Verdict.WRONG)) == 0.0
    assert reward_of(repair, _evaluation(Verdict.RIGHT, 99.0)) == 1.0 and reward_of(repair, _evaluation(Verdict.CRASHED)) == 0.0
    assert 0 < reward_of(repair, _evaluation(Verdict.LOWER_PRECISION)) < 0.5
    assert reward_of(seed, _evaluation(Verdict.RIGHT, 99.0)) == 1.0
    assert reward_of(seed, _evaluation(Verdict.WRONG)) > reward_of(seed, _evaluation(Verdict.DOES_NOT_BUILD))
    assert all(reward_of(brief, _evaluation(Verdict.NOT_JUDGED)) is None for brief in (step, repair, seed))
