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
from workbench.judge.protocol import challenge, gpu
from workbench.judge.protocol.doorbell import Doorbell, Order
from workbench.judge.protocol.shared import SharedFile
from workbench.task import InputSpec

_GLANCED = 4096
"""Elements of each output, about, that are looked at in the stream right after a call."""

COLD, HOT, IDLE, LATE, BESIDE = 0, 1, 2, 3, 4
"""How a ring wants its call: with empty caches, with what the call before has left in them, everything but the call, each call's inputs
when the call before is over, or everything but the call while other streams wait for this one.

A stream that waits for another slows that one down on the card: an H200 took 1.4 µs longer for each small kernel ahead of two streams
that waited. So what candidates with streams of their own take is measured from a ring like that."""


class Stopwatch(Protocol):
    """Times what runs between `start` and `end`."""

    def synchronize(self) -> None: ...
    def lead(self, us: float) -> None:
        """Idle work, so that launches can queue up behind it."""
        ...

    def start(self, flush: torch.Tensor | None) -> None: ...
    def end(self) -> None: ...
    def read(self) -> float:
        """µs from `start`, less the flush, to `end`, after all work is done."""
        ...


class HostStopwatch:
    """For PyTorch on the CPU, where a call is over when it returns."""

    def synchronize(self) -> None:
        pass

    def lead(self, us: float) -> None:
        pass

    def start(self, flush: torch.Tensor | None) -> None:
        self._begun = time.perf_counter_ns()

    def end(self) -> None:
        self._ended = time.perf_counter_ns()

    def read(self) -> float:
        return (self._ended - self._begun) / 1e3


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
    early: list[torch.Tensor] = []
    number = last_seed = 0
    try:
        while True:
            number, order, seed, count, flag, lead = bell.listen(number)
            claim = enqueued = 0.0
            numbers: list[float] = []
            if order is Order.PREPARE:
                if flag not in (IDLE, BESIDE):
                    outputs.clear()
                _renew(sets, specs, seed, count, device)
                watch.synchronize()
            elif order is Order.GO:
                last_seed = seed
                if device == "cuda":
                    gpu.forget_persisting_l2()  # ahead of the lead: it may wait for the card
                begun = time.perf_counter_ns()
                watch.lead(lead)
                idle = flag in (IDLE, BESIDE)
                if not idle:  # a ring without a call leaves what the call before returned
                    outputs.clear()
                late = flag == LATE and len(sets) == count  # each call's inputs come when the call before is over
                if seed and not late:  # behind the lead, in the stream: before the lead is over there is nothing to compute from
                    _renew(sets, specs, seed, count, device)
                watch.start(None if flag == HOT else flush)
                if flag == BESIDE and device == "cuda":
                    gpu.have_others_wait()
                # With warm caches always the same set: many sets might not fit into the L2 together.
                called = [] if idle else sets * max(1, count) if flag == HOT else sets
                for place, inputs in enumerate(called):
                    if late:
                        _put(inputs, make_inputs(specs, call_seed(seed, place), device))
                    outputs.append(flatten(function(*inputs)))  # what is made when it is looked at is made in here
                watch.end()
                if device == "cuda":
                    _check_plain(outputs, device)  # while the card works
                    early = _glance(outputs[-1], seed) if outputs else []
                enqueued = (time.perf_counter_ns() - begun) / 1e3
                claim = watch.read()
                if device != "cuda":
                    _check_plain(outputs, device)
            elif order is Order.COMMIT:
                numbers = challenge.commit(outputs, seed)
            elif order is Order.CHALLENGE:
                numbers = challenge.answer(outputs[count], seed)
            elif order is Order.HAND_OVER:
                claim = float(device != "cuda" or _unchanged(early, _glance(outputs[-1], last_seed)))
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


def _glance(outputs: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """A few of each output's elements, copied on the stream of the caller: there they are what the next op in the stream would read."""
    found = []
    for output in outputs[: challenge.MOST_OUTPUTS]:
        most = max(1, round(_GLANCED ** (1 / max(1, output.dim()))))
        steps = [max(1, -(-size // most)) for size in output.shape]
        found.append(output.detach()[tuple(slice(seed % step, None, step) for step in steps)].clone())
    return found


def _unchanged(early: Sequence[torch.Tensor], now: Sequence[torch.Tensor]) -> bool:
    """Whether both glances show the same, NaNs included."""
    return len(early) == len(now) and all(
        torch.equal(one.double().nan_to_num(), two.double().nan_to_num()) for one, two in zip(early, now, strict=True)
    )


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
