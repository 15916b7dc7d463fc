"""The magics in a shell of their own, on a stored run and on bad input. `test_live_run` runs them for real."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import SOFTMAX, candidate_of, stored_run

from workbench import events, store
from workbench.brief import Proposal
from workbench.candidate import Verdict
from workbench.errors import MisuseError, NoSuchRunError
from workbench.notebook import api
from workbench.notebook.magics import TAKES_ID, VERBS

sys.path.append(str(Path(__file__).parents[1] / "unit" / "llm"))  # the scripted server lives there
from server import Say, Server, usage


def failure(shell, cell: str) -> str:
    """What a cell fails with, as one line."""
    result = shell.run_cell(cell)
    error = result.error_before_exec or result.error_in_exec
    assert error is not None, f"the cell did not fail: {cell}"
    text = f"{type(error).__name__}: {error}"
    assert "\n" not in text
    return text


@pytest.fixture
def opened(shell, tmp_path, softmax_task):
    kept = store.open_default(tmp_path)
    stored_run(kept, softmax_task)
    return api.open("softmax-1")


@pytest.fixture
def no_endpoint(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


OP = "import torch\ndef op(x):\n    return x + 1\ny = op(torch.ones(4))"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--stepz 3", "UsageError: unrecognized arguments: --stepz 3"),
        ("--steps x", "UsageError: argument --steps: invalid int value: 'x'"),
        ("--steps 0", "MisuseError: steps is 0: give at least 1"),
        ("--seconds -1", "MisuseError: seconds is -1.0: give more than 0"),
        ("--seconds nan", "MisuseError: seconds is nan: give more than 0"),
        ("--out 1x", "UsageError: --out 1x: not a name for a variable"),
        ("--inputs '[torch.ones(3)]'", "UsageError: --inputs [torch.ones(3)]: give the name of a variable or function"),
        ("--name 'x", "UsageError: --name 'x: No closing quotation"),
        ("--model gpt", "MisuseError: --model gpt: set OPENAI_API_KEY in the environment (or OPENAI_BASE_URL for a local server)"),
        ("--model ,", "MisuseError: --model: name a model"),
        ("--tokens 100", "MisuseError: --tokens 100: only a model uses tokens: name one with --model"),
        ("--model gpt --tokens 0", "MisuseError: --tokens 0: give more than 0"),
        ("--tokens many", "UsageError: argument --tokens: invalid int value: 'many'"),
        ("--money 1", "MisuseError: --money 1.0: only a model uses money"),
        ("--proposer llm", "MisuseError: --proposer llm: name a model"),
        ("--proposer experts --model gpt", "MisuseError: --model gpt: --proposer experts asks no model: add llm"),
        ("--proposer oracle", "MisuseError: no proposer 'oracle': there is experts, llm"),
        ("--target cuda:1", "MisuseError: unknown target 'cuda:1'"),
    ],
)
def test_a_wrong_option_is_one_line_and_fails_the_cell(shell, no_endpoint, line, said):
    assert failure(shell, f"%%evolve_kernel {line}\n{OP}").startswith(said)


def test_a_cell_without_a_call_is_one_line_with_the_mend(shell, capsys):
    assert failure(shell, "%%evolve_kernel\ndef op(x):\n    return x + 1\n").startswith("CaptureError: no call in the cell")
    out = capsys.readouterr()
    assert "Traceback" not in out.out + out.err


@pytest.mark.parametrize(
    ("cell", "said"),
    [("x = 1\ndef f(x:\n    return x", "line 3: '(' was never closed"), ("await f(x)", "line 2: 'await' outside function")],
)
def test_a_cell_that_is_not_python_is_one_line(shell, cell, said):
    assert failure(shell, f"%%evolve_kernel\n{cell}") == f"MisuseError: the cell is not Python: {said}"


def test_an_op_that_opens_a_file_is_refused_in_one_line(shell):
    """IPython's own `open` wraps a built-in, which has no source."""
    cell = "%%evolve_kernel\nimport torch\ndef f(x):\n    open('/dev/null').close()\n    return x * 2\nf(torch.ones(4))"
    assert failure(shell, cell).startswith("CaptureError: open was made by IPython")


