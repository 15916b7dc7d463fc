"""How many tokens a text has, near enough to keep a budget without any model's own tokenizer."""

from __future__ import annotations

import math
from collections.abc import Iterable

from workbench.proposers.llm.calls import Message

BYTES_PER_TOKEN = 3.5
"""UTF-8 bytes of one token. English prose has about 4.5, dense Triton code about 3, so code-heavy prompts come out about right."""

MESSAGE_TOKENS = 4
"""What a chat format adds to each message."""


def count(text: str) -> int:
    """Estimated tokens of `text`.

    >>> count("x = tl.load(x_ptr + offsets, mask=mask)")
    12
    """
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN)


def count_messages(messages: Iterable[Message]) -> int:
    """Estimated prompt tokens of a chat."""
    return sum(count(message.content) + MESSAGE_TOKENS for message in messages)
