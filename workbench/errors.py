"""The exceptions of the workbench.

::

    WorkbenchError              everything raised here on purpose
    ├── MisuseError             the person's input can't be used; one line, with the mend
    │   ├── CaptureError        a cell or object can't become a Task
    │   ├── NoSuchRunError      the store holds no such run
    │   └── NoSuchCandidateError
    ├── AcceptRefusedError      a variant did not pass the second judging
    │   └── ConsentNeededError  the person may take it all the same
    ├── OrderError              ask/tell called in the wrong order
    ├── StoreError              the database is lost, full or locked
    ├── JudgeLostError          a judge process died or can't be started
    └── ModelStopped            no language model can be asked any more; the reason is one line

A *candidate's* failure is never an exception: it is a `Verdict` in an `Evaluation`.
"""

from __future__ import annotations


class WorkbenchError(Exception):
    """Base of every error that the workbench raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints: one line in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class MisuseError(WorkbenchError):
    """The person's input can't be used. The message is one line and names the mend."""


class CaptureError(MisuseError):
    """A cell, function or module can't become a Task. Names the object and the mend."""


class NoSuchRunError(MisuseError):
    """The store holds no run of that name."""


class NoSuchCandidateError(MisuseError):
    """The run holds no candidate of that id."""


class AcceptRefusedError(WorkbenchError):
    """A variant did not pass the second judging, so it is not put into the notebook."""


class ConsentNeededError(AcceptRefusedError):
    """It would be put there with the person's consent. `to` says what that is to; the message, how to give it in Python as well."""

    def __init__(self, to: str) -> None:
        super().__init__(f"{to}; take it all the same with consent=True (--consent)")
        self.to = to


class OrderError(WorkbenchError):
    """`ask` and `tell` were called in an order that the search can't follow."""


class StoreError(WorkbenchError):
    """The database is lost, full or locked. The message says which, and what to do."""


class JudgeLostError(WorkbenchError):
    """A judge process died, can't be started, or broke the protocol."""


class ModelStopped(WorkbenchError):
    """No language model can be asked any more: a bad key, no quota, a budget used up, an endpoint that stays silent.

    Attributes:
        kind: ``key``, ``model``, ``quota``, ``context``, ``request``, ``endpoint`` or ``budget``.
        usage: the `workbench.brief.Usage` of what was spent before it stopped; None where that was nothing.
    """

    def __init__(self, reason: str, kind: str = "endpoint", usage: object = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.usage = usage