def test_what_the_op_raises_is_one_line_that_names_the_place(shell, capsys):
    text = failure(shell, "%%evolve_kernel\nimport torch\ndef op(x):\n    raise LookupError('mine')\ny = op(torch.ones(4))")
    assert text.startswith("CaptureError: op raises LookupError") and "mine" in text and "line 4" in text
    assert text.endswith("mend the op or its inputs first")
    shown = capsys.readouterr()
    assert len((shown.out + shown.err).strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "UsageError: %evolve_kernel: say what to do: status, runs, step"),
        ("frob", "UsageError: %evolve_kernel: 'frob' is none of its verbs: status, runs, step"),
        ("status", "MisuseError: no run yet: put %%evolve_kernel on top of a cell"),
        ("step", "MisuseError: no run yet"),
        ("step x", "UsageError: %evolve_kernel step x: give a number of variants"),
        ("pause now", "UsageError: %evolve_kernel pause takes nothing more, but there is 'now'"),
        ("show", "UsageError: %evolve_kernel show: give the id of one variant"),
        ("diff", "UsageError: %evolve_kernel diff: give the id of a variant, or two"),
        ("hint", "UsageError: %evolve_kernel hint: say it in words"),
        ("accept", "UsageError: %evolve_kernel accept what? give an id such as k3 or best"),
        ("accept --replace", "UsageError: %evolve_kernel accept what? give an id such as k3 or best"),
        ("accept k1 --frob", "UsageError: %evolve_kernel accept: '--frob' is none of what it takes: one id, --replace, --to FILE"),
        ("accept k1 k2", "UsageError: %evolve_kernel accept: 'k2' is none of what it takes: one id"),
        ("accept 'k1", "UsageError: %evolve_kernel accept 'k1: No closing quotation"),
        ("accept k1 --to", "UsageError: argument --to: expected one argument"),
        ("accept k1 --replace --to x.py", "UsageError: %evolve_kernel accept: --replace or --to FILE, not both"),
        ("open", "NoSuchRunError: "),
    ],
)
def test_a_wrong_verb_is_one_line(shell, line, said):
    assert failure(shell, f"%evolve_kernel {line}").startswith(said)


def test_looking_at_a_stored_run(opened, shell):
    assert "k1, right, 12.3 µs modelled" in repr(shell.run_line_magic("evolve_kernel", "status"))
    assert repr(shell.run_line_magic("evolve_kernel", "show best")).startswith("k1.1: right")
    assert repr(shell.run_line_magic("evolve_kernel", "show k2.1")).startswith("k2.1: wrong")
    assert repr(shell.run_line_magic("evolve_kernel", "diff k3 k2")).startswith("k2.1 → k3.1")
    assert "softmax-1" in repr(shell.run_line_magic("evolve_kernel", "runs"))
    assert failure(shell, "%evolve_kernel show k9").startswith("NoSuchCandidateError: softmax-1 has no variant 'k9': it has k1, k2, k3")


def test_open_finds_the_latest_run_and_names_what_exists(shell, tmp_path, softmax_task):
    with pytest.raises(NoSuchRunError, match="holds no runs yet"):
        api.open()
    kept = store.open_default(tmp_path)
    stored_run(kept, softmax_task, run="softmax-old")
    stored_run(kept, softmax_task, run="softmax-new")
    assert api.open("softmax-o").id == "softmax-old"
    assert api.open() is api.open(kept.runs()[0].id)
    with pytest.raises(NoSuchRunError, match="softmax-old") as caught:
        api.open("gelu")
    assert "\n" not in str(caught.value)


def test_a_run_shows_itself_as_static_output(opened, shell, capsys):
    shell.user_ns["run"] = opened
    shell.run_cell("run")
    assert 'Open it again: workbench.open("softmax-1")' in capsys.readouterr().out


def completions(shell, text: str) -> list[str]:
    """What the last word of `text` may become."""
    from IPython.core.completer import provisionalcompleter

    end = len(text.split("\n")[0])
    with provisionalcompleter():
        found = list(shell.Completer.completions(text, end))
    return [(text[: one.start] + one.text).split(" ")[-1] for one in found]


