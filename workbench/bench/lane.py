"""A process that benchmarks the experts on one reference file after the other, for `kernelbench`.

    first line in: settings, as `Lane` takes them    ->    nothing
    a path a line                                    ->    its row, as JSON

It ends at the end of its input.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Serves until the input ends. What a reference prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    asyncio.run(_serve(answers))


async def _serve(answers: object) -> None:
    from workbench.bench.expert_judging import Lane
    from workbench.records import encode

    lane = Lane(**json.loads(sys.stdin.readline()))
    loop = asyncio.get_running_loop()
    try:
        while path := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            row = await lane.row(Path(path).stem, Path(path))
            print(json.dumps(encode(row)), file=answers, flush=True)  # type: ignore[call-overload]
    finally:
        await lane.close()


if __name__ == "__main__":
    main()
