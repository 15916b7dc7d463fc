"""No test reads or adds to the experience of whoever runs it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_experience(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("WORKBENCH_EXPERIENCE", str(tmp_path_factory.mktemp("experience") / "experience.db"))
