"""What the interpreter can't judge, and what it finds out about memory. Light enough for every process to import."""

from __future__ import annotations


class InterpreterUnsupported(Exception):
    """The interpreter has no such operation. The judge says `not_judged` with this reason, never `wrong` or `crashed`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class OutOfBoundsError(Exception):
    """A kernel touched memory that belongs to none of the tensors it was given. On a GPU that is an illegal address, or worse: not one.

    Attributes:
        kernel: its name; `argument`: the tensor it came from; `elements`: how far off; `line`: in the candidate's file.
    """

    def __init__(self, message: str, *, kernel: str = "", argument: str = "", elements: int = 0, program: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.argument = argument
        self.elements = elements
        self.program = program
