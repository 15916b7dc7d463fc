"""The worker's side of timing: it makes the inputs when their seed is revealed, empties the caches, and runs the candidate when told.

One code path for candidates and baselines, so that what the harness costs, it costs both.

What is timed is the work of the GPU with its launches already queued, as in a model that keeps the card busy: ahead of each call the
stream gets some idle work, then the drawing of the inputs, then the flush of the L2, and the launches arrive meanwhile. How long that
lead is, the judge says. A call on another stream that does not wait for this one finds the inputs of the call before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from workbench.capture.references import flatten
from workbench.inputs import make_inputs, stream_seed
from workbench.judge import challenge, gpu
from workbench.judge.doorbell import Doorbell, Order
from workbench.judge.shared import SharedFile
from workbench.task import InputSpec

COLD, HOT, IDLE, LATE = 0, 1, 2, 3
"""How a ring wants its call: with empty caches, with what the call before has left in them, or everything but the call."""


class Stopwatch(Protocol):
    """Times what runs between `start` and `stop`."""

    def synchronize(self) -> None: ...
    def lead(self, us: float) -> None:
        """Idle work, so that launches can queue up behind it."""
        ...

    def start(self, flush: torch.Tensor | None) -> None: ...
    def stop(self) -> float:
        """µs since `start`, less the flush, after all work is done."""
        ...


class HostStopwatch:
    """For PyTorch on the CPU, where a call is over when it returns."""

    def synchronize(self) -> None:
        pass

    def lead(self, us: float) -> None:
        pass

    def start(self, flush: torch.Tensor | None) -> None:
        self._begun = time.perf_counter_ns()

    def stop(self) -> float:
        return (time.perf_counter_ns() - self._begun) / 1e3


def answer_doorbell(
    function: Callable[..., Any], shared: SharedFile, specs: Sequence[InputSpec], device: str, *, flush_bytes: int, offsets: Sequence[int],
    sizes: Sequence[int],
) -> dict[str, Any]:  # fmt: skip
    """Serves rings until END. Whatever the candidate raises comes through, and the judge reads it as the answer to ``time``.

    A ring may ask for several calls in a row: short ones are timed together, each on content of its own.
    """
    bell = Doorbell(shared)
    watch: Stopwatch = gpu.EventStopwatch() if device == "cuda" else HostStopwatch()
    flush = torch.empty(flush_bytes, dtype=torch.int8, device=device) if flush_bytes else None
    sets: list[list[Any]] = []
    outputs: list[list[torch.Tensor]] = []
    number = 0
    try:
        while True:
            number, order, seed, count, flag, lead = bell.listen(number)
            claim = enqueued = 0.0
            numbers: list[float] = []
            if order is Order.PREPARE:
                if flag != IDLE:
                    outputs.clear()
                _renew(sets, specs, seed, count, device)
                watch.synchronize()
            elif order is Order.GO:
                if device == "cuda":
                    gpu.forget_persisting_l2()  # ahead of the lead: it may wait for the card
                begun = time.perf_counter_ns()
                watch.lead(lead)
                if flag != IDLE:  # a ring without a call leaves what the call before returned
                    outputs.clear()
                late = flag == LATE and len(sets) == count  # each call's inputs come when the call before is over
                if seed and not late:  # behind the lead, in the stream: before the lead is over there is nothing to compute from
                    _renew(sets, specs, seed, count, device)
                watch.start(None if flag == HOT else flush)
                for place, inputs in enumerate(sets if flag != IDLE else ()):
                    if late:
                        _put(inputs, make_inputs(specs, call_seed(seed, place), device))
                    outputs.append(flatten(function(*inputs)))  # what is made when it is looked at is made in here
                if device == "cuda":
                    _check_plain(outputs, device)  # while the card works
                enqueued = (time.perf_counter_ns() - begun) / 1e3
                claim = watch.stop()
                if device != "cuda":
                    _check_plain(outputs, device)
            elif order is Order.CHALLENGE:
                numbers = challenge.answer(outputs[count], seed)
            elif order is Order.HAND_OVER:
                for output, offset, size in zip(outputs[count], offsets, sizes, strict=False):
                    if output.layout is torch.strided and output.numel() * output.element_size() == size:
                        shared.write(offset, output)
            elif order is Order.END:
                return {}
            bell.answer(number, claim, enqueued, numbers)
    except BaseException:
        bell.fail()
        raise
    finally:
        bell.close()


def _check_plain(outputs: Sequence[Sequence[torch.Tensor]], device: str) -> None:
    for output in (output for call in outputs for output in call):
        if type(output) not in (torch.Tensor, torch.nn.Parameter) or output.layout is not torch.strided or output.device.type != device:
            raise TypeError(f"a {type(output).__name__} on {output.device.type} in place of a plain tensor on {device}")


def _renew(sets: list[list[Any]], specs: Sequence[InputSpec], seed: int, count: int, device: str) -> None:
    """New content for `count` calls, behind the same pointers wherever there are tensors already."""
    del sets[count:]
    for place in range(count):
        drawn = make_inputs(specs, call_seed(seed, place), device)
        if place == len(sets):
            sets.append(drawn)
            continue
        _put(sets[place], drawn)


def _put(inputs: list[Any], drawn: Sequence[Any]) -> None:
    """The drawn content behind the pointers of these inputs."""
    for position, (old, new) in enumerate(zip(inputs, drawn, strict=True)):
        if not isinstance(old, torch.Tensor):
            continue
        if 0 in old.stride() or old.numel() == 0:
            inputs[position] = new
        else:
            old.copy_(new)


def call_seed(seed: int, place: int) -> int:
    """The seed of one of the calls that one ring asks for."""
    return stream_seed(seed, 1000 + place)
