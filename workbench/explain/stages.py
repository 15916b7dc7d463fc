"""The compiler's stages of one kernel as texts that a person can read, with the machine code taken apart."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.build.sass import find_nvdisasm
from workbench.explain import source_map
from workbench.explain.inspection import Stage

LIMIT = 1_000_000
"""Characters of a stage that are kept."""

_DISASSEMBLER_SECONDS = 60.0
_NOTE_NO_LINES = "the compiler kept no line information"


def stages(
    texts: Mapping[str, str], binary: bytes = b"", *, limit: int = LIMIT, file: str = source_map.FILE, symbol: str = "",
    line_of: Callable[[int], int] = int,
) -> tuple[Stage, ...]:  # fmt: skip
    """All stages of a kernel in the compiler's order.

    Args:
        texts: ``ttir``, ``ttgir``, ``llir``, ``ptx``, ``amdgcn`` or ``cuda``, as the compiler wrote them.
        binary: the cubin, to take apart; empty for AMD, whose assembly is the machine code already.
        limit: characters of a stage to keep.
        file: what the compiler calls the source; `line_of` gives the candidate's line for one of its lines.
        symbol: of the kernel, where the binary holds several.
    """
    readers: dict[str, Callable[[str, str], source_map.Mapped]] = {
        "ttir": source_map.mlir, "ttgir": source_map.mlir, "llir": source_map.llvm, "ptx": source_map.assembly,
        "amdgcn": source_map.assembly,
    }  # fmt: skip
    made = []
    for name, text in texts.items():
        if name == "cuda":
            lines = text.splitlines()
            made.append(_stage(name, lines, [line_of(number) for number in range(1, len(lines) + 1)], limit))
        elif name in readers:
            lines, numbers = readers[name](text, file)
            made.append(_stage(name, lines, [number and line_of(number) for number in numbers], limit))
    if binary:
        made.append(disassembled(binary, texts.get("ptx", ""), limit=limit, file=file, symbol=symbol, line_of=line_of))
    return tuple(made)


def _stage(name: str, lines: list[str], numbers: list[int], limit: int) -> Stage:
    text, cut = "\n".join(lines), False
    if len(text) > limit:
        text, cut = text[: text.rfind("\n", 0, limit)], True
        numbers = numbers[: text.count("\n") + 1]
    found = source_map.pairs(numbers)
    return Stage(name, text, found, cut, "" if found or name == "cuda" else _NOTE_NO_LINES)


def disassembled(
    cubin: bytes, ptx: str = "", *, limit: int = LIMIT, file: str = source_map.FILE, symbol: str = "", line_of: Callable[[int], int] = int,
) -> Stage:  # fmt: skip
    """The machine code of a cubin.

    Args:
        cubin: as the assembler wrote it.
        ptx: that it was made from: it tells who called what was inlined.
        limit, file, symbol, line_of: as for `stages`.
    """
    tool = find_nvdisasm()
    if tool is None:
        return Stage("sass", "", note="nvdisasm is not here: install triton, which brings it, or the CUDA toolkit")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        try:
            ran = subprocess.run(  # our own command line
                [tool, "-g", "-c", str(path)], capture_output=True, text=True, errors="replace", timeout=_DISASSEMBLER_SECONDS, check=False
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return Stage("sass", "", note=f"nvdisasm does not run here: {error}")
    if ran.returncode or not ran.stdout.strip():
        said = (ran.stderr.strip() or f"exit status {ran.returncode}").splitlines()[-1]
        return Stage("sass", "", note=f"nvdisasm can't read this cubin: {said}")
    lines, numbers = source_map.sass(_without_padding(_of_kernel(ran.stdout, symbol)), source_map.callers(ptx, file), file)
    return _stage("sass", lines, [number and line_of(number) for number in numbers], limit)


def _of_kernel(text: str, symbol: str) -> str:
    """The section of one kernel; all of it where there is none of that name."""
    head, *parts = re.split(r"(?m)^(?=//-+ \.text\.)", text)
    own = [part for part in parts if symbol and re.match(rf"//-+ \.text\.{re.escape(symbol)}\s", part)]
    return own[0] if own else head + "".join(parts)


def _without_padding(text: str) -> str:
    """Without the NOPs that fill the section up, but with the first of them."""
    lines = text.splitlines()
    end = len(lines)
    while end and (not lines[end - 1].strip() or re.match(r"\s*(/\*[0-9a-f]+\*/\s+NOP;?|\.L_x_\d+:|//##)", lines[end - 1])):
        end -= 1
    return "\n".join(lines[:end])


_CLASSES = (
    ("matrix", r"[HIDBQ]?(G?MMA|WGMMA|MMA)|WARPGROUP|UTC\w*MMA|v_mfma|v_wmma|v_smfmac"),
    ("load global", r"LDG|LDGSTS|UBLKCP|UTMALDG|(global|buffer|flat)_load"),
    ("store global", r"STG|UTMASTG|UTMAREDG|(global|buffer|flat)_store"),
    ("atomic", r"ATOM|RED\b|RED\.|(global|buffer|flat)_atomic"),
    ("spill", r"LDL|STL|scratch_"),
    ("shared", r"LDS|STS|LDSM|STSM|ATOMS|ds_"),
    ("barrier", r"BAR|DEPBAR|SYNCS|WARPSYNC|MEMBAR|FENCE|s_barrier|s_waitcnt"),
    ("exchange", r"SHFL|VOTE|REDUX|v_readlane|v_readfirstlane|.*_dpp"),
    ("special", r"MUFU|v_(exp|log|rcp|rsq|sqrt|sin|cos)_"),
    ("convert", r"F2F|F2I|I2F|F2FP|FRND|I2FP|v_cvt"),
    ("float", r"F(ADD|MUL|FMA|MNMX|SETP|SET|SEL|SWZADD|CHK)|H(ADD|MUL|FMA|MNMX|SETP)2|D(ADD|MUL|FMA|SETP)|v_\w*(f16|f32|f64|bf16)"),
    ("control", r"BRA|BRX|JMP|CALL|RET|EXIT|BSSY|BSYNC|BREAK|BMOV|NANOSLEEP|s_(c?branch|endpgm|setpc|swappc)"),
    ("integer", r"U?(IADD|IMAD|ISETP|LOP|SHF|LEA|IMNMX|VIMNMX|PRMT|SEL|POPC|FLO|BREV|IABS|ISCADD|VIADD|PLOP|LDC|MOV|SGXT|BMSK)|S2|CS2|"
     r"P2R|R2P|R2UR|MOV|PLOP|v_|s_"),
)  # fmt: skip
_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _CLASSES)


def instructions(stage: Stage) -> tuple[tuple[str, int], ...]:
    """How many machine instructions of each class a ``sass`` or ``amdgcn`` stage has, most first."""
    if stage.name == "sass":
        words = re.findall(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", stage.text, re.M)
    elif stage.name == "amdgcn":
        body = stage.text.split(".section\t.rodata", 1)[0]
        words = re.findall(r"^\s+((?:v|s|ds|global|buffer|flat|scratch)_\w+)", body, re.M)
    else:
        return ()
    counts = Counter(next((name for name, pattern in _PATTERNS if pattern.match(word)), "other") for word in words if word != "NOP")
    return tuple(counts.most_common())
