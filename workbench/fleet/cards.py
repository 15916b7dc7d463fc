"""Which GPUs of this machine the judges of one fleet use, told without importing anything that would start a driver."""

from __future__ import annotations

import os
from pathlib import Path

_DRIVER = Path("/proc/driver/nvidia/gpus")


def visible() -> list[str]:
    """The cards that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them; empty where there are none of NVIDIA's."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip() not in ("", "-1")]
    try:
        return [str(number) for number, _ in enumerate(sorted(_DRIVER.iterdir()))]
    except OSError:
        return []


def of_judge(number: int, device: str) -> str | None:
    """The card of a fleet's judge with that number: they take turns. None where there is no choice."""
    cards = visible() if device in ("auto", "cuda") else []
    return cards[number % len(cards)] if len(cards) > 1 else None
