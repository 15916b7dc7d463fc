"""What torch.compile generated, asked of the baseline's worker after it has played: the whole way, by PyTorch on the CPU."""

from __future__ import annotations

import pytest

from workbench.judge.judge import Judge
from workbench.judge.workers.generated import seed

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


def test_a_baselines_worker_tells_it_once_it_has_played(scale_task, nursery):
    judge = Judge(scale_task, device="host", nursery=nursery)
    try:
        clock = judge.context.clock()
        for name in ("eager", "compile"):
            with clock._baseline_worker(name) as worker:
                with clock._play(name, worker) as player:
                    player.call(clock._next_seed())
                told = clock._ask_generated(worker)
            if name == "eager":
                assert "code" not in told and seed(scale_task, told)[0] == ""
    finally:
        judge.close()
    assert told["inputs"] == [f"input:{spec.name}" for spec in scale_task.inputs if spec.is_tensor]
    assert "def call(" in told["code"]
    source, why = seed(scale_task, told)  # the CPU's kernels are no Triton
    assert source == "" and ("another language than Triton" in why or "no plain form" in why)


def test_without_a_gpu_nothing_is_proposed(scale_task, nursery):
    judge = Judge(scale_task, device="cpu", nursery=nursery)
    try:
        prepared = judge.prepare()
    finally:
        judge.close()
    assert prepared.inductor == "" and not any("Inductor" in note for note in prepared.notes)  # nothing that anybody could mend
    assert any(baseline.name == "compile" and "GPU" in baseline.reason for baseline in prepared.baselines)
