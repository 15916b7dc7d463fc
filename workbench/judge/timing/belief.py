"""Whether to believe a time: the worker's claim against the judge's own clock, against physics, and against the outputs themselves."""

from __future__ import annotations

import math
import statistics as plain_statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from workbench.candidate import Verdict, Witness
from workbench.capture.references import Reference
from workbench.inputs import make_inputs
from workbench.judge.correctness.compare import ROUND_OFF, compare
from workbench.judge.correctness.expected import Error, ExpectedOutput, expect, rms
from workbench.judge.protocol import challenge
from workbench.judge.timing.player import Heard, Player, short
from workbench.judge.timing.stopwatch import call_seed
from workbench.judge.trial import Stop, Trial
from workbench.target import Target
from workbench.task import Task

_REPEATED = 1e-4
"""How far two sums over the same elements may be apart, as a share of their typical size: memory that lies differently is added up in
another order."""

_SPREAD, _SPREAD_SEEDS = 10.0, 8
_COARSEST = 2.0**-8
_FEW_ROUND_OFFS = 9
"""By which a single element may be off."""

REVIEW_RATIO = 10.0
REPLY_FACTOR, REPLY_SLACK_US = 1.7, {"cuda": 50.0, "cpu": 2000.0}
"""How much longer than in a process that does nothing the second of two challenges may take: between honest processes it varies so much,
and on the CPU, where a fingerprint needs all cores, it takes five times as long from one second to the next beside other work."""

LATE_US, LATE_SHARE = 40.0, 0.05
"""How much longer than a second challenge of the same output the first one may take, by the lower quartile: 17 µs was the most of 35 honest
verdicts on an H200."""

IDLE_SHARE, IDLE_SLACK_US = 0.15, {"cuda": 30.0, "cpu": 2000.0}
"""How much longer than a process that does nothing a candidate's may take when nothing is called: a share of what is drawn and flushed,
and a part that does not depend on it."""


@dataclass(frozen=True)
class Null:
    """What a worker that does nothing takes at the same doorbell, in µs: to answer a challenge; and the most that an idle ring may take."""

    most_idle: float
    reply: float


