"""What one input set should give, and how far an honest kernel may be from it.

For each output: the reference's own result, the truth (see `truth`), and the error that honest computation has on these inputs. That
error is the largest of

- the reference's own,
- the reference's in other orders of accumulation (see `orders`),
- what the truth moves by when every input moves by one unit round-off of the dtype that the op accumulates in. An algorithm that is as
  exact as the one before it on slightly different inputs is a stable one; where the inputs cancel (a variance of values around 1000, one
  column alone), this term is what is left when the reference happens to round well.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from workbench.capture.references import Reference
from workbench.judge.correctness import orders, truth
from workbench.judge.correctness.randomness import DRAWS, HELD_OUT, Draws
from workbench.judge.correctness.ties import Ties, watch_ties
from workbench.judge.protocol import fingerprint

CHUNK = 1 << 22
"""Elements that are compared at a time, so that a comparison never needs more memory than the tensors themselves."""


@dataclass(frozen=True)
class Error:
    """How far a result is from the truth: largest and rms error, slope of the error over the truth, and mean error."""

    max: float = 0.0
    rms: float = 0.0
    slope: float = 0.0
    mean: float = 0.0
    noise: float = 0.0
    """Largest difference between two runs of the reference on the same inputs."""

    def worst(self, other: Error) -> Error:
        """Of both, the larger of each figure."""
        return Error(*(max(abs(a), abs(b)) for a, b in zip(self.figures, other.figures, strict=True)))

    @property
    def figures(self) -> tuple[float, float, float, float, float]:
        return self.max, self.rms, self.slope, self.mean, self.noise


@dataclass(frozen=True)
class ExpectedOutput:
    """One output: `reference` in its own dtype, `truth` in float64 (or the reference itself where it has no fraction)."""

    reference: torch.Tensor
    truth: torch.Tensor
    error: Error
    scale: float
    """Root mean square of the truth."""
    ties: Ties | None = None
    draws: Draws | None = None
    """Many runs of a random reference, whose output is compared by distribution."""
    products: bool = False
    """Whether it comes of matrix products, which tensor cores compute on operands that are cut off."""


@dataclass(frozen=True)
class Expected:
    """All outputs for one set of inputs."""

    inputs: tuple[Any, ...] = field(repr=False)
    outputs: tuple[ExpectedOutput, ...] = field(repr=False)
    note: str = ""
    """How the truth was had, where not in float64."""
    mutated: tuple[int, ...] = ()
    """Positions of the inputs that the reference itself changes."""
    aliased: tuple[int, ...] = ()
    """Positions of the outputs that share memory with an input in the reference: such an output need not outlive the next call."""

    @property
    def random(self) -> bool:
        """Whether any output is compared by distribution."""
        return any(output.draws is not None for output in self.outputs)


def expect(reference: Reference, inputs: Sequence[Any], *, known: Sequence[Error] | None = None) -> Expected:
    """Runs the reference, the truth and the honest orders.

    Args:
        known: errors found earlier for inputs of the same shape and kind; then only the reference and the truth run.
    """
    if reference.random:
        return _expect_random(reference, inputs)
    own_inputs = [truth.clone(item) for item in inputs]
    with watch_ties() as seen:
        own = [output.detach() for output in reference(*own_inputs)]
    mutated, aliased = _touched(inputs, own_inputs, own)
    note = ""
    try:
        with watch_ties() as seen_wide:
            exact = truth.run(reference, inputs)
    except Exception as error:
        note = f"fp32 truth: {type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
        exact, seen_wide = _single(reference, inputs, own), seen
    outputs = []
    errors = list(known) if known is not None else _honest(reference, inputs, own, exact)
    for position, (result, wide) in enumerate(zip(own, exact, strict=True)):
        if not result.is_floating_point():
            wide = result
        ties = seen.of(result, seen_wide, exact[position]) if not result.is_floating_point() else None
        outputs.append(ExpectedOutput(result, wide, errors[position], rms(wide), ties, products=reference.products))
    return Expected(tuple(inputs), tuple(outputs), note, mutated, aliased)


def _touched(inputs: Sequence[Any], after: Sequence[Any], outputs: Sequence[torch.Tensor]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Positions of the inputs that a run changed, and of the outputs that lie in an input's memory."""
    mutated = tuple(
        position
        for position, (old, new) in enumerate(zip(inputs, after, strict=True))
        if isinstance(old, torch.Tensor) and not same(old, new)
    )
    homes = {item.untyped_storage().data_ptr() for item in after if isinstance(item, torch.Tensor) and item.numel()}
    aliased = tuple(number for number, output in enumerate(outputs) if output.numel() and output.untyped_storage().data_ptr() in homes)
    return mutated, aliased


