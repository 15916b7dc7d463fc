"""Keeping torch's tracers from talking to the person: what they complain of becomes one line of a note or an error."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import TextIO

LOGGERS = ("torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes", "torch._export.non_strict_utils")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Holds back warnings, torch's logs of failing ops, and what this thread prints to stderr; other threads print as ever."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(_Muted(sys.stderr)):
            warnings.simplefilter("ignore")  # what the op warns of, it warned of when it ran
            yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


class _Muted(io.TextIOBase):
    """A stream that drops what the thread writes that made it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.thread = threading.get_ident()

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self.thread else self.stream.write(text)

    def flush(self) -> None:
        self.stream.flush()
