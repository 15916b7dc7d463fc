"""The second lesson runs from top to bottom, and shows what its words say."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

LESSON = Path(__file__).resolve().parents[2] / "notebooks" / "02_ask_and_tell.ipynb"


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each cell printed, by its id."""
    notebook = nbformat.read(LESSON, as_version=4)
    folder = tmp_path_factory.mktemp("lesson")
    NotebookClient(
        notebook, timeout=280, kernel_name="python3", resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    ).execute()  # fmt: skip
    assert list(folder.iterdir()) == [], "the lesson leaves nothing behind"
    return {
        cell.id: "".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells if cell.cell_type == "code"
    }  # fmt: skip


@pytest.mark.timeout(400)
def test_the_search_asks_somebody_proposes_and_the_judge_speaks(printed):
    assert re.search(r"kind +seed", printed["ask"]) and "be right; speed comes later" in printed["ask"]
    assert printed["propose"].startswith("k1 – Start from the expert")
    assert re.search(r"^right \d+\.\d µs (modelled|measured)", printed["tell"]) and "BestChanged" in printed["tell"]
    assert printed["order-error"] == "tell: brief b1 was told before\n"
    assert len(printed["loop"].splitlines()) == 4


def test_a_wrong_kernel_has_a_witness_and_is_repaired(printed):
    assert "asked to repair:" in printed["mine"] and "wrong" in printed["mine"]
    assert re.search(r"repair +k\d+\.\d+ +right", printed["mine"])
    assert "Witness(" in printed["witness"]


def test_a_ban_is_enforced_where_it_can_be_and_said_where_not(printed):
    assert "is refused before it is judged" in printed["refuse"] and "not an idea that can be recognised" in printed["refuse"]
    assert "None – banned (no atomics): line" in printed["refuse"]


def test_it_ends_with_a_reason_and_a_right_kernel(printed):
    assert "the search ends: " in printed["end"] and "0 tokens" in printed["end"]
    assert printed["switches"].startswith("['everything'] in place of ['fusion and launches'")
    assert re.fullmatch(r"best k\d+: right, \d+\.\d µs (modelled|measured)\n", printed["last-line"])
