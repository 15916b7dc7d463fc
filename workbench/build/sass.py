"""The machine code of a cubin as text, and what it shows: widths of global accesses, and matrix instructions.

The disassembler is the one that Triton brings, or the toolkit's.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)", re.MULTILINE)
_GLOBAL = re.compile(r"\b(?:LDG|STG|LDGSTS)(?:\.[\w:]+)*")
_MATRIX = re.compile(r"\b(HMMA|IMMA|DMMA|BMMA|QMMA|HGMMA|IGMMA|QGMMA|BGMMA)((?:\.\w+)*)")
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


@dataclass(frozen=True)
class Code:
    """One kernel's machine code.

    Attributes:
        text: its instructions.
        vectors: how many global loads and stores it has, by the bytes that one thread moves in each.
        products: operand types of its matrix instructions, such as ``bfloat16`` or ``tf32``; empty where it has none.
    """

    text: str
    vectors: Mapping[int, int] = field(default_factory=dict)
    products: tuple[str, ...] = ()


def disassemble(cubin: bytes) -> dict[str, Code]:
    """The code of each kernel by its mangled name; empty where no disassembler is here.

    Raises:
        ValueError: the disassembler does not take the cubin.
    """
    tool = find_nvdisasm()
    if tool is None:
        return {}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        ran = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, errors="replace", timeout=60, check=False)
    if ran.returncode != 0:
        raise ValueError(f"nvdisasm: {(ran.stderr.strip() or 'no reason given').splitlines()[-1][:200]}")
    parts = _SECTION.split(ran.stdout)
    return {name: read_code(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def read_code(text: str) -> Code:
    """What the instructions show."""
    lines = [line.rstrip() for line in text.splitlines() if "/*" in line or line.startswith(".L_")]
    body = "\n".join(lines)
    vectors: Counter[int] = Counter()
    for access in _GLOBAL.findall(body):
        words = access.split(".")[1:]
        vectors[next((_WIDTHS[word] for word in words if word in _WIDTHS), 4)] += 1
    products = dict.fromkeys(_operand(name, suffix) for name, suffix in _MATRIX.findall(body))
    return Code(body, dict(vectors), tuple(products))


@functools.cache
def find_nvdisasm() -> str | None:
    """The path of the disassembler."""
    spec = find_spec("triton")
    if spec is not None and spec.origin:
        path = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
        if path.is_file():
            return str(path)
    toolkit = Path("/usr/local/cuda/bin/nvdisasm")
    return shutil.which("nvdisasm") or (str(toolkit) if toolkit.is_file() else None)


def _operand(name: str, suffix: str) -> str:
    if "TF32" in suffix:
        return "tf32"
    if "BF16" in suffix:
        return "bfloat16"
    if name.startswith("Q"):
        return "float8"
    return {"I": "int8", "D": "float64", "B": "bit"}.get(name[0], "float16")
