"""After each fault the next candidate is judged normally: ``python tests/gpu/faults.py [NAME …]``.

This process plays the notebook's kernel: it has a context of its own and tensors on the card. One judge gets a fault of the red team's
corpus and then an honest kernel, again and again. At the end the tensors are what they were, and nothing but this process is left.
Needs torch and triton alone, not pytest. Prints one line a fault; exit status 1 if anything is not as it should be.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from workbench.bench.corpus import read  # noqa: E402
from workbench.candidate import Candidate, Verdict  # noqa: E402
from workbench.capture import capture_file  # noqa: E402
from workbench.fleet import Local  # noqa: E402
from workbench.judge.isolation import watchdog  # noqa: E402
from workbench.target import detect_target  # noqa: E402

CORPUS = ROOT / "tests" / "redteam"
FAULTS = (
    "c64_illegal_address_on_the_card", "c64_illegal_address", "c56_exits_with_success", "c56_raises_system_exit", "c56_prints_success",
    "c56_answers_in_the_drivers_place", "c64_kills_everything", "c64_fork_bomb", "c64_fills_the_disk", "c64_fills_the_memory",
    "c64_fills_the_card", "c64_endless_loop", "c64_endless_kernel", "c12_silent_launch_failure",
)  # fmt: skip
HONEST = "h36_reads_the_architecture"


async def main(names: list[str]) -> int:
    mine = torch.randn(1 << 24, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    before = mine.double().sum().item(), mine.clone()
    honest = read(CORPUS / "honest" / f"{HONEST}.py")
    task = capture_file(CORPUS / "ops" / "scale.py", target=detect_target()).task
    fleet = Local(task, limits={"call": 8.0, "load": 30.0, "timing": 15.0}, baselines=("eager",))
    failed = 0
    try:
        await fleet.prepare(None)
        for number, name in enumerate(names):
            case = read(CORPUS / "cheats" / f"{name}.py")
            found = await _judged(fleet, task.candidate_entry, case.source, f"f{number}")
            begun = time.perf_counter()
            after = await _judged(fleet, task.candidate_entry, honest.source, f"h{number}")
            good = after.verdict is Verdict.RIGHT and found.verdict.value in {*case.wanted(True).verdicts, "not_judged"}
            good = good and float(mine.double().sum()) == before[0]
            failed += not good
            print(
                f"{'ok ' if good else 'BAD'} {name}: {found.verdict.value} ({found.reason[:90]}); then {after.verdict.value} in "
                f"{time.perf_counter() - begun:.1f} s{'' if after.verdict is Verdict.RIGHT else ': ' + after.reason[:160]}", flush=True,
            )  # fmt: skip
    finally:
        await fleet.close()
    same = bool(torch.equal(mine, before[1]))
    left = await _left()
    print(f"{'ok ' if same else 'BAD'} the notebook's tensors are {'what they were' if same else 'others'}")
    print(f"{'ok ' if not left else 'BAD'} left running: {left or 'nothing'}")
    return 1 if failed or not same or left else 0


async def _judged(fleet: Local, entry: str, source: str, id: str):  # type: ignore[no-untyped-def]
    return await fleet.evaluate(Candidate(id, "triton", source, entry), {}, id=f"{id}.0")


async def _left() -> list[int]:
    """Processes below this one, when they have had 10 seconds to end."""
    deadline = time.monotonic() + 10
    while (left := [pid for pid in watchdog.tree(os.getpid()) if pid != os.getpid()]) and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    return left


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:] or list(FAULTS))))
