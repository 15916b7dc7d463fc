"""CUDA candidates before the judge of a GPU."""

from __future__ import annotations

import pytest
import torch
from cuda_cases import CASES, fault, judged

from workbench.build import nvrtc

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"), pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", CASES)
def test_it_gets_the_verdict_that_it_deserves(name):
    if "load_inline" in CASES[name].source and not nvrtc.has_nvcc():
        pytest.skip("no nvcc")
    found = judged(name)
    assert fault(name, found) == "", found.log


def test_in_full_mode_most_of_the_time_is_its_own():
    found = judged("right", mode="full")
    assert fault("right", found) == "" and (found.own_kernel_share or 0) > 0.9
