"""One way to start a scripted run, closed at the end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scripted_fleet import TASK, ScriptedFleet, ScriptedProposer, diagnose

from workbench import evolution
from workbench.search import Mechanisms

sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))  # the scripted server lives there


@pytest.fixture
def begin():
    """`begin(fleet=…, proposers=…, **start's arguments)` gives (run, fleet)."""
    runs = []

    def make(fleet=None, proposers=None, task=TASK, **more):
        fleet = fleet or ScriptedFleet()
        more.setdefault("mechanisms", Mechanisms(islands=True, cards=True))  # whatever the defaults leave off
        run = evolution.start(
            task, fleet=lambda: fleet, proposers=(ScriptedProposer(),) if proposers is None else proposers, diagnose=diagnose, **more
        )
        runs.append(run)
        return run, fleet

    yield make
    for run in runs:
        run.close()
