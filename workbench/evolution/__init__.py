"""One search as it runs: a thread with its event loop; commands in, events out. The loop itself is in `loop`."""

from workbench.evolution.choosing import choose_proposers
from workbench.evolution.evolution import Evolution
from workbench.evolution.start import open_run, start
from workbench.evolution.stream import Writing, Written
from workbench.evolution.view import Detail, View

__all__ = ["Detail", "Evolution", "View", "Writing", "Written", "choose_proposers", "open_run", "start"]
