"""Experience: what was done on which kind of op, what came of it, and how to find it again. Pure and in memory."""

from workbench.knowledge.experience.card import Card, Trigger
from workbench.knowledge.experience.effect import effect_of
from workbench.knowledge.experience.features import Features, features
from workbench.knowledge.experience.library import Library
from workbench.knowledge.experience.seeds import seed_cards

__all__ = ["Card", "Features", "Library", "Trigger", "effect_of", "features", "seed_cards"]