def _expect_random(reference: Reference, inputs: Sequence[Any]) -> Expected:
    """Many runs in place of one. Outputs that do not vary are compared as usual, in the reference's own precision."""
    first = int(fingerprint.of_inputs(inputs), 16) % (1 << 40)
    runs: list[list[torch.Tensor]] = []
    touched: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    with torch.random.fork_rng():
        for number in range(DRAWS + HELD_OUT):
            torch.manual_seed(first + number)
            own_inputs = [truth.clone(item) for item in inputs]
            outputs = reference(*own_inputs)
            if not runs:
                touched = _touched(inputs, own_inputs, outputs)
            runs.append([output.detach().clone() for output in outputs])
        errors = [Error() for _ in runs[0]]
        for order in orders.ORDERS:
            with contextlib.suppress(Exception):
                torch.manual_seed(first)
                retiled = orders.run(reference, inputs, order)
                errors = [old.worst(measure(result, own.double())) for old, result, own in zip(errors, retiled, runs[0], strict=True)]
    made = []
    for position, own in enumerate(runs[0]):
        wide = own.double() if own.is_floating_point() else own
        draws = [run[position] for run in runs]
        varies = any(not same(own, other) for other in draws[1:])
        scale = rms(wide)
        tolerance = 4 * min(errors[position].max, 1e-2 * scale) + 8 * _round_off(own.dtype) * max(scale, _largest(wide)) if own.is_floating_point() else 0.0  # fmt: skip  # noqa: E501
        made.append(ExpectedOutput(own, wide, errors[position], scale, draws=Draws(draws, tolerance) if varies else None))
    return Expected(tuple(inputs), tuple(made), "", *touched)


def _round_off(dtype: torch.dtype) -> float:
    return float(torch.finfo(dtype).eps) / 2


def _largest(wide: torch.Tensor) -> float:
    finite = wide[torch.isfinite(wide)]
    return float(finite.abs().max()) if finite.numel() else 0.0


def measure(result: torch.Tensor, exact: torch.Tensor) -> Error:
    """The error of a result, over the elements that are finite in both."""
    if not result.is_floating_point() or result.shape != exact.shape or result.numel() == 0:
        return Error()
    largest = squares = cross = power = total = 0.0
    count = 0
    flat, wide = result.contiguous().view(-1), exact.contiguous().view(-1)
    for start in range(0, flat.numel(), CHUNK):
        value, true = flat[start : start + CHUNK].double(), wide[start : start + CHUNK].double()
        usable = torch.isfinite(value) & torch.isfinite(true)
        difference = torch.where(usable, value - true, 0.0)
        true = torch.where(usable, true, 0.0)
        largest = max(largest, float(difference.abs().max()))
        squares += float(difference.square().sum())
        cross += float((difference * true).sum())
        power += float(true.square().sum())
        total += float(difference.sum())
        count += int(usable.sum())
    count = max(1, count)
    return Error(largest, math.sqrt(squares / count), cross / power if power else 0.0, total / count)


