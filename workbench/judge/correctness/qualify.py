"""Is the op judgeable at all? Asked once, before any search.

A checker that can't refuse a bad answer can't be trusted with a good one. So it is tried on bad answers (see `canaries`): outputs of
zeros, of other inputs, with a tail left out; outputs for which one input was ignored. If one passes, a cheat would: the output hardly
depends on the inputs, or its own error drowns it. The op is then *degenerate*, on these inputs at least.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from workbench.capture.references import Reference
from workbench.events import Canary, Qualification
from workbench.inputs import make_inputs
from workbench.judge.correctness import canaries
from workbench.judge.correctness.compare import Comparison, compare
from workbench.judge.correctness.expected import Error, Expected, ExpectedOutput, expect, rms
from workbench.judge.protocol import state
from workbench.task import InputSpec

SEEDS = 5
PATIENCE, ALWAYS = 0.8, 8
"""Seconds after which no further input is tried, and how many are whatever it takes: of a hundred parameters the largest come first."""

OWN_NOISE = 1e-6
IMPACT = 100.0
"""An input whose change moves the outputs by less than so many honest errors is worth a word."""


@torch.no_grad()  # type: ignore[untyped-decorator]
def qualify(
    reference: Reference, specs: Sequence[InputSpec], next_seed: Callable[[], int], device: str, *, products: bool = False,
    coarse: bool = True, used: Sequence[str] | None = None, updates: Sequence[str] = (),
) -> Qualification:  # fmt: skip
    """Tries the checker on bad answers.

    Args:
        specs: of the inputs to try it on.
        products: the op multiplies matrices, so that TF32 is worth trying.
        coarse: whether the policy asks for the reference's own precision, so that coarser ones must be told from it.
        used: names of the inputs that the op reads, if known: one that it never reads is no fault of its values.
        updates: buffers that a call of the model changes. They are compared themselves, so the outputs need not tell of them.
    """
    search = _Search(reference, tuple(specs), device, time.perf_counter())
    if reference.random:
        return _qualify_random(search, next_seed())
    draws = [make_inputs(specs, next_seed(), device) for _ in range(SEEDS)]
    runs = search.runs(draws)
    noise = max(map(_apart, runs[0], search.outputs(draws[0])), default=0.0)
    if noise > OWN_NOISE and _is_noisy(runs[0], search.outputs(draws[0])):
        return Qualification(random="an op whose two runs differ", noise=noise, seconds=search.spent)
    expected = expect(reference, draws[0])
    found = _figures(expected, runs, noise)
    for name, outputs in canaries.of_outputs(expected, runs[1]).items():
        search.note(name, expected, outputs, canaries.ADVICE[name])
    if not search.degenerate:  # else the inputs don't matter either, which says less
        search.inputs(expected, next_seed(), used)
        search.parameters(expected, next_seed(), updates)
    if coarse and any(output.reference.dtype is torch.float32 for output in expected.outputs):
        search.precision(expected, ("fp16", "bf16", "TF32") if products else ("fp16", "bf16"))
    return replace(
        found, degenerate=search.degenerate, advice=search.advice, canaries=tuple(search.tried), blind=tuple(search.blind),
        impact=search.impact, updates=tuple(updates), seconds=round(search.spent, 3),
    )  # fmt: skip


def _qualify_random(search: _Search, seed: int) -> Qualification:
    """Of a random op: bad answers must lie outside of its distribution, such as the middle of it."""
    expected = expect(search.reference, make_inputs(search.specs, seed, search.device))
    middle = [output.reference if output.draws is None else output.draws.middle(output.reference) for output in expected.outputs]
    other = [output.detach() for output in search.reference(*make_inputs(search.specs, seed ^ 1, search.device))]
    bad = {name: outputs for name, outputs in canaries.of_outputs(expected, other).items() if "sigma" not in name and "left" not in name}
    for name, outputs in (*bad.items(), ("no randomness at all", middle)):
        search.note(name, expected, outputs, canaries.ADVICE.get(name, "check that the op is in training mode, and its probability"))
    low, high = (float(pick(output.truth)) for output in expected.outputs[:1] for pick in (torch.amin, torch.amax))
    return Qualification(
        search.degenerate, search.advice, tuple(search.tried), low=low, high=high, random=search.reference.random,
        seconds=round(search.spent, 3),
    )  # fmt: skip


@torch.no_grad()  # type: ignore[untyped-decorator]
def full_size(reference: Reference, specs: Sequence[InputSpec], seeds: tuple[int, int], device: str) -> Qualification:
    """The cheapest bad answers at the task's own size, by the strictest bounds: an op may saturate there alone."""
    search = _Search(reference, tuple(specs), device, time.perf_counter())
    own, other = ([_sampled(output) for output in search.outputs(make_inputs(specs, seed, device))] for seed in seeds)
    right = Expected((), tuple(map(_as_expected, own)))
    for name, outputs in canaries.of_outputs(right, other).items():
        if name in ("zeros", "the mean everywhere", "the result of other inputs"):
            search.note(name, right, outputs, canaries.ADVICE[name] + " (at the task's own shapes)")
    return Qualification(search.degenerate, search.advice, tuple(search.tried), seconds=round(search.spent, 3))


