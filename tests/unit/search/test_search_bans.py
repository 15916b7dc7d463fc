"""Bans: a candidate that plainly uses what is banned is turned down before it is judged, and the reason says where."""

from __future__ import annotations

import pytest
from search_world import TASK, describe, drive, judge, propose, source_of

from workbench.brief import Budget, Proposal
from workbench.candidate import Candidate
from workbench.events import Noted
from workbench.search import Mechanisms, Search
from workbench.search.bans import RULES, rule_of, violation

ATOMIC = """
import triton
import triton.language as tl

@triton.jit
def kernel(x, y):
    tl.atomic_add(y, tl.load(x))  # tl.dot is only spoken of
"""
USES = {
    "atomics": "tl.atomic_max(p, v)", "tensor cores": "tl.dot(a, b)", "tf32": "tl.dot(a, b, allow_tf32=True)",
    "half precision": "x.to(tl.float16)", "bfloat16": "x.to(torch.bfloat16)",
    "inline assembly": "tl.inline_asm_elementwise('', '', [], 1, 1, 1)",
    "libdevice": "libdevice.exp(x)", "autotune": "triton.autotune([], [])", "library calls": "torch.matmul(a, b)",
    "block pointers": "tl.make_block_ptr(a)", "tensor descriptors": "tl.make_tensor_descriptor(a)",
    "cache hints": "tl.load(p, eviction_policy='evict_first')", "cuda graphs": "torch.cuda.CUDAGraph()",
    "torch.compile": "torch.compile(f)",
    "scans": "tl.cumsum(x, 0)", "sorting": "tl.sort(x)",
}  # fmt: skip


def make(**more) -> Search:
    return Search(TASK, **({"experts": ("a",), "describe": describe, "budget": Budget(evaluations=60)} | more))


@pytest.mark.parametrize("name", RULES)
def test_each_known_idea_is_recognised_in_words_and_in_code(name):
    assert rule_of(f"no {name}")[0] == rule_of(f"don't use any {name}, please")[0] == name
    assert violation(f"y = {USES[name]}\n", "triton", [name]).startswith(f"banned ({name}): line 1 uses {name}: ")
    others = [other for other in RULES if other != name]
    clean = "import torch\n# " + USES[name] + "\nnote = " + repr(USES[name]) + "\nx = torch.empty(3)\n"
    assert violation(clean, "triton", [name, *others]) == ""  # in a comment or a text it is not used


def test_the_reason_names_the_ban_and_the_line():
    assert violation(ATOMIC, "triton", ["no atomics"]) == "banned (no atomics): line 7 uses atomics: tl.atomic_add"
    assert violation(ATOMIC, "triton", ["no tensor cores"]) == ""
    assert violation("a = b @ c\n", "triton", ["library calls"]) == "banned (library calls): line 1 uses library calls: @"
    assert violation("from triton.language import atomic_add\n", "triton", ["atomics"]).startswith("banned")
    assert violation("this is no Python (", "triton", ["atomics"]) == ""


def test_cuda_text_is_looked_into_and_its_comments_are_not():
    module = 'CUDA = r"""\n__global__ void f(float *x) { %s }\n"""\nKERNELS = ("f",)\n'
    assert "uses atomics: atomicAdd(" in violation(module % "atomicAdd(x, 1.f);", "cuda", ["no atomics"])
    assert violation(module % "// atomicAdd(x, 1.f);", "cuda", ["no atomics"]) == ""


def test_a_banned_candidate_is_not_judged_and_costs_no_evaluation():
    search = make()
    (event,) = search.ban("no atomics")
    assert isinstance(event, Noted) and "tl.atomic_… is refused before it is judged" in event.message
    brief = search.ask()
    answer = search.receive(Proposal(brief.id, Candidate("?", "triton", ATOMIC, "double")))
    assert (answer.candidate, answer.reason) == (None, "banned (no atomics): line 7 uses atomics: tl.atomic_add")
    assert search.tell(answer) == () and search.spent.evaluations == 0
    brief = search.ask()
    assert search.receive(propose(brief)).candidate is not None


def test_an_idea_that_is_not_known_stays_text_and_says_so():
    search = make()
    (event,) = search.ban("no clever tricks")
    assert "not an idea that can be recognised in code" in event.message
    assert search.ask().bans == ("no clever tricks",)


def test_the_persons_own_variant_is_judged_whatever_they_banned():
    search = make()
    search.ban("no atomics")
    search.submit(source_of(7) + ATOMIC)
    log = drive(search, steps=1)
    assert log[0][2] is not None and log[0][2].candidate == log[0][1].candidate.id


def test_turned_off_a_ban_is_words_alone():
    search = make(mechanisms=Mechanisms().without("bans"))
    assert search.ban("no atomics") == ()
    brief = search.ask()
    answer = search.receive(Proposal(brief.id, Candidate("?", "triton", source_of(1) + ATOMIC, "double")))
    assert answer.candidate is not None and brief.bans == ("no atomics",)
    search.tell(answer, judge(answer.candidate))


def test_points_of_what_was_judged_before_the_ban_are_still_tuned():
    search = make(mechanisms=Mechanisms(tuner="near"))
    drive(search, lambda brief: propose(brief, tune="TUNE = {'BLOCK': [64, 128, 256]}\nuses = tl.atomic_add"), steps=4)
    search.ban("no atomics")
    assert any(
        brief.kind == "tune" and proposal.candidate for brief, proposal, *_ in drive(search, lambda brief: propose(brief, gain=0), steps=16)
    )