def confirm_time(trial: Trial, player: Player, null: Null, floor_us: float) -> None:
    """The claim against the judge's clock and against physics.

    Raises:
        Stop: time not confirmed.
    """
    assert trial.timing is not None
    claimed = trial.timing.median_us * player.count
    idle = short([idle for block in player.idles for idle in block])
    seen = sorted(player.apart)[len(player.apart) // 4]
    if claimed >= 0.8 * seen - 3.0 and idle > null.most_idle:
        raise Stop(
            Verdict.TIME_NOT_CONFIRMED,
            f"when nothing is called its process takes {idle:.0f} µs from ring to answer, where {null.most_idle:.0f} µs are the most",
        )  # fmt: skip
    if claimed < 0.8 * seen - 3.0:
        raise Stop(
            Verdict.TIME_NOT_CONFIRMED,
            f"its process claims {claimed:.1f} µs, the judge's clock shows {seen:.1f} µs for the same calls",
        )  # fmt: skip
    place = player.setting.place
    replies = [heard.reply_us for heard in player.heard] or [0.0]
    # The middle one, as of the times: who answers early in most calls is found. On the CPU other work lengthens more than every second.
    reply = plain_statistics.median(replies) if place == "cuda" else short(replies)
    again = [reply for block in player.again for reply in block]
    usual = min(plain_statistics.median(again), REPLY_FACTOR * null.reply + REPLY_SLACK_US[place]) if again else null.reply
    if reply > challenge.FACTOR * usual + challenge.SLACK_US:
        raise Stop(
            Verdict.TIME_NOT_CONFIRMED,
            f"it says done before its output is there: asked for a fingerprint it takes {reply:.0f} µs, where {usual:.0f} µs do",
        )  # fmt: skip
    late = sorted(one - two for one, two in zip((heard.reply_us for heard in player.heard), again, strict=False))
    if place == "cuda" and late and late[len(late) // 4] > LATE_US + LATE_SHARE * usual:
        raise Stop(
            Verdict.TIME_NOT_CONFIRMED,
            f"it says done before its output is there: the first fingerprint of an output takes {late[len(late) // 4]:.0f} µs longer than "
            "the second",
        )  # fmt: skip
    if trial.timing.median_us < floor_us:
        raise Stop(
            Verdict.TIME_NOT_CONFIRMED,
            f"{trial.timing.median_us:.2f} µs is faster than physics: moving its bytes takes {floor_us:.2f} µs on this card",
        )  # fmt: skip


def confirm_outputs(trial: Trial, player: Player, reference: Reference, errors: tuple[Error, ...] | None) -> None:
    """Every timed call's fingerprint against the reference; a few calls' bytes in full, and against what their fingerprint was.

    Raises:
        Stop: wrong when timed, or not there when it said done.
    """
    spreads: list[float] | None = None
    for heard in sorted(player.heard, key=lambda heard: heard.outputs is None):  # those with bytes first
        if heard.outputs is None and reference.random:
            continue  # no two results are equal: those that are compared in full are compared by distribution
        task, place = player.setting.task, player.setting.place
        inputs = make_inputs(task.inputs, call_seed(heard.seed, heard.place), place)
        if heard.outputs is not None or errors is None or spreads is None:
            expected = expect(reference, inputs, known=errors)
            errors = errors or tuple(output.error for output in expected.outputs)
            rights = list(expected.outputs)
        else:
            own = [output.detach() for output in reference(*inputs)]
            rights = [
                ExpectedOutput(output, output, error, rms(output), products=reference.products)
                for output, error in zip(own, errors, strict=True)
            ]  # fmt: skip
        if heard.outputs is not None:
            if not heard.in_order:
                raise Stop(
                    Verdict.TIME_NOT_CONFIRMED,
                    "when its call is over in the caller's stream its output is not there yet: it works on another stream, and the "
                    "caller's does not wait for it",
                    Witness(heard.seed, "a timed call"),
                )  # fmt: skip
            _compare(trial, heard, rights)
            _bind(heard, rights)
            spreads = spreads or _spreads(heard.outputs, rights)
        _hold(heard, rights)
        _fit(trial, heard, rights, spreads)


def confirm_late(player: Player) -> None:
    """The last timed call's fingerprint once more, some time after: nothing may have written to the output since.

    Raises:
        Stop: something did.
    """
    last = player.heard[-1]
    numbers, *_ = player.challenge(last.print_seed, last.place)
    if not challenge.same(numbers, last.numbers):
        raise Stop(Verdict.TIME_NOT_CONFIRMED, "its output changed after it said done: something still runs when the call is over")


def physical_floor_us(task: Task, target: Target) -> float:
    """The least time that can be true: what no card can beat, with a margin.

    Outputs may still lie in the L2 when the call is over, so as much of them does not count. Products may be computed in the fastest type
    that is exact enough (three TF32 products for one in float32).
    """
    outputs = sum(output.nbytes for output in task.outputs)
    memory = (task.work.bytes - min(outputs, target.l2_bytes)) / target.bandwidth
    compute = 0.0
    if task.work.matmul_flops:
        peak = target.peak(task.work.matmul_dtype)
        if task.work.matmul_dtype == "float32":
            peak = max(peak, target.peak("tf32"))
        compute = task.work.matmul_flops / peak
    return max(0.95 * memory, 0.8 * compute) * 1e6


def _compare(trial: Trial, heard: Heard, rights: Sequence[ExpectedOutput]) -> None:
    assert heard.outputs is not None
    for number, (output, right) in enumerate(zip(heard.outputs, rights, strict=True)):
        found = compare(output, right, allowed=trial.allowed)
        if not found.right:
            witness = Witness(heard.seed, "a timed call", number, found.index, found.got, found.expected, found.bound, found.pattern)
            raise Stop(Verdict.WRONG, f"right when checked, wrong when timed: {found.reason}", witness)


def _bind(heard: Heard, rights: Sequence[ExpectedOutput]) -> None:
    """The bytes have to be those whose fingerprint was given when the call was over."""
    assert heard.outputs is not None
    again = challenge.prints(challenge.answer(heard.outputs, heard.print_seed), len(rights))
    told = challenge.prints(heard.numbers, len(rights))
    for one, two, right in zip(told, again, rights, strict=False):
        room = _REPEATED * _typical(right)
        sums = all(abs(a - b) <= room or not math.isfinite(b) for a, b in zip(one.sums, two.sums, strict=True))
        if len(told) != len(again) or not sums or not challenge.same(one.samples, two.samples):
            raise Stop(
                Verdict.TIME_NOT_CONFIRMED,
                "the output that it handed over is not the one that was there when it said done",
                Witness(heard.seed, "a timed call"),
            )


def _hold(heard: Heard, rights: Sequence[ExpectedOutput]) -> None:
    """Where a ring has several calls: what was said of each before one was asked about has to be true of that one."""
    if heard.committed is None:
        return
    told = sum(one.sums[0] for one in challenge.prints(heard.numbers, len(rights)))
    room = _REPEATED * sum(_typical(right) for right in rights)
    if not abs(heard.committed - told) <= room and (math.isfinite(told) or math.isfinite(heard.committed)):
        raise Stop(
            Verdict.TIME_NOT_CONFIRMED,
            "of the calls that are timed together, the output that it was asked about is not the one that was there before it was asked",
            Witness(heard.seed, "a timed call"),
        )


def _spreads(outputs: Sequence[torch.Tensor], rights: Sequence[ExpectedOutput]) -> list[float]:
    """How far the sums of a right output are from the reference's: measured, on one that was compared in full."""
    squares = [[0.0] for _ in rights]
    for seed in range(1, _SPREAD_SEEDS + 1):
        ours = challenge.prints(challenge.answer(outputs, seed), len(rights))
        theirs = challenge.prints(challenge.answer([right.reference for right in rights], seed), len(rights))
        for place, (one, two) in enumerate(zip(ours, theirs, strict=True)):
            squares[place] += [(a - b) ** 2 for a, b in zip(one.sums, two.sums, strict=True) if math.isfinite(a - b)]
    return [math.sqrt(max(values)) for values in squares]


def _fit(trial: Trial, heard: Heard, rights: Sequence[ExpectedOutput], spreads: Sequence[float] | None) -> None:
    told = challenge.prints(heard.numbers, len(rights))
    right_prints = challenge.prints(challenge.answer([right.reference for right in rights], heard.print_seed), len(rights))
    for number, (one, two, right) in enumerate(zip(told, right_prints, rights, strict=False)):
        if right.ties is not None or right.draws is not None or (not right.reference.is_floating_point() and spreads and spreads[number]):
            continue  # several answers are right
        at = challenge.sample_places(right.reference.numel(), heard.print_seed, number)
        for place, got, expected in zip(at, one.samples, two.samples, strict=False):
            if not _near(got, expected, right, trial):
                index = tuple(int(part) for part in torch.unravel_index(torch.tensor(place), right.reference.shape))
                witness = Witness(heard.seed, "a timed call", number, index, got, expected, pattern="a random element")
                raise Stop(Verdict.WRONG, f"right when checked, wrong when timed: {got:.7g} where {expected:.7g} is right", witness)
        if spreads is None or number >= len(spreads):
            continue
        # Measured on one output, where all elements may have been rounded alike; few elements are rounded alike often.
        rounding = _round_off(right, trial) * (_FEW_ROUND_OFFS if right.reference.numel() <= challenge.SAMPLES else 1)
        room = _SPREAD * spreads[number] + max(_REPEATED, rounding) * _typical(right)
        if any(math.isfinite(b) and not abs(a - b) <= room for a, b in zip(one.sums, two.sums, strict=True)):
            witness = Witness(heard.seed, "a timed call", number, pattern="a random-weight sum over all elements")
            raise Stop(Verdict.WRONG, "right when checked, wrong when timed: a sum over all its elements is another", witness)


def _near(got: float, expected: float, right: ExpectedOutput, trial: Trial) -> bool:
    if got == expected or (math.isnan(got) and math.isnan(expected)):
        return True
    if not right.reference.is_floating_point():
        return False
    if not math.isfinite(expected):
        return True  # the truth may be finite there, and the full comparison looks at that
    u = _round_off(right, trial)
    return abs(got - expected) <= 5 * right.error.max + _FEW_ROUND_OFFS * u * max(abs(expected), right.scale) + 1e-30


def _round_off(right: ExpectedOutput, trial: Trial) -> float:
    return max(ROUND_OFF.get(right.reference.dtype, 2.0**-24), trial.allowed, _COARSEST if trial.precision else 0.0)


def _typical(right: ExpectedOutput) -> float:
    """The size that a random-weight sum typically has."""
    scale = right.scale or float(right.reference.double().abs().mean()) if right.reference.numel() else 0.0
    return math.sqrt(max(1, right.reference.numel())) * scale + 1e-30
