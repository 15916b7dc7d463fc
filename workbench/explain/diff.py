"""What changed between two sources."""

from __future__ import annotations

import difflib


def unified(old: str, new: str, old_name: str, new_name: str, *, context: int = 3) -> str:
    """A unified diff, empty where the two are equal.

    >>> print(unified("a\\nb\\n", "a\\nc\\n", "k1", "k2"), end="")
    --- k1
    +++ k2
    @@ -1,2 +1,2 @@
     a
    -b
    +c
    """
    lines = difflib.unified_diff(_lines(old), _lines(new), old_name, new_name, n=context)
    return "".join(lines)


def _lines(text: str) -> list[str]:
    # A last line without an end would run into the next one of the diff.
    return [f"{line}\n" for line in text.splitlines()]
