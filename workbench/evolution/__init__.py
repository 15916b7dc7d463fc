"""One search as it runs: a thread with its event loop; commands in, events out. The loop itself is in `loop`."""

from workbench.evolution.evolution import Evolution
from workbench.evolution.start import open_run, start
from workbench.evolution.view import Detail, View

__all__ = ["Detail", "Evolution", "View", "open_run", "start"]
