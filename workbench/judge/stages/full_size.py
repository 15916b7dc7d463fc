"""Without a GPU: what the launches of the real shapes write there, on sampled programs. See `coverage`.

What the worker says here is a claim, as everything is; but a candidate can only harm itself by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from workbench.candidate import Verdict, Witness
from workbench.inputs import make_inputs
from workbench.judge.context import Context, Workers
from workbench.judge.correctness.checks import raise_error
from workbench.judge.trial import Stop, Trial
from workbench.records import encode

NOT_SHOWN = "coverage at the real shape not shown"
_NEAR = {"float64": 1e-6, "float32": 2e-3, "float16": 4e-2, "bfloat16": 6e-2}
"""Of the larger of an element and the output's rms. What goes wrong at a size alone goes wrong by more."""
_MOST_BYTES = {"quick": 64 << 20, "full": 512 << 20}
_MOST_FLOPS = {"quick": 2e9, "full": 3e10}


def check(context: Context, trial: Trial, workers: Workers) -> None:
    """Every element is written by some program, and what sampled programs write is right.

    Raises:
        Stop: with the element.
    """
    task = context.task
    if any(spec.specs == task.inputs for spec in context.input_sets()) or trial.candidate.backend != "triton":
        return  # the real shape was interpreted whole
    size = sum(spec.nbytes for spec in task.inputs) + sum(output.nbytes for output in task.outputs)
    real = size <= _MOST_BYTES[trial.mode] and task.work.flops <= _MOST_FLOPS[trial.mode] and not task.random and not task.changes
    seed = trial.next_seed() if real else None
    answer = workers["interpret"].ask({"do": "coverage", "inputs": encode(task.inputs), "seed": seed}, context.limits.traffic)
    if "error" in answer:
        kinds = answer["error"].get("kinds") or () if isinstance(answer["error"], Mapping) else ()
        if "OutOfBoundsError" in kinds:
            raise_error(answer["error"], listed=True, where="the task's own shapes")
        trial.labels.add(NOT_SHOWN)
        return
    try:
        _judge(context, trial, answer["outputs"], seed)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Stop(Verdict.REFUSED, "its process sent what no worker sends") from error


def _judge(context: Context, trial: Trial, claims: Any, seed: int | None) -> None:
    task = context.task
    rights = None
    for number, (claim, output) in enumerate(zip(claims, task.outputs, strict=True)):
        if claim["missing"] >= 0:
            index = _index(int(claim["missing"]), output.shape)
            raise Stop(
                Verdict.WRONG, f"no program of the grid writes element {list(index)} of {_shape(output.shape)} at the task's own shapes",
                Witness(seed or 0, "the task's own shapes", number, index, pattern="not covered by the grid"),
            )  # fmt: skip
        if not claim["shown"]:
            trial.labels.add(NOT_SHOWN)
        if seed is None or not claim["places"] or output.dtype not in _NEAR:
            continue
        if rights is None:
            reference = trial.reference or context.reference()
            rights = [right.detach() for right in reference(*make_inputs(task.inputs, seed, context.place))]
        _compare(claim, rights[number], number, seed)


def _compare(claim: Mapping[str, Any], right: torch.Tensor, number: int, seed: int) -> None:
    places = torch.tensor([int(place) for place in claim["places"]])
    got = torch.tensor([float(value) for value in claim["values"]], dtype=torch.float64)
    flat = right.reshape(-1)
    expected = flat[places].double()
    finite = flat[:: max(1, flat.numel() >> 20)].double()
    finite = finite[torch.isfinite(finite)]
    scale = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    bound = _NEAR[str(right.dtype).removeprefix("torch.")] * expected.abs().clamp_min(scale)
    equal = (got == expected) | (torch.isnan(got) & torch.isnan(expected))
    wrong = ~equal & ~((got - expected).abs() <= bound) & torch.isfinite(expected)
    if bool(wrong.any()):
        at = int(wrong.nonzero()[0])
        index = _index(int(places[at]), tuple(right.shape))
        value = float(got[at])
        raise Stop(
            Verdict.WRONG,
            f"right on small shapes, wrong at the task's own: {int(wrong.sum()):,} of {wrong.numel():,} sampled elements are off; "
            f"{value:.7g} where {float(expected[at]):.7g} is right",
            Witness(seed, "the task's own shapes", number, index, value, float(expected[at]), float(bound[at])),
        )  # fmt: skip


def _index(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        index.append(place % size)
        place //= size
    return tuple(reversed(index))


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "()"
