"""Hardware counters of kernels whose traffic is known, on a GPU whose counters may be read."""

from __future__ import annotations

import counters_smoke
import pytest
import torch

from workbench.judge.inspection import counters, counting, ncu

pytestmark = [
    pytest.mark.gpu, pytest.mark.timeout(600), pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.skipif(bool(ncu.why_not()), reason=ncu.why_not()),
]  # fmt: skip


@pytest.mark.parametrize("name", counters_smoke.CASES)
def test_the_bytes_that_move_are_counted(name):
    assert counters_smoke.fault(name, counters_smoke.counted(name)) == ""


def test_what_it_runs_leaves_the_clocks_alone():
    tool = ncu.find()
    assert tool is not None
    command = counting.wrapper(tool, counters.names(torch.cuda.get_device_capability()[0]))
    assert command[command.index("--clock-control") + 1] == "none"
