"""First stage: what the text alone tells. Only tampering, and what is no module, ends here."""

from __future__ import annotations

from workbench.candidate import Verdict
from workbench.judge.context import Context
from workbench.judge.text import labels
from workbench.judge.trial import Stop, Trial


def read(context: Context, trial: Trial) -> None:
    """Labels from the text."""
    reading = labels.read(trial.candidate.source)
    trial.labels |= set(reading.labels)
    if reading.error:
        raise Stop(Verdict.DOES_NOT_BUILD, reading.error)
    if reading.tampering:
        raise Stop(Verdict.REFUSED, reading.tampering)
