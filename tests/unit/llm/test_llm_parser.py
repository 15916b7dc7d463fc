"""The reader of answers, on replies of the kinds that models really send (``replies/``); each file's first line says what is expected."""

import ast
import json
import re
from pathlib import Path

import llm_briefs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.proposers.llm import Wanted, parse
from workbench.proposers.llm.diffs import DiffError, apply_blocks, read_blocks

REPLIES = sorted(Path(__file__).with_name("replies").glob("*.txt"))
CITABLE = ("rms_norm", "rms_norm_looped", "c-rows", "c-evict", "c-atomic")


def wanted(parent=True):
    return Wanted("rms_norm", ("x", "weight", "eps"), llm_briefs.SOURCE if parent else "", CITABLE)


@pytest.mark.parametrize("path", REPLIES, ids=lambda path: path.stem)
def test_reply(path):
    header, _, text = path.read_text(encoding="utf-8").partition("\n")
    expected = json.loads(header)
    if expected.get("crlf"):
        text = text.replace("\n", "\r\n")
    reply = parse(text, wanted(expected.get("parent", True)), finish=expected.get("finish", "stop"))
    assert "\n" not in reply.problem and len(reply.problem) < 300
    if expected["ok"]:
        assert reply.problem == ""
        ast.parse(reply.source)
        assert "\r" not in reply.source and reply.source.endswith("\n")
    else:
        assert reply.source == "" and re.search(expected["problem"], reply.problem), reply.problem
    assert expected.get("contains", "") in reply.source
    assert "excludes" not in expected or expected["excludes"] not in reply.source
    assert re.search(expected.get("plan", ""), reply.plan), reply.plan
    assert reply.cites == tuple(expected.get("cites", ()))
    assert reply.backend == expected.get("backend", "triton")
    if "mended" in expected:
        assert list(reply.mended) == expected["mended"]


def test_the_corpus_is_large_and_has_both_sorts():
    good = [json.loads(path.read_text(encoding="utf-8").split("\n")[0])["ok"] for path in REPLIES]
    assert good.count(True) >= 20 and good.count(False) >= 15


def test_a_model_has_to_be_a_class_named_modelnew():
    body = "import torch\nimport triton\n\n\n@triton.jit\ndef k(x):\n    pass\n\n\nclass {}(torch.nn.Module):\n    pass\n"
    asked = Wanted("ModelNew")
    assert parse(f"```python\n{body.format('ModelNew')}```", asked).problem == ""
    assert parse(f"```python\n{body.format('FastModel')}```", asked).mended == ("named FastModel ModelNew",)
    assert "must define 'ModelNew'" in parse("```python\nimport triton\n@triton.jit\ndef k(x):\n    pass\n```", asked).problem


def test_another_threads_parsing_does_not_spoil_ours(monkeypatch):
    parse_once, failures = ast.parse, [SystemError("AST constructor recursion depth mismatch (before=126, after=145)")]

    def flaky(*args, **kwargs):
        if failures:
            raise failures.pop()
        return parse_once(*args, **kwargs)

    monkeypatch.setattr(ast, "parse", flaky)
    assert parse(f"```python\n{llm_briefs.SOURCE}```", wanted()).problem == "" and not failures


@settings(max_examples=200, deadline=None)
@given(cut=st.integers(0, 10_000), pick=st.integers(0, len(REPLIES) - 1), finish=st.sampled_from(["stop", "length", ""]))
def test_any_part_of_a_reply_is_read_or_named_and_never_raises(cut, pick, finish):
    text = REPLIES[pick].read_text(encoding="utf-8").partition("\n")[2]
    reply = parse(text[: cut % (len(text) + 1)], wanted(), finish=finish)
    assert bool(reply.source) != bool(reply.problem)
    if reply.source:
        ast.parse(reply.source)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("`~\n<>=SEARCHREPLACE plan:def x():'\"{}\\\x00\ud800\t"), max_size=300))
def test_any_text_is_survived(text):
    reply = parse(text, wanted())
    assert bool(reply.source) != bool(reply.problem)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_diff_made_from_two_versions_gives_the_second(data):
    lines = [f"line {number}" for number in range(12)]
    start = data.draw(st.integers(0, 11))
    end = data.draw(st.integers(start + 1, 12))
    new = data.draw(st.lists(st.text("abc {}", min_size=1, max_size=8), max_size=4))
    block = "\n".join(["<<<<<<< SEARCH", *lines[start:end], "=======", *new, ">>>>>>> REPLACE"])
    assert apply_blocks("\n".join(lines) + "\n", read_blocks(block)) == "\n".join([*lines[:start], *new, *lines[end:]]) + "\n"


def test_blocks_apply_in_order_and_indentation_follows_the_parent():
    source = "def f():\n    a = 1\n    b = 2\n    return a\n"
    blocks = read_blocks(
        "<<<<<<< SEARCH\na = 1\nb = 2\n=======\na = 3\nif a:\n    b = 4\n>>>>>>> REPLACE\n"
        "<<<<<<< SEARCH\n    if a:\n        b = 4\n=======\n    b = 5\n>>>>>>> REPLACE"
    )
    assert apply_blocks(source, blocks) == "def f():\n    a = 3\n    b = 5\n    return a\n"


def test_a_block_with_two_homes_or_none_is_refused():
    with pytest.raises(DiffError, match="matches in 2 places"):
        apply_blocks("a\nb\na\n", read_blocks("<<<<<<< SEARCH\na\n=======\nc\n>>>>>>> REPLACE"))
    with pytest.raises(DiffError, match="empty SEARCH"):
        apply_blocks("a\n", read_blocks("<<<<<<< SEARCH\n\n=======\nc\n>>>>>>> REPLACE"))
    with pytest.raises(DiffError, match="do not stand together"):
        apply_blocks("a\nb\nc\n", read_blocks("<<<<<<< SEARCH\na\nc\n=======\nd\n>>>>>>> REPLACE"))
