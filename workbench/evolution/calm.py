"""Long lists of records are made without the garbage collector looking through them again and again."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def calm() -> Iterator[None]:
    """Holds the garbage collector while much is made and nothing is thrown away: reading a long run takes a third less.

    What was made counts as old afterwards. Else the collector looks through all of it, three times, at whatever comes next: with ten
    thousand variants that is a third of a second, in the middle of the first board's opening.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if not gc.get_freeze_count():  # what somebody else has frozen stays so
                gc.freeze()
                gc.unfreeze()
            gc.enable()
