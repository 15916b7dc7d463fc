"""What compute-sanitizer said of a candidate, as a record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sanitized:
    """What came of it. `finding` refuses the candidate; `notes` are labels; `ran` are the tools that ran to their end."""

    ran: tuple[str, ...] = ()
    finding: str = ""
    notes: tuple[str, ...] = ()
