"""The accepted cell of a CUDA candidate: plain code with PyTorch alone, and the kernel in it builds under its new names."""

from __future__ import annotations

import re

import pytest
import torch
from conftest import candidate_of, evaluation_of

from workbench.candidate import Candidate
from workbench.capture import capture_call
from workbench.judge.recording.recorder import record
from workbench.knowledge.cuda_idiom import EXAMPLE
from workbench.notebook import cell
from workbench.notebook.verify import as_candidate, take_apart
from workbench.target import TARGETS

CELL = "def add_scaled(x, y):\n    return x + 0.5 * y\n\nz = add_scaled(x, y)"


def add_scaled(x, y):
    return x + 0.5 * y


def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(64, 512, dtype=torch.bfloat16), torch.randn(64, 512, dtype=torch.bfloat16)


@pytest.fixture(scope="module")
def accepted():
    task = capture_call(add_scaled, arguments()).task
    candidate = Candidate(candidate_of(EXAMPLE, "add_scaled").id, "cuda", EXAMPLE, "add_scaled")
    return task, cell.write_cell(task, candidate, {"BLOCK": 512}, evaluation_of(candidate), "run-1", cell_source=CELL)


def test_it_is_plain_code_with_the_chosen_numbers(accepted):
    _, text = accepted
    suffix = re.search(r"^BLOCK_([0-9a-f]{6}) = 512$", text, re.MULTILINE)[1]
    assert "TUNE" not in text and "import workbench" not in text and "import triton" not in text
    assert f'nvcc_options=[f"-DBLOCK={{BLOCK_{suffix}}}"]' in text and f"_compile_kernel(CUDA_{suffix}, name" in text
    assert "int i = blockIdx.x * BLOCK + threadIdx.x;" in text  # the CUDA text is as it was


def test_without_a_gpu_it_says_so_and_computes_the_reference(accepted, bare):
    seen = bare(
        accepted[1],
        """
        x, y = torch.randn(8, 64, dtype=torch.bfloat16), torch.randn(8, 64, dtype=torch.bfloat16)
        found["same"] = torch.equal(cell.add_scaled(x, y), x + 0.5 * y)
        import sys
        found["triton"] = "triton" in sys.modules
        """,
        interpret=False,
    )
    assert seen.same and seen.output.count("fallback: no GPU") == 1


def test_its_kernel_builds_under_the_names_that_it_has_in_the_cell(accepted, tmp_path):
    task, text = accepted
    entry = re.search(r"^def (add_scaled_[0-9a-f]{6})\(", text, re.MULTILINE)[1]
    found = record(text, entry, {}, task.inputs, TARGETS["cuda:90"], directory=tmp_path)
    assert found.error is None
    assert [(launch.kernel, launch.options["threads"]) for launch in found.launches] == [("add_scaled", (512, 1, 1))]


def test_it_can_be_judged_again(accepted, tmp_path):
    task, text = accepted
    candidate = as_candidate(task, take_apart(text))
    assert candidate.backend == "cuda" and candidate.entry == "add_scaled"
    found = record(candidate.source, candidate.entry, {}, task.inputs, TARGETS["cuda:80"], directory=tmp_path)
    assert found.error is None and len(found.launches) == 1