def rms(tensor: torch.Tensor) -> float:
    """Root mean square of the finite elements."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return 0.0
    flat, squares, count = tensor.contiguous().view(-1), 0.0, 0
    for start in range(0, flat.numel(), CHUNK):
        part = flat[start : start + CHUNK].double()
        part = part[torch.isfinite(part)]
        squares += float(part.square().sum())
        count += part.numel()
    return math.sqrt(squares / max(1, count))


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal bit for bit, NaNs included."""
    if a.is_floating_point():
        return bool(torch.equal(torch.isnan(a), torch.isnan(b)) and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)))
    return bool(torch.equal(a, b))


def _honest(reference: Reference, inputs: Sequence[Any], own: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> list[Error]:
    errors = [measure(result, wide) for result, wide in zip(own, exact, strict=True)]

    def widen_by(results: Sequence[torch.Tensor]) -> None:
        if [tuple(r.shape) for r in results] == [tuple(r.shape) for r in own]:
            errors[:] = [old.worst(measure(result, wide)) for old, result, wide in zip(errors, results, exact, strict=True)]

    with contextlib.suppress(Exception):
        again = reference(*[truth.clone(item) for item in inputs])
        errors = [replace(old, noise=_noise(one, two)) for old, one, two in zip(errors, own, again, strict=True)]
    for order in orders.ORDERS:
        try:
            widen_by(orders.run(reference, inputs, order))
        except Exception:
            continue  # an op that can't be cut up keeps its own error: stricter, never laxer
    try:
        moved = truth.run(reference, [_nudge(item, position) for position, item in enumerate(inputs)])
    except Exception:
        return errors
    return [
        old.worst(_conditioning(result, wide)) if result.is_floating_point() else old
        for old, result, wide in zip(errors, moved, exact, strict=True)
    ]


def _noise(one: torch.Tensor, two: torch.Tensor) -> float:
    if not one.is_floating_point() or one.numel() == 0 or one.shape != two.shape or torch.equal(one, two):
        return 0.0
    apart = (one.double() - two.double()).abs()
    apart = apart[torch.isfinite(apart)]
    return float(apart.max()) if apart.numel() else 0.0


def _nudge(item: Any, position: int) -> Any:
    """Each element moved by one unit round-off of its accumulation dtype, up or down at random."""
    if not isinstance(item, torch.Tensor) or not item.is_floating_point() or item.dtype is torch.float64:
        return item
    generator = torch.Generator(device=item.device).manual_seed(position)
    signs = torch.randint(0, 2, item.shape, generator=generator, device=item.device, dtype=torch.int8).double() * 2 - 1
    return item.double() * (1 + signs * 2.0**-24)


def _conditioning(moved: torch.Tensor, exact: torch.Tensor) -> Error:
    """How far the truth moves, without the few elements where a comparison inside the op tips over.

    Such movement may be common to many elements (a row's mean that is off by one unit), so half of it counts as slope and as mean.
    """
    if moved.shape != exact.shape or moved.numel() == 0:
        return Error()
    step = max(1, moved.numel() // CHUNK)
    distance = (moved.reshape(-1)[::step] - exact.reshape(-1)[::step]).abs()
    scale = rms(exact)
    jumps = distance > 2.0**-10 * exact.reshape(-1)[::step].abs().clamp_min(scale)
    distance = distance[torch.isfinite(distance) & ~(jumps & (int(jumps.sum()) <= max(1, jumps.numel() // 1000)))]
    if distance.numel() == 0:
        return Error()
    kept = distance.sort().values
    typical = float(kept.square().mean().sqrt())
    return Error(float(kept[-1]), typical, 0.5 * typical / scale if scale else 0.0, 0.5 * typical)


def _single(reference: Reference, inputs: Sequence[Any], own: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Where float64 can't be had: single precision, or the reference's own result."""
    try:
        wide = reference(*[item.float() if isinstance(item, torch.Tensor) and item.is_floating_point() else item for item in inputs])
    except Exception:
        wide = [output.clone() for output in own]
    return [output.double() if output.is_floating_point() else output for output in wide]
