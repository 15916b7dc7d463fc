"""In which container tensors come back: a caller of the reference unpacks a tuple, or asks a dict for a key.

A container may also be a trick: a list or dict of a class of its own that computes its items when somebody walks through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def form(value: Any) -> str:
    """``a tensor``, ``2 values`` (a tuple or a list), ``a dict of loss, logits``, or the name of a type."""
    if isinstance(value, torch.Tensor):
        return "a tensor"
    if isinstance(value, Mapping):
        return f"a dict of {', '.join(map(str, value))}"[:200]
    if isinstance(value, (tuple, list)):
        return f"{len(value)} value{'s' if len(value) != 1 else ''}"
    return type(value).__name__[:60]


def lazy(value: Any) -> str:
    """The name of a class that makes its items when it is walked; empty for tensors and plain containers of them."""
    if isinstance(value, (tuple, list)):
        own = type(value).__iter__ not in (tuple.__iter__, list.__iter__)
        return type(value).__name__ if own else next(filter(None, map(lazy, value)), "")
    if isinstance(value, Mapping):
        own = not isinstance(value, dict) or type(value).values is not dict.values
        return type(value).__name__ if own else next(filter(None, map(lazy, value.values())), "")
    return ""
