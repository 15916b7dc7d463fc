"""The second half of every capture: specs, graph and work of a written reference, and the proof that it computes what the live op does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from workbench.capture.captured import Captured
from workbench.capture.references import Reference, describe, flatten, load_reference
from workbench.capture.specs import check_tensor, describe_scalar, describe_tensor, dtype_name
from workbench.capture.tracing import Trace, trace
from workbench.capture.work import count_work
from workbench.errors import CaptureError
from workbench.inputs import make_inputs
from workbench.target import detect_target, get_target
from workbench.task import InputSpec, OutputSpec, Precision, Role, Task, Values, Work

if TYPE_CHECKING:
    from workbench.capture.entry import Call

RANDOM = "for now: ops that draw random numbers can't be judged yet"

TOLERANCE: Mapping[torch.dtype, float] = {torch.float64: 1e-10, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Error, relative to the output's root mean square, up to which live op and reference agree: they make the same ATen calls."""


@dataclass(frozen=True)
class Written:
    """A reference as text, with its arguments' live values."""

    entry: str
    text: str
    leaves: Sequence[tuple[str, Any, Role]]
    live: Callable[[list[Any]], list[torch.Tensor]]
    notes: tuple[str, ...] = ()
    format: Any = "function"
    init_args: tuple[Any, ...] = ()


def finish(written: Written, call: Call, *, name: str, target: str | None, precision: Precision, shown: Any = None) -> Captured:
    """Makes the Task, refuses what can't be judged, and compares the rebuilt reference with the live op once.

    Raises:
        CaptureError: random ops, shapes that depend on values, unsupported dtypes, or a reference that gives other values.
    """
    if target is not None:
        get_target(target)
    outputs = flatten(call.value)
    for place, output in enumerate(outputs):
        check_tensor(f"{place} of {name}", output, "output")
    specs, notes = make_specs(written.leaves, call.described)
    device = next((value.device for _, value, _ in written.leaves if isinstance(value, torch.Tensor)), outputs[0].device)
    task = Task(
        name=name, reference=written.text, entry=written.entry, inputs=specs, outputs=tuple(_output(output) for output in outputs),
        work=Work(0, 0), format=written.format, init_args=written.init_args, precision=precision,
        matmul_precision=torch.get_float32_matmul_precision(), differentiable=any(output.requires_grad for output in outputs),
        target=target or detect_target(),
    )  # fmt: skip
    reference = load_reference(task)
    found = trace(reference.call, specs, device)
    refuse(found, name)
    task = replace(task, graph=found.graph, work=count_work(found, specs, task.outputs))
    notes = (*notes, *written.notes, *_trace_notes(found))
    if call.changed():
        notes = (*notes, f"{name} changes its inputs, or the cell does after the call")
        inputs = make_inputs(specs, 0, str(device))
        compare(name, reference, inputs, _run(name, written.live, make_inputs(specs, 0, str(device))))
    else:
        compare(name, reference, [value for _, value, _ in written.leaves], outputs)
    return Captured(task, call.value, written.live, shown, str(device), notes)


def make_specs(
    leaves: Sequence[tuple[str, Any, Role]], described: Mapping[int, tuple[Values, tuple[str, ...]]]
) -> tuple[tuple[InputSpec, ...], tuple[str, ...]]:
    """Specs of an op's arguments; `described` has the values of those that the op may have changed since."""
    specs: list[InputSpec] = []
    notes: list[str] = []
    for name, value, role in leaves:
        if not isinstance(value, torch.Tensor):
            specs.append(describe_scalar(name, value))
            continue
        spec, found = describe_tensor(name, value, role, described.get(id(value)))
        specs.append(spec)
        notes += found
    return tuple(specs), tuple(notes)


def refuse(found: Trace, name: str) -> None:
    """Refuses what can't be judged, by what the trace shows."""
    if found.random:
        raise CaptureError(f"{RANDOM}; {name} calls {found.random}: pass the random tensor in, or use eval()")
    if found.dynamic:
        also = " (indexing with a boolean mask is one)" if "nonzero" in found.dynamic else ""
        raise CaptureError(
            f"{name} calls {found.dynamic}{also}, whose result's shape depends on values: "
            "use a form of fixed shape, such as torch.where with a mask"
        )


def compare(name: str, reference: Reference, inputs: Sequence[Any], expected: Sequence[torch.Tensor]) -> None:
    """Runs the rebuilt reference once and holds it against what the live op gave.

    Raises:
        CaptureError: they differ, and a second run tells whether the op is random.
    """
    got = _run(name, lambda values: reference(*values), list(inputs))
    difference = differing(got, expected)
    if difference is None:
        return
    if differing(_run(name, lambda values: reference(*values), list(inputs)), got) is not None:
        raise CaptureError(f"{RANDOM}; two runs of {name} on the same inputs differ")
    raise CaptureError(f"the captured text of {name} gives other values than the live op: {difference}")


def differing(got: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> str | None:
    """How two lists of outputs differ; None where they agree within rounding."""
    if len(got) != len(expected):
        return f"{len(got)} outputs in place of {len(expected)}"
    for place, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return (f"output {place} is {dtype_name(mine.dtype)}{list(mine.shape)} in place of "
                    f"{dtype_name(theirs.dtype)}{list(theirs.shape)}")  # fmt: skip
        if mine.element_size() == 1 and mine.dtype is not torch.bool:
            mine, theirs = mine.float(), theirs.float()
        if mine.numel() == 0 or torch.equal(mine, theirs):
            continue
        if not mine.is_floating_point():
            return f"output {place} differs in {int((mine != theirs).sum())} of {mine.numel()} elements"
        mine, theirs = mine.detach(), theirs.detach()
        scale = torch.linalg.vector_norm(torch.nan_to_num(theirs.double(), 0.0, 0.0, 0.0)).item() / theirs.numel() ** 0.5
        tolerance = TOLERANCE.get(mine.dtype, 1e-1)
        if not torch.allclose(mine.double(), theirs.double(), rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return f"output {place} differs by up to {(mine.double() - theirs.double()).abs().nan_to_num().max().item():.3g}"
    return None


def _run(name: str, call: Callable[[list[Any]], list[torch.Tensor]], inputs: list[Any]) -> list[torch.Tensor]:
    try:
        with torch.no_grad():
            return call(inputs)
    except CaptureError:
        raise
    except Exception as error:
        raise CaptureError(f"the captured text of {name} doesn't run: {describe(error)}") from error


def _output(output: torch.Tensor) -> OutputSpec:
    return OutputSpec(tuple(output.shape), dtype_name(output.dtype), tuple(output.stride()))


def _trace_notes(found: Trace) -> tuple[str, ...]:
    return (f"no graph: {found.reason}",) if found.reason else ()