def _sampled(output: torch.Tensor) -> torch.Tensor:
    """Elements spread over the whole output, enough to tell a bad answer by."""
    flat = output.reshape(-1)
    return flat[:: max(1, flat.numel() >> 16)]


def _as_expected(output: torch.Tensor) -> ExpectedOutput:
    wide = output.double() if output.is_floating_point() else output
    return ExpectedOutput(output, wide, Error(), rms(wide))


@dataclass
class _Search:
    """Looks for a bad answer that passes."""

    reference: Reference
    specs: tuple[InputSpec, ...]
    device: str
    started: float
    degenerate: str = ""
    advice: str = ""
    tried: list[Canary] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)
    impact: dict[str, float] = field(default_factory=dict)

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.started

    def outputs(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        return [output.detach().clone() for output in self.reference(*inputs)]

    def runs(self, draws: Sequence[Sequence[Any]]) -> list[list[torch.Tensor]]:
        """The outputs for each draw, but not all of them where one takes long; two at least."""
        made: list[list[torch.Tensor]] = []
        for draw in draws:
            if len(made) >= 2 and self.spent > PATIENCE / 4:
                break
            made.append(self.outputs([item.clone() if isinstance(item, torch.Tensor) else item for item in draw]))
        return made

    def note(self, name: str, expected: Expected, outputs: Sequence[torch.Tensor] | None, advice: str, degenerate: str = "") -> bool:
        """Tries the checker on a bad answer. Returns whether it was told."""
        if outputs is None or not any(right.reference.numel() for right in expected.outputs):
            return True
        found = _compared(outputs, expected)
        told = not all(one.right and not one.precision for one in found)
        self.tried.append(Canary(name, told, _ratio(found)))
        if not told and not self.degenerate:
            self.degenerate, self.advice = degenerate or name, advice
        return told

    def inputs(self, expected: Expected, seed: int, used: Sequence[str] | None) -> None:
        """Each input drawn anew alone, and at its neutral values."""
        largest = sorted(range(len(self.specs)), key=lambda position: -self.specs[position].nbytes)
        for position in largest:
            spec, value = self.specs[position], expected.inputs[position]
            if not spec.is_tensor or value.numel() == 0 or spec.values.kind in ("scalar", "bytes"):
                continue
            if (used is not None and spec.name not in used) or self._weary():
                continue
            changed = self._try(canaries.redrawn(self.specs, expected.inputs, position, seed, self.device))
            if changed is None:
                continue
            self.impact[spec.name] = _impact(changed, expected)
            ignored = f"input {spec.name} does not matter"
            advice = f"give inputs on which {spec.name} changes the result, or leave it out of the op"
            if not self.note(f"input {spec.name} drawn anew", expected, changed, advice, ignored):
                continue
            for words, values in canaries.neutral(spec, value):
                if not torch.equal(values, value):
                    outputs = self._try(_with(expected.inputs, position, values))
                    self.note(f"input {spec.name} taken as {words}", expected, outputs, advice, f"{ignored}: {words} would do")

    def parameters(self, expected: Expected, seed: int, updates: Sequence[str]) -> None:
        """Each parameter of a model drawn anew alone, but those buffers that it `updates`."""
        module = self.reference.module
        if module is None:
            return
        kept = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        try:
            for spec in sorted(state.describe(module), key=lambda spec: -spec.nbytes):
                if spec.name in updates:
                    continue
                if self._weary():
                    return
                module.load_state_dict({spec.name: make_inputs([spec], seed, self.device)[0]}, strict=False)
                changed = self._try(expected.inputs)
                module.load_state_dict({spec.name: kept[spec.name]}, strict=False)
                if changed is not None:
                    self.impact[spec.name] = _impact(changed, expected)
                    self.note(
                        f"parameter {spec.name} drawn anew", expected, changed,
                        f"give inputs on which {spec.name} changes the result", f"parameter {spec.name} does not matter",
                    )  # fmt: skip
        finally:
            module.load_state_dict(kept, strict=False)

    def precision(self, expected: Expected, kinds: Sequence[str]) -> None:
        """Coarser computations: those that the checker takes for the reference's own are noted."""
        for kind in kinds:
            outputs = canaries.coarser(self.reference, expected.inputs, kind)
            if outputs is None:
                continue
            found = _compared(outputs, expected)
            told = not all(one.right and not one.precision for one in found)
            self.tried.append(Canary(f"computed in {kind}", told, _ratio(found)))
            if not told:
                self.blind.append(kind)

    def _weary(self) -> bool:
        return len(self.impact) >= ALWAYS and self.spent > PATIENCE

    def _try(self, inputs: Sequence[Any]) -> list[torch.Tensor] | None:
        try:
            return self.outputs([item.clone() if isinstance(item, torch.Tensor) else item for item in inputs])
        except Exception:  # an op that refuses these values tells them apart
            return None


def _compared(outputs: Sequence[torch.Tensor], expected: Expected) -> list[Comparison]:
    return [
        compare(output, right) for output, right in zip(outputs, expected.outputs, strict=True)
        if right.reference.numel() and output.shape == right.reference.shape
    ]  # fmt: skip


def _ratio(found: Sequence[Comparison]) -> float | None:
    ratios = [one.ratio for one in found if math.isfinite(one.ratio)]
    return round(max(ratios), 3) if len(ratios) == len(found) and ratios else None


def _with(inputs: Sequence[Any], position: int, value: torch.Tensor) -> list[Any]:
    replaced = list(inputs)
    replaced[position] = value
    return replaced


def _impact(changed: Sequence[torch.Tensor], expected: Expected) -> float:
    """Rms change of the outputs over the honest rms error; infinite for exact outputs that change."""
    most = 0.0
    for output, right in zip(changed, expected.outputs, strict=True):
        if output.shape != right.reference.shape or output.numel() == 0:
            continue
        if not output.is_floating_point():
            most = max(most, math.inf if not torch.equal(output, right.reference) else 0.0)
            continue
        moved = rms(torch.nan_to_num(output.double() - right.truth))
        honest = max(right.error.rms, torch.finfo(output.dtype).eps / 4 * right.scale)
        most = max(most, moved / honest if honest else (math.inf if moved else 0.0))
    return most


def _figures(expected: Expected, runs: Sequence[Sequence[torch.Tensor]], noise: float) -> Qualification:
    """Range, spread over seeds and honest error, over the floating outputs."""
    low, high, spread, error = math.inf, -math.inf, 0.0, 0.0
    for number, output in enumerate(expected.outputs):
        if not output.reference.is_floating_point() or output.reference.numel() == 0:
            continue
        for run in runs:
            values = run[number].double()
            values = values[torch.isfinite(values)]
            if values.numel():
                low, high = min(low, float(values.min())), max(high, float(values.max()))
        scale = output.scale or 1.0
        error = max(error, output.error.rms / scale)
        same = [run[number] for run in runs[1:] if run[number].shape == output.reference.shape]
        spread = max([spread, *(rms(torch.nan_to_num(one.double() - output.truth)) / scale for one in same)])
    known = low <= high
    return Qualification(
        noise=noise, error=error, low=low if known else None, high=high if known else None, spread=spread, truth=expected.note
    )  # fmt: skip


def _apart(one: torch.Tensor, two: torch.Tensor) -> float:
    """Largest difference of two runs, relative to the largest value; 1 for exact outputs that differ."""
    if not one.is_floating_point():
        return 0.0 if torch.equal(one, two) else 1.0
    if one.numel() == 0 or one.shape != two.shape:
        return 0.0
    a, b = torch.nan_to_num(one.double()), torch.nan_to_num(two.double())
    return float((a - b).abs().max()) / max(1e-300, float(a.abs().max()))


def _is_noisy(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> bool:
    """Whether two runs differ by more than rounding."""
    return any(
        _apart(one, two) > OWN_NOISE * (2**13 if one.element_size() < 4 else 1) if one.is_floating_point() else not torch.equal(one, two)
        for one, two in zip(first, second, strict=True)
    )
