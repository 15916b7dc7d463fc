"""An accepted cell on the GPU that it was made for: the kernel runs, and everything around it still holds."""

from __future__ import annotations

import pytest
import torch
from conftest import CELL, SOFTMAX, candidate_of, evaluation_of

from workbench.capture import capture_call
from workbench.notebook import cell

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]


def test_the_kernel_runs_where_it_fits_and_the_reference_elsewhere(run_bare):
    def softmax(x, dim=-1):
        return torch.softmax(x, dim)

    task = capture_call(softmax, (torch.randn(64, 100, device="cuda"),)).task
    candidate = candidate_of(SOFTMAX, "softmax")
    text = cell.write_cell(task, candidate, {"WARPS": 4}, evaluation_of(candidate), "softmax-1", cell_source=CELL)
    seen = run_bare(
        text,
        """
        suffix = next(name for name in vars(cell) if name.startswith("fits_")).removeprefix("fits_")
        launched = []
        kernel = getattr(cell, f"rows_{suffix}")
        run = kernel.run
        kernel.run = lambda *args, **kwargs: (launched.append(1), run(*args, **kwargs))[1]

        def launches(call):
            launched.clear()
            call()
            return len(launched)

        x = torch.randn(64, 100, device="cuda")
        expected = torch.softmax(x, -1)
        found["kernel"] = launches(lambda: torch.testing.assert_close(cell.softmax(x), expected))
        found["other_shape"] = launches(lambda: cell.softmax(torch.randn(7, 33, device="cuda")))
        found["half"] = launches(lambda: cell.softmax(x.half()))
        found["transposed"] = launches(lambda: cell.softmax(x.t()))
        found["cpu"] = launches(lambda: cell.softmax(x.cpu()))
        with torch.autocast("cuda"):
            found["autocast"] = launches(lambda: cell.softmax(x))
        leaf = x.clone().requires_grad_()
        found["training"] = launches(lambda: cell.softmax(leaf).square().sum().backward())
        reference = x.clone().requires_grad_()
        torch.softmax(reference, -1).square().sum().backward()
        torch.testing.assert_close(leaf.grad, reference.grad)
        compiled = torch.compile(cell.softmax, fullgraph=True)
        torch.testing.assert_close(compiled(x), expected)
        found["compiled"] = launches(lambda: torch.testing.assert_close(compiled(x), expected))
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            y = cell.softmax(x)
        stream.synchronize()
        torch.testing.assert_close(y, expected)
        """,
        interpret=False,
    )
    assert "fallback" not in seen.output
    assert (seen.kernel, seen.other_shape, seen.training, seen.compiled) == (1, 1, 1, 1)
    assert (seen.half, seen.transposed, seen.cpu, seen.autocast) == (0, 0, 0, 0)
