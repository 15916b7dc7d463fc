"""Tab completion for both forms of the magic: verbs, options, ids of variants and runs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from workbench.notebook.session import SESSION, open_store

PROPOSERS = ("experts", "llm", "experts,llm")
"""What ``--proposer`` may say, in the spellings that one wants."""
_MAGIC = re.compile(r"^\s*(%%?)evolve_kernel\s+(.*)$")


class Completer:
    """What can stand next in a line of the magic."""

    def __init__(self, verbs: tuple[str, ...], take_id: tuple[str, ...], options: tuple[str, ...], accept_options: tuple[str, ...]) -> None:
        self._verbs, self._take_id = verbs, take_id
        self._options, self._accept_options = options, accept_options
        self.matcher: Any = self._make_matcher()

    def next_words(self, text: str) -> tuple[str, list[str]]:
        """The word at the end of `text`, and what it may become. `text` is the line up to the cursor."""
        found = _MAGIC.match(text)
        if not found:
            return "", []
        mark, rest = found.groups()
        words = rest.split(" ")
        word, before = words[-1], [one for one in words[:-1] if one]
        return word, [one for one in self._choices(mark, before) if one.startswith(word)]

    def _choices(self, mark: str, before: list[str]) -> Iterable[str]:
        if mark == "%%":
            if before and before[-1] == "--target":
                from workbench.target import TARGETS

                return TARGETS
            if before and before[-1] == "--proposer":
                return PROPOSERS
            return [option for option in self._options if option not in before]
        if not before:
            return self._verbs
        verb = before[0]
        if verb == "open":
            return _runs() if len(before) == 1 else ()
        if verb in self._take_id and len(before) < (3 if verb == "diff" else 2):
            return _ids()
        if verb == "accept":
            return [option for option in self._accept_options if option not in before]
        return ()

    def _make_matcher(self) -> Any:
        @context_matcher(identifier="workbench.evolve_kernel")  # type: ignore[untyped-decorator]
        def matcher(context: CompletionContext) -> dict[str, Any]:
            word, choices = self.next_words(context.text_until_cursor)
            result: dict[str, Any] = {
                "completions": [SimpleCompletion(one, type="magic") for one in choices],
                "suppress": bool(choices),
                "ordered": True,
            }
            if choices:
                result["matched_fragment"] = word
            return result

        return matcher


def _ids() -> list[str]:
    """Variants of the current run, newest first, since those are what one speaks of."""
    if SESSION.current_id not in SESSION.runs:
        return []
    return ["best", *reversed([row["id"] for row in SESSION.current.rows()])]


def _runs() -> list[str]:
    try:
        stored = [summary.id for summary in open_store().runs()]
    except Exception:  # a broken store must not break typing
        stored = []
    return list(dict.fromkeys([*SESSION.runs, *stored]))
