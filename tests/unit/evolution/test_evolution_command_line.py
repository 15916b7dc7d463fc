"""evolve with a model and prompt, as a person types them; the judge is the scripted formula."""

from __future__ import annotations

import json

import pytest
from model_world import KEY, writes
from scripted_fleet import ScriptedFleet
from server import Refuse, Server

from workbench.cli import main

REFERENCE = """
import torch

def double(x):
    return x * 2

def get_inputs():
    return [torch.rand(1024)]
"""


@pytest.fixture
def op(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr("workbench.fleet.Local", lambda task, **_: ScriptedFleet())
    prices = tmp_path / "prices.toml"
    prices.write_text("[models]\nm = { input = 2.0, output = 8.0 }\n")
    monkeypatch.setenv("WORKBENCH_PRICES", str(prices))
    path = tmp_path / "double.py"
    path.write_text(REFERENCE)
    return str(path)


def test_evolve_with_a_model_tells_what_it_spent_and_prompt_prints_what_was_asked(op, monkeypatch, capsys):
    with Server(writes) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        status = main(["evolve", op, "--model", "m", "--proposer", "llm", "--steps", "3", "--tokens", "90000", "--money", "0.5", "--json"])
    out, progress = capsys.readouterr()
    result = json.loads(out)
    assert status == 0 and result["reason"] == "budget: 3 of 3 evaluations are used" and result["proposers"] == ["llm:m"]
    (bill,) = result["models"]
    assert result["spent"]["tokens"] == bill["tokens_in"] + bill["tokens_out"] > 3000
    assert result["spent"]["money"] == pytest.approx(bill["money"]) and bill["calls"] == len(server.requests) >= 3
    assert (result["budget"]["tokens"], result["budget"]["money"]) == (90000, 0.5)
    assert f"m: {bill['calls']} calls, {bill['tokens_in']:,} + {bill['tokens_out']:,} tokens, {bill['money']:.4f} USD" in progress

    assert main(["prompt", "last", "b1"]) == 0
    out, said = capsys.readouterr()
    # Two calls may be on the wire at once, and arrive in either order.
    assert any(all(message["content"] in out for message in request["messages"]) for request in server.requests)
    assert said.startswith("b1, seed of k1: ") and " tokens in, 400 out; seed to m, attempt 1" in said
    assert main(["prompt", result["run"], "k1", "--json", "--replies"]) == 0
    (call,) = json.loads(capsys.readouterr().out)["calls"]
    assert call["tokens"] > 1000 and "```python" in call["reply"]
    assert main(["prompt", "last", "b99"]) == 2
    assert "has no step 'b99': the last one is b" in capsys.readouterr().err


def test_a_step_of_the_experts_shows_the_prompt_that_a_model_would_get(op, capsys):
    assert main(["evolve", op, "--steps", "2", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["models"] == []
    assert main(["prompt", "last", "b1"]) == 0
    out, said = capsys.readouterr()
    assert "not sent, no model was asked" in said and "# Task: double" in out and "Expert `" in out


def test_a_refused_key_ends_the_run_in_words_and_the_key_is_not_among_them(op, monkeypatch, capsys):
    with Server(Refuse(401, f"bad key {KEY}")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert main(["evolve", op, "--model", "m", "--proposer", "llm", "--json"]) == 1
    out, said = capsys.readouterr()
    assert json.loads(out)["reason"] == "the endpoint refused the key (HTTP 401): check OPENAI_API_KEY"
    assert KEY not in out + said and "ended: the endpoint refused the key" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--model", "m"],
            "--model m: set OPENAI_API_KEY in the environment (or OPENAI_BASE_URL for a local server), or leave --model out",
        ),
        (["--proposer", "llm"], "--proposer llm: name a model, such as --model gpt-5-mini"),
        (["--money", "1"], "--money 1.0: only a model uses money: name one with --model, or leave it out"),
    ],
)
def test_misuse_is_one_line_and_status_2(op, monkeypatch, capsys, arguments, said):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert main(["evolve", op, *arguments]) == 2
    assert capsys.readouterr().err == f"workbench: {said}\n"


def test_progress_stays_within_the_columns_and_a_mechanism_can_be_turned_off(op, monkeypatch, capsys):
    with Server(writes) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert main(["evolve", op, "--model", "m", "--proposer", "llm", "--steps", "6", "--no-store", "--without", "islands, repair"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if line.startswith("  k")]) == 6
    assert all(len(line) <= 110 for line in lines if line.startswith("  k"))
    assert main(["evolve", op, "--without", "magic"]) == 2
    assert "there is no mechanism 'magic': there is seeds, islands" in capsys.readouterr().err


def test_a_long_reason_is_cut_and_is_one_line():
    from workbench.commands.evolve import COLUMNS, shortened

    assert shortened("short") == "short"
    cut = shortened("word " * 60 + "\nmore")
    assert len(cut) <= COLUMNS and cut.endswith("…") and "\n" not in cut
