"""What goes into a prompt and what does not: pieces with a value each, and a budget in tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.proposers.llm.tokens import count

MUST = float("inf")
"""The value of a piece that is never left out."""


@dataclass(frozen=True)
class Piece:
    """One part of a prompt.

    Attributes:
        name: where the template puts it.
        value: what it is worth; pieces of less value go first when there is too little room.
        least: where the whole text does not fit, a head and tail of this many tokens is kept; 0 keeps all or nothing.
    """

    name: str
    text: str
    value: float
    least: int = 0


def select(pieces: Sequence[Piece], room: int, frame: int = 0) -> Mapping[str, str]:
    """The texts that go in, by name: the most valuable first, wherever the template puts them. Each takes `frame` tokens beyond its own.

    What MUST go in goes in even where it alone is over `room`; those of its pieces that can be shortened are shortened then.

    >>> select([Piece("log", "x" * 350, 0.2), Piece("parent", "y" * 70, MUST), Piece("card", "z" * 35, 0.7)], 40)
    {'parent': 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy', 'card': 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz'}
    """
    chosen: dict[str, str] = {}
    pieces = [piece for piece in pieces if piece.text.strip()]
    musts = sum(count(piece.text) + frame for piece in pieces if piece.value == MUST)
    for piece in sorted(pieces, key=lambda piece: -piece.value):  # stable: of equals, the first
        text = piece.text
        size = count(text) + frame
        if piece.value == MUST:
            over = musts - room
            musts -= size
            if over > 0 and piece.least:
                text = shorten(text, max(piece.least, size - frame - over))
        elif size > room:
            if not piece.least or piece.least + frame > room:
                continue
            text = shorten(text, room - frame)
        chosen[piece.name] = text
        room -= count(text) + frame
    return chosen


def shorten(text: str, tokens: int) -> str:
    """The first and last lines of `text` within `tokens`, with a note of what is gone. The end gets two thirds: it is where errors are."""
    if count(text) <= tokens:
        return text
    lines = text.split("\n")
    note = "[… {} lines left out …]"
    room = max(8, tokens - count(note) - 1)
    head, tail = _take(lines, room // 3), _take(lines[::-1], room - room // 3)[::-1]
    gone = len(lines) - len(head) - len(tail)
    if gone <= 0 or not (head or tail):  # a few very long lines: cut by characters
        characters = int(room * 3.5)
        return text[: characters // 3] + " [… cut …] " + text[len(text) - (characters - characters // 3) :]
    return "\n".join([*head, note.format(gone), *tail])


def _take(lines: Sequence[str], tokens: int) -> list[str]:
    taken: list[str] = []
    for line in lines:
        tokens -= count(line + "\n")
        if tokens < 0:
            break
        taken.append(line)
    return taken
