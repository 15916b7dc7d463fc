"""What NVRTC and its assembler say, as one line for people and with the line of the candidate's own module."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_MESSAGE = re.compile(r"^(?P<file>[^()]+)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)$")
_ASSEMBLER = re.compile(r"^ptxas (?:error|fatal)\s*:\s*(?P<text>.*)$")
_SHARED = re.compile(
    r"Entry function '(?P<name>[^']+)' uses too much shared data \((?P<size>0x[0-9a-f]+|\d+) bytes, (?P<most>0x[0-9a-f]+|\d+) max\)"
)
_UNKNOWN_KERNEL = re.compile(r'name expression was:\s*"\s*(?P<name>[^"]+?)\s*"')
_ROOM = 4000


@dataclass(frozen=True)
class CudaMessage:
    """The first error. `line` is of the CUDA text, counted from 1; None where it lies elsewhere. `more`: how many follow."""

    text: str
    line: int | None = None
    more: int = 0

    def __str__(self) -> str:
        return self.text + (f" (and {self.more} more)" if self.more else "")


def first_error(log: str) -> CudaMessage:
    """The error that a person should mend first.

    >>> str(first_error('candidate.cu(2): error: identifier "y" is undefined'))
    'identifier "y" is undefined'
    """
    unknown = [match["name"] for match in _UNKNOWN_KERNEL.finditer(log)]
    found: list[CudaMessage] = []
    for line in log.splitlines():
        if match := _MESSAGE.match(line):
            if match["file"] == "__nv_name_map":
                continue  # one for each name in KERNELS that does not exist; told below, in clearer words
            where = int(match["line"]) if match["file"].endswith(".cu") and "/" not in match["file"] else None
            away = "" if match["file"].endswith(".cu") else f" in {match['file'].rpartition('/')[2]}"
            found.append(CudaMessage(_tidy(match["text"]) + away, where))
        elif match := _ASSEMBLER.match(line):
            found.append(CudaMessage(_assembler(match["text"])))
    if not found and unknown:
        return CudaMessage(f"the source defines no kernel {unknown[0]!r}: name it as its __global__ function is, with template arguments")
    if not found:
        said = next((line.strip() for line in log.splitlines() if line.strip()), "the compiler gave no reason")
        return CudaMessage(_tidy(said))
    # An error in a header comes from the line that uses it, which the compiler names next.
    first = next((message for message in found if message.line is not None), found[0])
    return CudaMessage(first.text, first.line, len(found) - 1)


def mapped_log(log: str, module_line: Callable[[int], int]) -> str:
    """The log with the module's lines in place of the text's, cut to what is worth keeping."""

    def line(match: re.Match[str]) -> str:
        return f"line {module_line(int(match['line']))}:"

    text = re.sub(r"^[^()/]+\.cu\((?P<line>\d+)\):", line, log.replace("\r", ""), flags=re.MULTILINE)
    kept = [
        line for line in text.splitlines() if not line.startswith(("__nv_name_map", "  #pragma nv_mangled_name", "Remark: The warnings"))
    ]
    return "\n".join(kept).strip()[:_ROOM]


def _assembler(text: str) -> str:
    if match := _SHARED.search(text):
        return (
            f"{match['name']} declares {int(match['size'], 0)} bytes of shared memory where {int(match['most'], 0)} are possible: "
            "take it as extern __shared__ and give its size at the launch"
        )
    return f"ptxas: {_tidy(text)}"


def _tidy(text: str) -> str:
    return " ".join(text.split())[:300]
