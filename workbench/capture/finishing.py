"""The second half of every capture: specs, graph and work of a written reference, and the proof that it computes what the live op does."""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from workbench.capture.captured import Captured
from workbench.capture.references import Reference, describe, flatten, load_reference, with_changed
from workbench.capture.specs import check_tensor, describe_scalar, describe_tensor, dtype_name
from workbench.capture.tracing import Trace, trace
from workbench.capture.work import count_work
from workbench.errors import CaptureError
from workbench.inputs import make_inputs
from workbench.target import detect_target, get_target
from workbench.task import InputSpec, OutputSpec, Precision, Role, Task, Values, Work

if TYPE_CHECKING:
    from workbench.capture.entry import Call

TOLERANCE: Mapping[torch.dtype, float] = {torch.float64: 1e-10, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Error, relative to the output's root mean square, up to which live op and reference agree: they make the same ATen calls."""


COSTLY = Work(bytes=1 << 30, flops=20_000_000_000)
"""An op that costs more than either figure isn't run at capture just to see its outputs: tracing tells their shapes."""


@dataclass(frozen=True)
class Written:
    """A reference as text, with its arguments' live values.

    Attributes:
        live: the live op on other values for the leaves.
        reference: the text brought to life, where that has been done.
        traced: what to trace in place of the reference; takes `free` as its last argument.
        free: a Model's parameters and buffers, which aren't arguments.
        unreached: buffers that the live op updates and the text doesn't.
    """

    entry: str
    text: str
    leaves: Sequence[tuple[str, Any, Role]]
    live: Callable[[list[Any]], list[torch.Tensor]]
    notes: tuple[str, ...] = ()
    format: Literal["function", "model"] = "function"
    init_args: tuple[Any, ...] = ()
    reference: Reference | None = None
    traced: Callable[..., Any] | None = None
    free: Mapping[str, torch.Tensor] = field(default_factory=dict)
    unreached: tuple[str, ...] = ()


def finish(written: Written, call: Call, *, name: str, target: str | None, precision: Precision, shown: Any = None) -> Captured:
    """Makes the Task, refuses what can't be judged, and compares the rebuilt reference with the live op once.

    A call that hasn't been run yet is run here, unless it is `COSTLY`.

    Raises:
        CaptureError: random ops, shapes that depend on values, unsupported dtypes, or a reference that gives other values.
    """
    if target is not None:
        get_target(target)
    specs, notes = make_specs(written.leaves, call.described)
    tensors = [value for _, value, _ in written.leaves if isinstance(value, torch.Tensor)]
    device = next((tensor.device for tensor in (*tensors, *flatten(call.value))), torch.device("cpu"))
    task = Task(
        name=name, reference=written.text, entry=written.entry, inputs=specs, outputs=(), work=Work(0, 0), format=written.format,
        init_args=written.init_args, precision=precision, matmul_precision=torch.get_float32_matmul_precision(),
        target=target or detect_target(), unreached=written.unreached,
    )  # fmt: skip
    reference = written.reference or load_reference(task)
    found = trace(written.traced or reference.call, specs, device, written.free)
    refuse(found, name)
    if written.unreached:
        lost = f"running statistics: {_in_words(written.unreached)}"
        notes = (*notes, f"{name} is in training mode: the reference returns what it returns, and doesn't update {lost}")
    if changes := found.changed or _seen_to_change(name, call, written, found, specs, str(device)):
        task = replace(task, changes=changes)
        written = replace(written, live=_with_changed(written.live, task.changed_positions))
        reference = replace(reference, changes=task.changed_positions)
        found = trace(with_changed(written.traced or reference.call, task.changed_positions), specs, device, written.free)
        kind = "buffer" if {spec.role for spec in specs if spec.name in changes} == {"buffer"} else "input"
        several = "s" if len(changes) > 1 else ""
        which = f"{kind}{several} {' and '.join(changes)}"
        notes = (*notes, f"{name} changes its {which} in place: a kernel must change the same, and no other")
    task = replace(task, random=found.random, convolution_tf32=_convolves_in_tf32(found))
    notes = (*notes, *written.notes, *_trace_notes(found))
    _check_outputs(found.outputs, name)
    free = list(written.free.values())
    costly = _is_costly(found, specs, free)
    if not call.ran and not costly:
        call.run_or_refuse(name)
    outputs = flatten(call.value) if call.ran else list(found.outputs)
    if call.ran and task.changes:
        values = [value for _, value, _ in written.leaves]
        outputs += [values[position] for position in task.changed_positions]
    if not outputs:
        raise CaptureError(f"{name} returns no tensor but {type(call.value).__qualname__}: return the tensors that it computes")
    _check_outputs(outputs, name)
    described = tuple(_output(output) for output in outputs)
    learns = any(tensor.requires_grad for tensor in (*outputs, *tensors, *free))
    task = replace(task, outputs=described, graph=found.graph, work=count_work(found, specs, described, free), differentiable=learns)
    if not call.ran:
        notes = (*notes, f"{name} is large and wasn't run at capture: its outputs' shapes are from its graph")
    elif call.changed() or task.changes:  # not on the live values: they would change once more
        if not task.changes:
            notes = (*notes, f"the inputs of {name} change: the cell writes to them after the call, or {name} to a tensor of its own")
        expected = _run(name, written.live, make_inputs(specs, 0, str(device)))
        task = _checked(name, task, reference, lambda: make_inputs(specs, 0, str(device)), expected)
    elif written.reference is None:
        task = _checked(name, task, reference, lambda: [value for _, value, _ in written.leaves], outputs)
    if task.random:
        notes = (*notes, f"{name} draws random numbers ({task.random}): a kernel is judged by the distribution of its results")
    return Captured(task, call.value, written.live, shown, str(device), notes)


def _convolves_in_tf32(found: Trace) -> bool:
    """PyTorch's float32 convolutions take TF32 unless they are told not to; its matrix products don't unless they are told to."""
    convolves = any("convolution" in node.op and node.dtype == "float32" for node in found.graph.nodes)
    return convolves and torch.backends.cudnn.allow_tf32


def _with_changed(live: Callable[[list[Any]], list[torch.Tensor]], changes: Sequence[int]) -> Callable[[list[Any]], list[torch.Tensor]]:
    def called(values: list[Any]) -> list[torch.Tensor]:
        return [*live(values), *(values[position] for position in changes)]

    return called


def _seen_to_change(name: str, call: Call, written: Written, found: Trace, specs: Sequence[InputSpec], device: str) -> tuple[str, ...]:
    """Arguments that the op writes to, where its graph does not tell: only a run on inputs that nobody else has does.

    What the cell writes to them after the call does not count.
    """
    unseen = found.reason and call.ran and call.changed()
    if not unseen and not (_hides_writes(found) and (call.ran or not _is_costly(found, specs, list(written.free.values())))):
        return ()
    drawn = make_inputs(specs, 0, device)
    before = [_content(value) for value in drawn]
    _run(name, written.live, drawn)
    return tuple(
        spec.name for spec, old, new in zip(specs, before, map(_content, drawn), strict=True)
        if old is not None and new is not None and not torch.equal(old, new)
    )  # fmt: skip


def _hides_writes(found: Trace) -> bool:
    """Whether a norm in it may move running statistics, which the schemas of those ops don't tell."""
    return any("batch_norm" in node.op and True in node.args for node in found.graph.nodes)


def _content(value: Any) -> torch.Tensor | None:
    """A copy of a tensor's bytes, NaNs included."""
    return value.detach().reshape(-1).contiguous().view(torch.uint8).clone() if isinstance(value, torch.Tensor) else None


def _in_words(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _checked(
    name: str, task: Task, reference: Reference, inputs: Callable[[], list[Any]], expected: Sequence[torch.Tensor]
) -> Task:  # fmt: skip
    """The task, once its rebuilt reference has given what the live op gave; of a random one, only the same shapes."""
    return replace(task, random=compare(name, reference, inputs, expected, random=task.random))


def _check_outputs(outputs: Sequence[torch.Tensor], name: str) -> None:
    for place, output in enumerate(outputs):
        check_tensor(f"{place} of {name}", output, "output")


def _is_costly(found: Trace, specs: Sequence[InputSpec], free: Sequence[torch.Tensor]) -> bool:
    if not found.outputs:
        return False
    work = count_work(found, specs, tuple(_output(output) for output in found.outputs), free)
    return work.bytes > COSTLY.bytes or work.flops > COSTLY.flops


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
    if found.dynamic:
        also = " (indexing with a boolean mask is one)" if "nonzero" in found.dynamic else ""
        raise CaptureError(
            f"{name} calls {found.dynamic}{also}, whose result's shape depends on values: "
            "use a form of fixed shape, such as torch.where with a mask"
        )


def compare(
    name: str, reference: Reference, inputs: Callable[[], list[Any]], expected: Sequence[torch.Tensor], *, random: str = ""
) -> str:  # fmt: skip
    """Runs the rebuilt reference once and holds it against what the live op gave.

    Returns:
        The op that draws random numbers: `random`, or words for one that no graph shows. Then only shapes and dtypes are compared.

    Raises:
        CaptureError: they differ.
    """

    def run() -> list[torch.Tensor]:
        return _run(name, lambda values: reference(*values), inputs())

    got = run()
    difference = differing(got, expected, values=not random)
    if difference is None:
        return random
    if not random and differing(got, expected, values=False) is None and differing(run(), got) is not None:
        kept = inputs()

        def again() -> list[torch.Tensor]:
            copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in kept]
            return _run(name, lambda values: reference(*values), copies)

        if differing(_from_one_seed(again), _from_one_seed(again)) is not None:
            raise CaptureError(
                f"two runs of {name} on the same inputs differ, from the same random seed too: it must keep nothing between calls"
            )
        return "two runs on the same inputs differ"
    raise CaptureError(f"the captured text of {name} gives other values than the live op: {difference}")


def _from_one_seed(run: Callable[[], list[torch.Tensor]]) -> list[torch.Tensor]:
    """A run with every generator that a Python op may draw from set to one state; they are as they were afterwards."""
    python, array = random_module.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            random_module.seed(0)
            np.random.seed(0)
            return run()
    finally:
        random_module.setstate(python)
        np.random.set_state(array)


def differing(got: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], *, values: bool = True) -> str | None:
    """How two lists of outputs differ; None where they agree within rounding, or in shape and dtype without `values`."""
    if len(got) != len(expected):
        return f"{len(got)} outputs in place of {len(expected)}"
    for place, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return (f"output {place} is {dtype_name(mine.dtype)}{list(mine.shape)} in place of "
                    f"{dtype_name(theirs.dtype)}{list(theirs.shape)}")  # fmt: skip
        if not values:
            continue
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
