"""``%%profile_ops`` in a real shell, and its button."""

from __future__ import annotations

import time

import pytest
from IPython.core.error import UsageError

from workbench.errors import MisuseError

CELL = "import torch\nx = torch.randn(64, 32)\ndef softmax(x):\n    e = (x - x.amax(-1, keepdim=True)).exp()\n    return e / e.sum(-1, keepdim=True)\ny = softmax(x)\ny.sum()\n"  # noqa: E501


@pytest.fixture
def shell():
    from IPython.testing.globalipapp import get_ipython, start_ipython

    found = start_ipython() or get_ipython()
    found.run_line_magic("load_ext", "workbench")
    yield found
    found.reset(new_session=False)


def test_a_cell_runs_once_in_the_notebooks_namespace_and_shows_its_ops(shell, capsys):
    shell.run_cell_magic("profile_ops", "--out prof --target cuda:80", CELL)
    profile = shell.user_ns["prof"]
    assert {region.name for region in profile.regions} == {"softmax", "y.sum()"}
    assert profile.target.name == "cuda:80"
    assert profile[1].where.startswith("line ")
    assert shell.user_ns["y"].shape == (64, 32)
    printed = capsys.readouterr().out
    assert "softmax" in printed
    assert "tensor(64." in printed, "the cell's own value is shown"


def test_misuse_is_one_line(shell):
    with pytest.raises(UsageError, match="--out 1x: not a name"):
        shell.run_cell_magic("profile_ops", "--out 1x", "1")
    with pytest.raises(MisuseError, match="the cell is not Python: line 2"):
        shell.run_cell_magic("profile_ops", "", "def (\n")
    with pytest.raises(MisuseError, match="unknown target 'cuda:1'"):
        shell.run_cell_magic("profile_ops", "--target cuda:1", "import torch\ntorch.ones(2) + 1\n")


def test_the_button_starts_a_search_with_the_inputs_that_the_op_had(tmp_path, monkeypatch):
    from workbench.notebook.profile_ops import panel, profile_code
    from workbench.notebook.session import SESSION

    monkeypatch.setenv("WORKBENCH_STORE", str(tmp_path / "store"))
    profile = profile_code(CELL, {"__name__": "__main__"})
    box = panel(profile)
    button = next(one for one in box.children[0].children if "softmax" in one.description)
    button.click()
    run = SESSION.current
    try:
        assert run.task.name == "softmax"
        assert run.id in box.children[1].value
        assert button.disabled
        board = box.children[2]
        assert repr(board) == f"Board of softmax, run {run.id}"
        # What the browser did with an accepted cell goes on the run's record.
        board._handle_custom_msg({"type": "applied", "request": "q", "id": "k1", "ok": True, "place": "below", "cell": "c7"}, None)
        for _ in range(100):
            if any("k1 stands in a new cell (id c7" in note["message"] for note in run.header()["notes"]):
                break
            time.sleep(0.05)
        else:
            pytest.fail("the run does not know what became of the accepted kernel")
    finally:
        run.close()


def test_a_search_that_can_not_start_says_why_beside_the_button(tmp_path, monkeypatch):
    from workbench.notebook.profile_ops import panel, profile_code

    source = "import torch\ndef outer(k):\n    def inner(x):\n        return x * k\n    return inner(torch.ones(4))\ny = outer(2)\n"
    box = panel(profile_code(source, {}))
    button = box.children[0].children[0]
    button.click()
    assert "define it at the top of the cell" in box.children[1].value
    assert not button.disabled
