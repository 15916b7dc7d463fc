"""The magics in a shell of their own, on a stored run and on bad input. `test_live_run` runs them for real."""

from __future__ import annotations

import pytest
from conftest import stored_run

from workbench import store
from workbench.errors import NoSuchRunError
from workbench.notebook import api
from workbench.notebook.magics import TAKES_ID, VERBS


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
        ("--model gpt", "UsageError: --model: no language model can be asked yet"),
        ("--tokens 100", "UsageError: --tokens: no language model can be asked yet"),
        ("--proposer oracle", "MisuseError: no proposer 'oracle': there is experts"),
        ("--target cuda:1", "MisuseError: unknown target 'cuda:1'"),
    ],
)
def test_a_wrong_option_is_one_line_and_fails_the_cell(shell, line, said):
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


def test_what_the_op_raises_comes_through_as_it_is(shell, capsys):
    text = failure(shell, "%%evolve_kernel\nimport torch\ndef op(x):\n    raise LookupError('mine')\ny = op(torch.ones(4))")
    assert text == "LookupError: mine"
    shown = capsys.readouterr()
    assert "raise LookupError('mine')" in shown.out + shown.err
    assert "magics.py" not in shown.out + shown.err


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
        ("accept", "UsageError: the following arguments are required: ID"),
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
    assert "--target" in text
