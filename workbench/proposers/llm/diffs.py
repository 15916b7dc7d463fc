"""Search/replace blocks: small changes to a parent's source, as models write them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

_SEARCH = re.compile(r"^\s*<{5,9} ?SEARCH\b.*$", re.I)
_MIDDLE = re.compile(r"^\s*={5,9}\s*$")
_REPLACE = re.compile(r"^\s*>{5,9} ?(REPLACE|UPDATED?)\b.*$", re.I)


@dataclass(frozen=True)
class Block:
    """Replace the lines `search` by the lines `replace`."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


class DiffError(ValueError):
    """The blocks can't be read or applied; one line that says which and why."""


def has_blocks(text: str) -> bool:
    """Whether `text` holds the start of a search/replace block."""
    return any(_SEARCH.match(line) for line in text.split("\n"))


def read_blocks(text: str) -> tuple[Block, ...]:
    """All blocks of `text` in order.

    Raises:
        DiffError: a block lacks its middle or end.
    """
    blocks: list[Block] = []
    search: list[str] | None = None
    replace: list[str] | None = None
    for line in text.split("\n"):
        if _SEARCH.match(line):
            if search is not None:
                raise DiffError(f"search/replace block {len(blocks) + 1} has no end before the next begins")
            search, replace = [], None
        elif search is not None and replace is None and _MIDDLE.match(line):
            replace = []
        elif search is not None and replace is not None and _REPLACE.match(line):
            blocks.append(Block(tuple(search), tuple(replace)))
            search = replace = None
        elif replace is not None:
            replace.append(line)
        elif search is not None:
            search.append(line)
    if search is not None:
        lacking = "'=======' and '>>>>>>> REPLACE'" if replace is None else "'>>>>>>> REPLACE'"
        raise DiffError(f"search/replace block {len(blocks) + 1} was cut off: it lacks {lacking}")
    return tuple(blocks)


def apply_blocks(source: str, blocks: tuple[Block, ...]) -> str:
    """`source` with every block applied, in order.

    A block must match in one place: exactly, else but for spaces at line ends, else but for one common indentation.

    Raises:
        DiffError: a block matches nowhere or in several places, or nothing changes.
    """
    lines = source.rstrip("\n").split("\n")
    for number, block in enumerate(blocks, 1):
        lines = _apply(lines, block, number)
    if lines == source.rstrip("\n").split("\n"):
        raise DiffError("the search/replace blocks change nothing")
    return "\n".join(lines) + "\n"


def _apply(lines: list[str], block: Block, number: int) -> list[str]:
    search = list(block.search)
    while search and not search[0].strip():
        search.pop(0)
    while search and not search[-1].strip():
        search.pop()
    if not search:
        raise DiffError(f"search/replace block {number} has an empty SEARCH part: give the lines to replace")
    for key in (str, str.rstrip, str.strip):
        places = _find([key(line) for line in lines], [key(line) for line in search])
        if len(places) > 1:
            raise DiffError(f"search/replace block {number} matches in {len(places)} places: give more lines around {search[0].strip()!r}")
        if places:
            start = places[0]
            shift = _shift(lines[start : start + len(search)], search) if key is str.strip else ""
            if shift is None:
                continue
            return lines[:start] + [_indent(line, shift) for line in block.replace] + lines[start + len(search) :]
    raise DiffError(f"search/replace block {number} does not apply: {_nearest(lines, search)}")


def _find(lines: list[str], search: list[str]) -> list[int]:
    return [start for start in range(len(lines) - len(search) + 1) if lines[start : start + len(search)] == search]


def _shift(found: list[str], search: list[str]) -> str | None:
    """What has to stand before each line (``-n`` for n columns fewer); None where the lines are not shifted alike."""
    shifts = {
        (len(there) - len(there.lstrip())) - (len(here) - len(here.lstrip()))
        for there, here in zip(found, search, strict=True)
        if here.strip()
    }
    if len(shifts) != 1:
        return None
    columns = shifts.pop()
    return " " * columns if columns >= 0 else f"-{-columns}"


def _indent(line: str, shift: str) -> str:
    if not line.strip():
        return line
    if shift.startswith("-"):
        columns = int(shift[1:])
        return line[min(columns, len(line) - len(line.lstrip())) :]
    return shift + line


def _nearest(lines: list[str], search: list[str]) -> str:
    present = {line.strip() for line in lines}
    missing = next((line.strip() for line in search if line.strip() and line.strip() not in present), None)
    if missing is None:
        return "its lines do not stand together in the parent"
    close = difflib.get_close_matches(missing, list(present), n=1, cutoff=0.5)
    return f"the parent has no line {missing[:80]!r}" + (f"; the nearest is {close[0][:80]!r}" if close else "")
