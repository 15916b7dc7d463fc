from __future__ import annotations

import sys
from pathlib import Path

import pytest

BROWSER = Path(__file__).parents[2] / "browser"
sys.path.insert(0, str(BROWSER))  # the played-back run is shared with the browser tests


@pytest.fixture
def recorded():
    """A run with nothing played yet but its start."""
    from recorded_run import RecordedRun
    from sample_run import run_events

    return RecordedRun(run_events(30))


@pytest.fixture
def called():
    """A run that has been played, with calls to a model."""
    from recorded_run import RecordedRun
    from sample_calls import sample_calls
    from sample_run import run_events

    stamped = run_events(30)
    return RecordedRun(stamped, calls=sample_calls(stamped)).play()
