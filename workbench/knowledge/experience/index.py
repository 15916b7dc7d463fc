"""Text search over cards: the BM25 of SQLite's full-text index, which comes with Python."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping

_COMMON = set(re.findall(r"\w+", """
    a an and are as at be by for from has in is it its no not of on one or so than that the this to two what where with
"""))  # fmt: skip


def relevance(texts: Mapping[str, str], query: str) -> dict[str, float]:
    """How well each text meets the words of `query`: 1 for the best, 0 for none (Robertson and Zaragoza, 2009).

    Words are stemmed, so that ``reductions`` finds ``reduction``. A few hundred short texts take a millisecond or two, so there is no index
    to keep in step with the cards.

    >>> relevance({"a": "row reductions", "b": "matrix product"}, "a reduction over rows")
    {'a': 1.0, 'b': 0.0}
    """
    words = list(dict.fromkeys(word for word in re.findall(r"[a-z0-9]+", query.lower()) if word not in _COMMON))
    found = dict.fromkeys(texts, 0.0)
    if not words or not texts:
        return found
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE cards USING fts5(id UNINDEXED, body, tokenize = 'porter unicode61')")
        connection.executemany("INSERT INTO cards VALUES (?, ?)", texts.items())
        quoted = " OR ".join(f'"{word}"' for word in words)  # quoted, a word is never an operator of the query language
        for name, score in connection.execute("SELECT id, bm25(cards) FROM cards WHERE cards MATCH ?", (quoted,)):
            found[name] = -score  # SQLite's is negative, the better the lower
    finally:
        connection.close()
    best = max(found.values())
    return {name: round(score / best, 9) if best > 0 else 0.0 for name, score in found.items()}
