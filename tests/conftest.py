"""No test reads or adds to the experience of whoever runs it, and the browser comes last."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items):
    # Playwright keeps an event loop running in the main thread, where no test that runs a loop of its own could follow.
    items.sort(key=lambda item: "browser" in item.path.parts)


@pytest.fixture(autouse=True)
def _own_experience(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("WORKBENCH_EXPERIENCE", str(tmp_path_factory.mktemp("experience") / "experience.db"))
