"""Where judges run. `Local` runs them on this machine; `judge_once` is one fresh judge for one candidate."""

from __future__ import annotations

from workbench.fleet.local import Local
from workbench.fleet.once import judge_once

__all__ = ["Local", "judge_once"]
