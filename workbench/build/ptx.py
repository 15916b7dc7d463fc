"""What the PTX of a CUDA kernel shows: the widths of its global accesses, and its matrix instructions."""

from __future__ import annotations

import math
import re
from collections import Counter

_ENTRY = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)", re.MULTILINE)
_ACCESS = re.compile(r"\b(?:ld|st)(?:\.(?:relaxed|volatile|weak|acquire|release|gpu|sys|cta))*\.global(?P<rest>(?:[.:]\w+)*)")
_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared(?:::\w+)?\.global(?:\.[\w:]+)*\s+\[[^\]]*\],\s*\[[^\]]*\],\s*(\d+)")
_LANES = re.compile(r"\.v([248])\b")
_TYPE = re.compile(r"\.(?:[bus]|f|bf)(8|16|32|64|128)\b")
_FRAGMENT = re.compile(r"\bwmma\.(?:load|store)\.\S+")
_BOUND = re.compile(r"^\s*\.(?:maxntid|reqntid)\s+([\d, ]+)", re.MULTILINE)
_MATRIX = re.compile(r"\b(?:wgmma\.mma_async|wmma\.mma|mma)\.\S+")
_OPERANDS = (
    ("tf32", "tf32"),
    ("bf16", "bfloat16"),
    ("e4m3", "float8"),
    ("e5m2", "float8"),
    ("s8", "int8"),
    ("u8", "int8"),
    ("f64", "float64"),
)


def entries(ptx: str) -> dict[str, str]:
    """The text of each kernel by its mangled name."""
    parts = _ENTRY.split(ptx)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def vectors(text: str) -> dict[int, int]:
    """How many global loads and stores there are, by the bytes that one thread moves in each."""
    found: Counter[int] = Counter()
    for match in _ACCESS.finditer(text):
        lanes, bits = _LANES.search(match["rest"]), _TYPE.search(match["rest"])
        if bits is not None:
            found[int(bits[1]) // 8 * (int(lanes[1]) if lanes else 1)] += 1
    for size in _COPY.findall(text):
        found[int(size)] += 1
    if fragments := sum(".shared" not in access for access in _FRAGMENT.findall(text)):
        found[4] += fragments
    if bulk := text.count("cp.async.bulk"):  # whole tiles: as good as the widest access
        found[16] += bulk
    return dict(found)


def products(text: str) -> tuple[str, ...]:
    """Operand types of the matrix instructions; empty where there are none."""
    return tuple(dict.fromkeys(_operand(instruction) for instruction in _MATRIX.findall(text)))


def most_threads(text: str) -> int:
    """Threads of a block that the kernel was compiled for at most; 0 where its bounds are open."""
    match = _BOUND.search(text)
    return math.prod(int(size) for size in match[1].split(",")) if match is not None else 0


def _operand(instruction: str) -> str:
    words = instruction.split(".")
    return next((name for word, name in _OPERANDS if word in words), "float16")
