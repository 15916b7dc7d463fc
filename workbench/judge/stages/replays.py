"""Whether a result is computed from the inputs that it is for, or kept from others: what fresh content alone does not show.

Two elements of one input change places (see `exchange`), behind the same pointers: a cache that looks at a part of the content answers
with the old result. And all outputs of these calls are looked at again at the end: buffers that are handed out in turn show then.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import torch

from workbench.judge.correctness.ahead import Draw
from workbench.judge.correctness.checks import Caller
from workbench.judge.correctness.expected import Expected
from workbench.judge.correctness.inputsets import InputSet
from workbench.judge.protocol import exchange

_FEWEST = 2


class Kept(NamedTuple):
    """The outputs of call number `call` of the worker."""

    call: int
    expected: Expected
    outputs: list[torch.Tensor]


def check(caller: Caller, kind: InputSet, kept: Sequence[Kept], *, most: int) -> None:
    """Calls with exchanged elements, an input each, and then a look at everything that was returned.

    Args:
        kept: of the calls before, all on `kind`; the last of them is the one whose inputs are exchanged.
        most: calls.

    Raises:
        Stop: with a witness.
    """
    all_kept, last = list(kept), caller.last
    assert last is not None
    if not last.expect().random:
        places = exchange.possible(kind.specs, last.inputs)
        for place in (places * _FEWEST)[: max(_FEWEST, min(most, len(places)))]:
            last = _exchanged(last, place, dataclasses.replace(kind, name=f"{kind.name}, two elements exchanged"))
            known = [output.error for output in all_kept[-1].expected.outputs]
            call = caller.calls
            all_kept.append(Kept(call, *caller.check(last.kind, poison="nan", rewrite=True, known=known, draw=last)))
    look_again(caller, kind, all_kept)


def look_again(caller: Caller, kind: InputSet, kept: Sequence[Kept]) -> None:
    """Outputs of earlier calls must still hold what they held.

    Raises:
        Stop: a later call changed one.
    """
    for call, expected, outputs in kept:
        caller.check_kept(call, expected, outputs, kind)


def _exchanged(draw: Draw, place: int, kind: InputSet) -> Draw:
    """The same draw with two elements of one input exchanged. Of several exchanges on top of each other the worker is told all."""
    chosen = exchange.choose(draw.inputs, place, draw.seed + len(draw.exchanges))
    again = copy.copy(draw)
    again.kind, again.expected = kind, None
    again.inputs = exchange.apply(draw.inputs, chosen)
    again.exchanges = (*draw.exchanges, chosen)
    return again
