"""Which runs a person means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.errors import MisuseError, NoSuchRunError
from workbench.store.summary import RunSummary


def find_run(place: str, runs: Sequence[RunSummary], name: str) -> RunSummary:
    """The run that `name` means among `runs`, newest first."""
    if name == "last" and runs:
        return runs[0]
    fitting = [run for run in runs if run.id == name] or [run for run in runs if name and run.id.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(run.id for run in (fitting or runs)[:5])
    what = "several runs" if fitting else "no run"
    raise NoSuchRunError(f"{place} holds {what} {name!r}" + (f": choose one of {known}" if known else ": it is empty"))


def choose_to_clean(
    runs: Sequence[RunSummary], find: Callable[[str], RunSummary], names: Sequence[str], days: float | None, now: float
) -> tuple[str, ...]:  # fmt: skip
    """The ids that `clean` removes."""
    if not names and days is None:
        raise MisuseError("clean: name the runs to remove, or give their age in days")
    gone = {find(name).id for name in names}
    if days is not None:
        gone |= {run.id for run in runs if run.updated < now - days * 86400}
    return tuple(sorted(gone))
