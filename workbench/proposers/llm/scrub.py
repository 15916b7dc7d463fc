"""Keeps keys and host names out of every text that is shown, stored or raised."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), r"\1 …"),
    (re.compile(r"\b(sk|pk|rk|key|gsk|xai|org|proj)-[\w-]{8,}"), "…"),
    (re.compile(r"(?i)(api[_-]?key|token|authorization)(['\"]?\s*[:=]\s*['\"]?)[\w.~+/=-]{6,}"), r"\1\2…"),
    (re.compile(r"(?i)\bhttps?://[^\s'\"<>)]+"), "the endpoint"),
)


def secrets_of(key: str | None, base_url: str | None) -> tuple[str, ...]:
    """The texts that must not be seen: the key, and the endpoint's address whole and in parts."""
    found = [key or "", base_url or ""]
    if base_url:
        parts = urlsplit(base_url if "//" in base_url else f"//{base_url}")
        found += [parts.netloc, parts.hostname or "", parts.password or "", parts.username or ""]
    return tuple(sorted({text for text in found if len(text) > 3}, key=len, reverse=True))


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` on one line, with `secrets` and whatever looks like a key or an address taken out.

    >>> scrub("401 for key sk-abcdefghijkl\\nat http://10.0.0.5:8000/v1", ["10.0.0.5"])
    '401 for key … at the endpoint'
    """
    for secret in secrets:
        text = re.sub(re.escape(secret), "…", text, flags=re.IGNORECASE)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())[:300]