def test_completion_knows_options_verbs_variants_and_runs(opened, shell):
    assert {"--steps", "--seconds"} <= set(completions(shell, "%%evolve_kernel --s"))
    assert "--auto" not in completions(shell, "%%evolve_kernel --auto --")
    assert completions(shell, "%%evolve_kernel --target cuda:8") == ["cuda:80"]
    assert completions(shell, "%%evolve_kernel --mo") == ["--money", "--model"]
    assert completions(shell, "%%evolve_kernel --proposer ") == ["experts", "llm", "experts,llm"]
    assert completions(shell, "%%evolve_kernel --proposer experts,") == ["experts,llm"]
    assert set(completions(shell, "%evolve_kernel s")) == {"status", "step", "stop", "show"}
    for verb in TAKES_ID:
        assert completions(shell, f"%evolve_kernel {verb} k") == ["k3", "k2", "k1"]
    assert completions(shell, "%evolve_kernel diff k1 b") == ["best"]
    assert completions(shell, "%evolve_kernel accept k1 --r") == ["--replace"]
    assert completions(shell, "%evolve_kernel open soft") == ["softmax-1"]
    assert "k1" not in completions(shell, "%evolve_kernel show k1 k")
    assert "status" not in completions(shell, "evolve_kernel s")


def test_the_cell_magic_completes_above_a_cell(opened, shell):
    assert completions(shell, "%%evolve_kernel --sec\nx = 1") == ["--seconds"]


def test_loading_twice_and_unloading(shell):
    before = len(shell.Completer.custom_matchers)
    assert shell.extension_manager.load_extension("workbench") == "already loaded"
    from workbench import load_ipython_extension, unload_ipython_extension

    load_ipython_extension(shell)
    assert len(shell.Completer.custom_matchers) == before
    try:
        unload_ipython_extension(shell)
        unload_ipython_extension(shell)
        assert len(shell.Completer.custom_matchers) == before - 1
        assert "evolve_kernel" not in shell.magics_manager.magics["cell"]
    finally:
        load_ipython_extension(shell)


def test_help_names_every_verb_and_option(shell):
    text = shell.magics_manager.magics["line"]["evolve_kernel"].__doc__
    assert all(verb in text for verb in VERBS)
    assert all(option in text for option in ("--target", "--model", "--tokens", "--money", "--proposer"))


@pytest.mark.parametrize(("end", "said"), [(True, "the run has ended: resume it with more steps, then accept it"), (False, "wait for it")])
def test_a_variant_that_was_not_judged_is_not_accepted_and_the_line_says_what_to_do(shell, tmp_path, softmax_task, end, said):
    kept = store.open_default(tmp_path)
    stored_run(kept, softmax_task, end=False)
    unjudged = events.Proposed(Proposal("b4", candidate_of(SOFTMAX, "softmax", "k4")))
    kept.extend("softmax-1", (unjudged, *([events.Ended("stopped by the person", "k1")] if end else [])))
    api.open("softmax-1")
    text = failure(shell, "%evolve_kernel accept k4")
    assert text.startswith("MisuseError: k4 was ") and said in text


DOUBLE = """\
Plan: one block per program.
Cites: none
```python
import torch
import triton
import triton.language as tl


@triton.jit
def _double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


def double(x):
    y = torch.empty_like(x)
    _double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y
```
"""


def test_a_model_writes_for_a_cell_and_its_caps_are_the_runs(shell, no_endpoint, monkeypatch):
    """A real client, a real judge; the endpoint is the scripted server on loopback, which needs no key."""
    with Server(Say(DOUBLE, usage(1000, 200))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        line = "%%evolve_kernel --model m --proposer llm --tokens 50000 --steps 1 --wait --out run"
        shell.run_cell(f"{line}\nimport torch\ndef double(x):\n    return x * 2\ny = double(torch.randn(64, 100))").raise_error()
        run = shell.user_ns["run"]
        run.close()
    started = run.events()[0].event
    assert started.proposers == ("llm:m",)
    assert (started.budget.tokens, started.budget.money, started.budget.evaluations) == (50000, None, 1)
    assert server.requests[0]["model"] == "m"
    assert run.best.candidate.proposer == "llm:m"
    assert run.best.evaluation.verdict is Verdict.RIGHT
    assert run.header()["spent"]["tokens"] == 1200 * len(server.requests)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"model": "m"}, "--model m: set OPENAI_API_KEY"),
        ({"proposer": "llm"}, "--proposer llm: name a model"),
        ({"money": 1.0}, "--money 1.0: only a model uses money"),
        ({"lanes": 0}, "lanes is 0: give at least 1"),
    ],
)
def test_evolve_refuses_what_does_not_go_together(shell, no_endpoint, arguments, said):
    import torch

    with pytest.raises(MisuseError) as caught:
        api.evolve(torch.neg, torch.ones(4), **arguments)
    assert str(caught.value).startswith(said) and "\n" not in str(caught.value)
