"""Record and replay: the same briefs get the same answers without a model, and another brief gets a reason."""

import asyncio
import dataclasses
import re

import llm_briefs
import pytest

from workbench.brief import Budget, Proposal, Usage
from workbench.candidate import Candidate
from workbench.errors import MisuseError
from workbench.events import Asked, Evaluated, Proposed, Stamped
from workbench.proposers.llm import LlmProposer, ScriptedModel
from workbench.proposers.recording import RecordingProposer, ReplayProposer

BRIEFS = tuple(
    llm_briefs.brief(kind, id=f"b{number}", candidate=f"k{number}", seed=number)
    for number, kind in enumerate(("seed", "step", "repair", "crossover", "step"), 20)
)


def record():
    texts = [f"Plan: idea {n}.\n```python\n{llm_briefs.SOURCE}# {n}\n```" for n in range(4)]
    asked = RecordingProposer(LlmProposer("m", transport=ScriptedModel([*texts, "no code", "none"]), prices={}))
    answers = asyncio.run(_all(asked, BRIEFS))
    assert [answer.candidate is None for answer in answers] == [False, False, False, False, True]
    return asked, answers


async def _all(asked, briefs):
    return [await asked.propose(brief) for brief in briefs]


def test_a_saved_recording_answers_alike_in_any_order(tmp_path):
    asked, answers = record()
    asked.save(tmp_path / "run.jsonl")
    replay = ReplayProposer.load(tmp_path / "run.jsonl")
    assert asyncio.run(_all(replay, BRIEFS)) == answers
    assert asyncio.run(_all(replay, BRIEFS[::-1])) == answers[::-1]
    assert asked.name == "llm:m" and replay.name == "recording"


def test_the_events_of_a_run_are_a_recording_too():
    _, answers = record()
    events = []
    for brief, answer in zip(BRIEFS, answers, strict=True):
        events += [Asked(brief), Proposed(answer), Evaluated(brief.id, llm_briefs.RIGHT)]
    stamped = [Stamped("r1", seq, 0.0, event) for seq, event in enumerate(events, 1)]
    for given in (events, stamped):
        assert asyncio.run(_all(ReplayProposer.of_events(given), BRIEFS)) == answers


def test_what_is_left_of_the_budget_and_new_cards_do_not_matter():
    _, answers = record()
    replay = ReplayProposer.of_events([Asked(BRIEFS[1]), Proposed(answers[1])])
    later = dataclasses.replace(BRIEFS[1], left=Budget(seconds=1.0), cards=())
    assert asyncio.run(replay.propose(later)) == answers[1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "step"}, "its kind was repair, now it is step"),
        ({"candidate": "k9"}, "its candidate was k22, now it is k9"),
        ({"parents": ()}, r"its parents was k2 \(\w{8}\), now it is none"),
        ({"task": dataclasses.replace(llm_briefs.TASK, precision="half")}, "its task was"),
        ({"expert": {"expert": "rows"}}, "its expert was none"),
    ],
)
def test_a_mismatch_says_what_differs(changes, said):
    asked, _ = record()
    answer = asyncio.run(ReplayProposer(asked.records).propose(dataclasses.replace(BRIEFS[2], **changes)))
    assert answer.candidate is None and "\n" not in answer.reason
    assert re.search(f"the recording's b22 differs: {said}", answer.reason)


def test_a_parent_with_another_source_is_a_mismatch():
    asked, _ = record()
    parent = BRIEFS[1].parents[0]
    other = dataclasses.replace(parent, candidate=dataclasses.replace(parent.candidate, source="other"))
    answer = asyncio.run(ReplayProposer(asked.records).propose(dataclasses.replace(BRIEFS[1], parents=(other,))))
    assert answer.candidate is None and "its parents was k1" in answer.reason


def test_an_unknown_brief_and_the_end_of_the_recording_are_said():
    asked, _ = record()
    answer = asyncio.run(ReplayProposer(asked.records).propose(llm_briefs.brief("step", id="b99")))
    assert answer.reason == "the recording has no answer to b99: it holds 5 answers"


def test_usage_may_be_charged_or_not():
    usage = Usage(100, 50, 0.5)
    made = Proposal("b21", Candidate("k21", "triton", "x = 1\n", "rms_norm"), usage=usage)
    events = [Asked(BRIEFS[1]), Proposed(made)]
    assert asyncio.run(ReplayProposer.of_events(events).propose(BRIEFS[1])).usage == usage
    assert asyncio.run(ReplayProposer.of_events(events, charge=False).propose(BRIEFS[1])).usage == Usage()


def test_a_file_that_is_no_recording_names_its_line(tmp_path):
    bad = tmp_path / "x.jsonl"
    asked, _ = record()
    asked.save(bad)
    bad.write_text(bad.read_text() + "{}\n")
    with pytest.raises(MisuseError, match=r"line 6 of .*x\.jsonl is no recorded proposal"):
        ReplayProposer.load(bad)
    with pytest.raises(MisuseError, match="can't be read"):
        ReplayProposer.load(tmp_path / "absent.jsonl")
