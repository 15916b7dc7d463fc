"""Exchanged elements, containers, and what is neutral in a model: the parts of the checks that no fresh content replaces."""

from __future__ import annotations

import collections
import contextlib
import random
import threading

import pytest
import torch
from conftest import spec

from workbench.inputs import make_inputs
from workbench.judge.protocol import challenge, exchange, state
from workbench.judge.protocol.doorbell import Doorbell, DoorbellSilent, Order
from workbench.judge.protocol.form import form, lazy
from workbench.judge.protocol.shared import SharedFile
from workbench.judge.timing.stopwatch import COLD, LATE, answer_doorbell, call_seed

Pair = collections.namedtuple("Pair", "one two")


@pytest.mark.parametrize("shape", [(96, 160), (3, 40, 50), (4096,), (300, 2)])
def test_an_exchange_moves_two_elements_of_the_middle_and_keeps_the_rest(shape):
    x, y = torch.randn(shape), torch.arange(10)
    for seed in range(5):
        chosen = exchange.choose([y, x], 1, seed)
        out = exchange.apply([y, x], chosen)
        assert out[0] is y and out[1] is not x
        moved = (out[1] != x).reshape(-1).nonzero().reshape(-1).tolist()
        assert sorted(moved) == sorted([chosen.one, chosen.other])
        assert min(moved) >= exchange.EDGE and max(moved) < x.numel() - exchange.EDGE
        assert torch.equal(out[1].reshape(-1).sort().values, x.reshape(-1).sort().values)


def test_an_exchange_keeps_strides_and_the_original():
    base = torch.randn(40, 100)
    x = base[:, :80].t()
    before = x.clone()
    chosen = exchange.choose([x], 0, 3)
    out = exchange.apply([x], chosen)[0]
    assert out.stride() == x.stride() and torch.equal(x, before) and not torch.equal(out, x)


def test_only_inputs_whose_elements_are_alike_can_be_exchanged():
    specs = [
        spec("x", (96, 160)),
        spec("p", (64, 8), kind="probabilities", dim=-1),
        spec("t", (512,), "int64", "integers", lo=0, hi=9),
        spec("s", (8,)),
    ]
    inputs = [torch.randn(96, 160), torch.rand(64, 8), torch.randint(0, 9, (512,)), torch.randn(8)]
    assert exchange.possible(specs, inputs) == [0, 2]
    assert exchange.possible(specs[:1], [torch.randn(1, 160).expand(96, 160)]) == []


class Later(list):
    def __iter__(self):
        yield from ()


class Asked(dict):
    def values(self):
        return []


@pytest.mark.parametrize(
    ("value", "name", "wanted"),
    [
        (torch.ones(1), "", "a tensor"),
        ([torch.ones(1)], "", "1 value"),
        ((torch.ones(1), torch.ones(1)), "", "2 values"),
        (Pair(1, 2), "", "2 values"),
        (torch.topk(torch.ones(4), 2), "", "2 values"),
        ({"a": torch.ones(1), "b": None}, "", "a dict of a, b"),
        (None, "", "NoneType"),
        (Later([1]), "Later", "1 value"),
        ((Later([1]),), "Later", "1 value"),
        (Asked(a=1), "Asked", "a dict of a"),
        ({"a": [Later()]}, "Later", "a dict of a"),
    ],
)
def test_containers_are_named_and_lazy_ones_found(value, name, wanted):
    assert lazy(value) == name and form(value) == wanted


def test_constant_parameters_are_neutral_and_are_drawn_around_their_value():
    module = torch.nn.Sequential(torch.nn.LayerNorm(16), torch.nn.Linear(16, 8))
    specs = state.describe(module)
    assert {item.name for item in specs if state.is_neutral(item)} == {"0.weight", "0.bias"}
    assert state.elements(module) == 16 + 16 + 16 * 8 + 8
    assert state.redraw(module, specs, random.Random(1).randrange(1 << 40), "cpu")
    assert 0.7 < float(module[0].weight.detach().min()) < float(module[0].weight.detach().max()) < 1.3


def honest(sets):
    return lambda x: x * 2


def batching(sets):
    """Computes for all inputs that it finds as soon as the first of them comes."""
    ready = {}

    def run(x):
        if id(x) not in ready:
            import gc

            for item in gc.get_objects():
                if type(item) is torch.Tensor and item.shape == x.shape:
                    ready[id(item)] = item * 2
        return ready.pop(id(x))

    return run


@pytest.mark.parametrize(("make", "right"), [(honest, True), (batching, False)])
def test_a_late_ring_shows_who_computes_for_calls_to_come(make, right):
    specs, count = [spec("x", (13, 17))], 6
    shared = SharedFile.create(1 << 20)
    bell = Doorbell(shared)
    bell.reset()
    settings = {"flush_bytes": 0, "offsets": [4096], "sizes": [13 * 17 * 4]}
    worker = threading.Thread(target=lambda: answer_doorbell(make(None), shared, specs, "cpu", **settings), daemon=True)
    worker.start()
    try:

        def ring(order, **more):
            return bell.ring(order, timeout=20, alive=lambda: worker.is_alive(), **more)

        def fits(seed, place):
            ring(Order.CHALLENGE, seed=7, count=place)
            wanted = [item * 2 for item in make_inputs(specs, call_seed(seed, place), "cpu")]
            return challenge.same(tuple(bell.numbers()), tuple(challenge.answer(wanted, 7)))

        ring(Order.PREPARE, seed=1, count=count, flag=COLD)
        ring(Order.GO, count=count, flag=COLD)
        assert all(fits(1, place) for place in range(count)), "in a usual ring both are right"
        ring(Order.GO, seed=2, count=count, flag=LATE)
        assert all(fits(2, place) for place in range(1, count)) is right
    finally:
        with contextlib.suppress(DoorbellSilent):  # the end is not answered
            bell.ring(Order.END, timeout=0.0, alive=lambda: False)
        worker.join(10)
        bell.close()
