"""Several judges of one fleet: which card each uses, and what they tell each other."""

from __future__ import annotations

import asyncio

import pytest
from test_fleet_local import TASK

from workbench.candidate import Candidate, Verdict
from workbench.fleet import Local, cards
from workbench.fleet.local import beside

PLAIN = "def scale(x):\n    return x * 2 + 1\n"


@pytest.mark.parametrize(
    ("named", "device", "wanted"),
    [("2,3", "auto", ["2", "3", "2"]), ("2,3", "cpu", [None] * 3), ("0", "cuda", [None] * 3), ("", "auto", [None] * 3)],
)
def test_judges_are_spread_over_the_cards_that_may_be_used(monkeypatch, named, device, wanted):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert [cards.of_judge(number, device) for number in range(3)] == wanted


def test_cards_are_counted_without_a_driver(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(cards, "_DRIVER", tmp_path / "gpus")
    assert cards.visible() == []
    for name in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / "gpus" / name).mkdir(parents=True)
    assert cards.visible() == ["0", "1"] and beside() >= 1


def test_what_one_judge_measured_the_others_take_over():
    async def run():
        fleet = Local(TASK, device="host", judges=2)
        try:
            prepared = await fleet.prepare(None)
            found = await asyncio.gather(*(fleet.evaluate(Candidate(f"k{k}", "triton", PLAIN, "scale"), {}, id=f"k{k}.0") for k in (1, 2)))
            told = [await judge.ask({"do": "measured"}) for judge in fleet._judges]
            return prepared, found, told
        finally:
            await fleet.close()

    prepared, found, told = asyncio.run(run())
    eager = prepared.baselines[0].timing.median_us
    assert len(told) == 2 and told[0] == told[1] and told[0]["baselines"][0]["timing"]["median_us"] == eager
    assert all(one.verdict in (Verdict.RIGHT, Verdict.TIME_NOT_CONFIRMED) for one in found), found
