"""Reads registers, stack and parameters of a kernel from a cubin: a 64-bit ELF file with sections ``.nv.info`` and ``.symtab``."""

from __future__ import annotations

import struct

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_REGISTERS = 0x2F  # EIATTR_REGCOUNT
_STACK = 0x12  # EIATTR_MIN_STACK_SIZE
_FRAME = 0x11  # EIATTR_FRAME_SIZE
_PARAMETER = 0x17  # EIATTR_KPARAM_INFO: index, ordinal, offset, and a word whose upper 14 bits are the size
_SIZED = 0x04  # EIFMT_SVAL: a two-byte size and that many bytes


def read_usage(cubin: bytes, kernel: str) -> tuple[int, int]:
    """Registers per thread, and bytes of local memory per thread (Triton's kernels have no stack but their spills).

    Raises:
        ValueError: it is not a cubin, or holds no such kernel.
    """
    sections = _sections(cubin)
    symbols = _symbols(cubin, sections)
    if kernel not in symbols:
        raise ValueError(f"the cubin holds no kernel {kernel!r}")
    index = symbols.index(kernel)
    figures: dict[int, int] = {}
    for name, offset, size, _ in sections:
        if name != ".nv.info":
            continue
        for attribute, value in _attributes(cubin[offset : offset + size]):
            if len(value) == 8:
                symbol, figure = struct.unpack("<II", value)
                if symbol == index:
                    figures[attribute] = figure
    if _REGISTERS not in figures:
        raise ValueError(f"the cubin says no register count of {kernel!r}")
    return figures[_REGISTERS], max(figures.get(_STACK, 0), figures.get(_FRAME, 0))


def read_parameters(cubin: bytes, kernel: str) -> tuple[int, ...] | None:
    """Bytes of each parameter of a kernel, in order; None where the cubin does not say."""
    for name, offset, size, _ in _sections(cubin):
        if name == f".nv.info.{kernel}":
            found = {}
            for attribute, value in _attributes(cubin[offset : offset + size]):
                if attribute == _PARAMETER and len(value) == 12:
                    _, ordinal, _, packed = struct.unpack("<IHHI", value)
                    found[ordinal] = packed >> 18
            return tuple(found[ordinal] for ordinal in sorted(found))
    return None


def _sections(cubin: bytes) -> list[tuple[str, int, int, int]]:
    """Name, offset, size and link of each section."""
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF file")
    (start,) = struct.unpack_from("<Q", cubin, 40)
    _, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [_SECTION.unpack_from(cubin, start + i * _SECTION.size) for i in range(count)]
    strings = headers[names][4]
    return [(_text(cubin, strings + header[0]), header[4], header[5], header[6]) for header in headers]


def _symbols(cubin: bytes, sections: list[tuple[str, int, int, int]]) -> list[str]:
    for name, offset, size, link in sections:
        if name == ".symtab":
            strings = sections[link][1]
            return [_text(cubin, strings + _SYMBOL.unpack_from(cubin, at)[0]) for at in range(offset, offset + size, _SYMBOL.size)]
    return []


def _attributes(info: bytes) -> list[tuple[int, bytes]]:
    found = []
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED:  # elsewhere these two bytes are the value itself
            found.append((attribute, info[at : at + size]))
            at += size
    return found


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
