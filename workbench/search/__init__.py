"""What to try next: role islands, selection, repair, tuning, budget. Pure: ask and tell."""

from workbench.search.mechanisms import SWITCHES, Mechanisms
from workbench.search.roles import ROLES
from workbench.search.search import Search

__all__ = ["ROLES", "SWITCHES", "Mechanisms", "Search"]
