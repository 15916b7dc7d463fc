"""Modules and functions that write to what they hold: the write is part of the op, and capturing it writes nothing."""

from __future__ import annotations

import pytest
import torch
from capturing import round_trip

from workbench.capture import capture_call, probe
from workbench.errors import MisuseError
from workbench.notebook.cell import write_cell


class Holding(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.ones(4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))


class InPlace(Holding):
    def forward(self, x):
        self.kept.lerp_(x.mean(0), 0.1)
        return x * 2


class PutInItsPlace(Holding):
    def forward(self, x):
        self.kept = 0.9 * self.kept + 0.1 * x.mean(0)
        return x * 2


class Counting(Holding):
    def forward(self, x):
        self.calls += 1
        return x * 2


class Used(Holding):
    def forward(self, x):
        self.kept.lerp_(x.mean(0), 0.1)
        return x - self.kept


MODULES = {
    "in place": (InPlace, ("kept",)),
    "another in its place": (PutInItsPlace, ("kept",)),
    "a counter": (Counting, ("calls",)),
    "and reads it": (Used, ("kept",)),
    "instance norm": (lambda: torch.nn.InstanceNorm1d(4, track_running_stats=True), ("running_mean", "running_var")),
}


def called(op, *args):
    with torch.no_grad():
        return capture_call(op, args, name="op")


@pytest.mark.parametrize("case", MODULES)
def test_a_buffer_that_a_module_updates_is_an_argument_that_it_changes(case):
    make, changes = MODULES[case]
    captured = called(make(), torch.randn(2, 4, 6) if case == "instance norm" else torch.randn(5, 4))
    task = round_trip(captured)
    assert task.changes == changes and not task.unreached and not task.random
    assert {spec.role for spec in task.inputs if spec.name in changes} == {"buffer"}
    assert any(f"changes its buffer{'s' if len(changes) > 1 else ''} {' and '.join(changes)} in place" in note for note in captured.notes)


def normalised(x, mean, var):
    return torch.nn.functional.batch_norm(x, mean, var, training=True)


def test_running_statistics_that_a_function_is_given_are_seen_to_change():
    # PyTorch's schema of batch norm does not say that it writes to them, nor do their version counters.
    task = round_trip(called(normalised, torch.randn(6, 4), torch.zeros(4), torch.ones(4)))
    assert task.changes == ("mean", "var") and len(task.outputs) == 3


def test_in_eval_mode_they_are_not():
    def evaluated(x, mean, var):
        return torch.nn.functional.batch_norm(x, mean, var, training=False)

    assert called(evaluated, torch.randn(6, 4), torch.zeros(4), torch.ones(4)).task.changes == ()


@pytest.mark.parametrize("case", MODULES)
def test_capturing_runs_the_persons_op_once_and_no_more(case):
    module = MODULES[case][0]()
    x = torch.randn(2, 4, 6) if case == "instance norm" else torch.randn(5, 4)
    twin = MODULES[case][0]()
    with torch.no_grad():
        twin(x)
    called(module, x)
    for name, buffer in module.named_buffers():
        assert torch.equal(buffer, dict(twin.named_buffers())[name]), name


def test_a_batch_norm_that_trains_is_not_moved_by_being_captured_and_probed():
    module, twin, x = torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4), torch.randn(5, 4)
    twin(x)
    captured = called(module, x)
    probe(captured, 3)
    assert module.num_batches_tracked == 1
    assert torch.equal(module.running_mean, twin.running_mean) and torch.equal(module.running_var, twin.running_var)


def test_a_function_that_counts_its_calls_in_the_notebook_is_counted_once():
    counter = torch.zeros(())

    def counting(x):
        counter.add_(1)
        return x * 2

    assert called(counting, torch.randn(5)).task.changes == ("counter",)
    assert float(counter) == 1


def test_statistics_that_no_argument_gives_are_named_and_stop_an_accept():
    norm = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    captured = called(norm, torch.randn(5, 4))
    names = ("1.running_mean", "1.running_var", "1.num_batches_tracked")
    assert captured.task.unreached == names and captured.task.changes == ()
    assert any(", ".join(names) in note for note in captured.notes)
    from workbench.candidate import Candidate, Evaluation, Verdict

    kernel = Candidate("k1", "triton", captured.task.reference, "op")
    with pytest.raises(MisuseError, match=r"updates 1\.running_mean, .*call \.eval\(\)"):
        write_cell(captured.task, kernel, {}, Evaluation("k1.1", "k1", "t", Verdict.RIGHT), "r")
