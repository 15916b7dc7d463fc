"""Misuse of the command line is one line, with status 2."""

from __future__ import annotations

import pytest

from workbench.cli import main


def test_a_candidate_that_is_no_text(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "op.py").write_text("import torch\ndef f(x):\n    return x * 2\ndef get_inputs():\n    return [torch.ones(4)]\n")
    (tmp_path / "candidate.py").write_bytes(b"\xff\xfe\x00")
    assert main(["judge", str(tmp_path / "op.py"), str(tmp_path / "candidate.py")]) == 2
    assert capsys.readouterr().err.endswith("candidate.py is no text: give the path of a candidate, a Python module\n")


@pytest.mark.parametrize("days", ["-1", "nan"])
def test_clean_removes_nothing_by_a_slip(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "--older-than", days]) == 2
    assert capsys.readouterr().err == f"workbench: --older-than {days}: give a number of days, 0 for every run\n"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--steps", "0"], "--steps 0: give more than 0, or leave it out"),
        (["--steps", "-1"], "--steps -1: give more than 0, or leave it out"),
        (["--seconds", "nan"], "--seconds nan: give more than 0, or leave it out"),
    ],
)
def test_amounts_that_make_no_sense_start_nothing(options: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evolve", "op.py", *options]) == 2
    assert capsys.readouterr().err == f"workbench: {line}\n"


def test_a_gpu_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert main(["judge", "op.py", "candidate.py", "--device", "cuda"]) == 2
    assert capsys.readouterr().err.startswith("workbench: --device cuda: no GPU answers here")
