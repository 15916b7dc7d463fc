"""How fast, and whether to believe it."""
