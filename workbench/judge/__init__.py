"""Right? Honest? How fast? Start with `judge.py`; `workers` runs in the sandbox, all else in the judge's own process."""
