"""Text search over cards: the BM25 of SQLite's full-text index, which comes with Python."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping

_COMMON = set(re.findall(r"\w+", """
    a an and are as at be by for from has in is it its no not of on one or so than that the this to two what where with
"""))  # fmt: skip


class TextIndex:
    """Texts by name, and how well each meets a query. It takes in only what has changed since the last query.

    >>> TextIndex().relevance({"a": "row reductions", "b": "matrix product"}, "a reduction over rows")
    {'a': 1.0, 'b': 0.0}
    """

    def __init__(self) -> None:
        # Its owner may be made in one thread and used in another; it is never used by two at once.
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._connection.execute("CREATE VIRTUAL TABLE cards USING fts5(body, tokenize = 'porter unicode61')")
        self._known: dict[str, tuple[int, str]] = {}
        self._names: dict[int, str] = {}
        self._rows = 0

    def relevance(self, texts: Mapping[str, str], query: str) -> dict[str, float]:
        """1 for the best text, 0 for one that has no word of the query (Robertson and Zaragoza, 2009).

        Words are stemmed, so that ``reductions`` finds ``reduction``.
        """
        words = list(dict.fromkeys(word for word in re.findall(r"[a-z0-9]+", query.lower()) if word not in _COMMON))
        found = dict.fromkeys(texts, 0.0)
        if not words or not texts:
            return found
        self._follow(texts)
        quoted = " OR ".join(f'"{word}"' for word in words)  # quoted, a word is never an operator of the query language
        for row, score in self._connection.execute("SELECT rowid, bm25(cards) FROM cards WHERE cards MATCH ?", (quoted,)):
            found[self._names[row]] = -score  # SQLite's is negative, the better the lower
        best = max(found.values())
        return {name: round(score / best, 9) if best > 0 else 0.0 for name, score in found.items()}

    def _follow(self, texts: Mapping[str, str]) -> None:
        """Makes the index hold these texts and no others."""
        gone = [name for name, (_, text) in self._known.items() if texts.get(name) != text]
        for name in gone:
            row, _ = self._known.pop(name)
            del self._names[row]
            self._connection.execute("DELETE FROM cards WHERE rowid = ?", (row,))
        for name, text in texts.items():
            if name not in self._known:
                self._rows += 1
                self._known[name], self._names[self._rows] = (self._rows, text), name
                self._connection.execute("INSERT INTO cards (rowid, body) VALUES (?, ?)", (self._rows, text))
