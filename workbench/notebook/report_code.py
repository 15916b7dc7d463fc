"""Code and diffs as lines that a template can show: each piece is text and the name of its colour, never markup."""

from __future__ import annotations

import io
import keyword
import token
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.explain.diff import unified

_LONGEST = 200_000


@dataclass(frozen=True)
class Piece:
    """Some text of a line. `kind` is ``keyword``, ``string``, ``number``, ``comment`` or empty."""

    text: str
    kind: str = ""


def highlighted(source: str) -> list[list[Piece]]:
    """The lines of a Python source. What is no Python is shown plain."""
    lines = source[:_LONGEST].splitlines()
    try:
        marks = list(_marks(source[:_LONGEST]))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return [[Piece(line)] for line in lines]
    out: list[list[Piece]] = []
    by_line: dict[int, list[tuple[int, int, str]]] = {}
    for number, start, end, kind in marks:
        by_line.setdefault(number, []).append((start, end, kind))
    for number, line in enumerate(lines, 1):
        pieces, at = [], 0
        for start, end, kind in by_line.get(number, []):
            if start > at:
                pieces.append(Piece(line[at:start]))
            pieces.append(Piece(line[start:end], kind))
            at = max(at, min(end, len(line)))
        pieces.append(Piece(line[at:]))
        out.append([piece for piece in pieces if piece.text])
    return out


def changes(old: str, new: str, old_name: str, new_name: str) -> list[tuple[str, str]]:
    """Lines of a unified diff, each with ``add``, ``del``, ``place`` or nothing."""
    found = []
    for line in unified(old, new, old_name, new_name)[:_LONGEST].splitlines():
        kind = "place" if line.startswith(("@@", "---", "+++")) else {"+": "add", "-": "del"}.get(line[:1], "")
        found.append((kind, line))
    return found


def _marks(source: str) -> Iterator[tuple[int, int, int, str]]:
    """(line, first column, column after the last, kind) of what is coloured."""
    strings = {token.STRING, getattr(token, "FSTRING_START", -1), getattr(token, "FSTRING_MIDDLE", -1), getattr(token, "FSTRING_END", -1)}
    lines = source.splitlines()
    for one in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = ""
        if one.type == token.NAME and (keyword.iskeyword(one.string)):
            kind = "keyword"
        elif one.type in strings:
            kind = "string"
        elif one.type == token.NUMBER:
            kind = "number"
        elif one.type == token.COMMENT:
            kind = "comment"
        if not kind:
            continue
        (first, start), (last, end) = one.start, one.end
        for number in range(first, last + 1):
            width = len(lines[number - 1]) if number <= len(lines) else 0
            yield number, start if number == first else 0, end if number == last else width, kind
