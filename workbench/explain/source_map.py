"""Which line of the candidate each line of a compiler stage comes from, read from the debug information that the stage carries.

Each reader takes a stage's text and gives it back without its debug markers, and with it one number a line: the candidate's line, or 0.
Code that was inlined from elsewhere, such as ``tl.sum``, counts as the candidate's line that called it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

Mapped = tuple[list[str], list[int]]
"""Lines of the text, and the candidate's line of each."""

FILE = "candidate.py"


def pairs(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Where the candidate's line changes: (line of the text, line of the candidate), as `inspection.Stage` has it."""
    found: list[tuple[int, int]] = []
    before = 0
    for number, line in enumerate(numbers, 1):
        if line != before:
            found.append((number, line))
            before = line
    return tuple(found)


# MLIR: TTIR and TTGIR


def mlir(text: str, file: str = FILE) -> Mapped:
    """Reads ``loc(…)`` at the end of each operation, resolved through the ``#loc`` lines."""
    definitions = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.M))
    known: dict[str, int] = {}

    def resolve(place: str, depth: int = 0) -> int:
        place = place.strip()
        if place in known or depth > 40:
            return known.get(place, 0)
        known[place] = 0
        known[place] = found = _resolve_mlir(place, definitions, file, lambda inner: resolve(inner, depth + 1))
        return found

    lines: list[str] = []
    numbers: list[int] = []
    opened: list[int] = []
    for line in text.splitlines():
        if line.startswith("#loc"):
            continue
        plain, places = _without_locations(line)
        number = resolve(places[-1]) if places and not plain.rstrip().endswith("{") else 0
        if plain.lstrip().startswith("}") and opened:
            start = opened.pop()  # an operation with a region has its place behind the region
            numbers[start] = numbers[start] or number
        if plain.rstrip().endswith("{"):
            opened.append(len(numbers))
            number = number or (resolve(places[-1]) if places and "func" not in plain and "^" not in plain else 0)
        lines.append(plain.rstrip())
        numbers.append(number)
    return lines, numbers


def _resolve_mlir(place: str, definitions: Mapping[str, str], file: str, resolve: Callable[[str], int]) -> int:
    if place in definitions:
        return resolve(definitions[place])
    if match := re.match(r'"([^"]*)":(\d+)', place):
        return int(match[2]) if _is(match[1], file) else 0
    if place.startswith("callsite("):
        callee, _, caller = place[len("callsite(") : -1].partition(" at ")
        return resolve(callee) or resolve(caller)
    if match := re.match(r'"[^"]*"\((.*)\)$', place):  # a name around a place
        return resolve(match[1])
    if match := re.match(r"fused(?:<.*?>)?\[(.*)\]$", place):
        return next((found for part in match[1].split(",") if (found := resolve(part))), 0)
    return 0


def _without_locations(line: str) -> tuple[str, list[str]]:
    """The line without its ``loc(…)``, and what stood in them."""
    kept: list[str] = []
    places: list[str] = []
    at = 0
    while (start := line.find("loc(", at)) >= 0:
        if start and (line[start - 1].isalnum() or line[start - 1] in "_#."):
            kept.append(line[at : start + 4])
            at = start + 4
            continue
        depth, end, quoted = 1, start + 4, False
        while end < len(line) and depth:
            quoted ^= line[end] == '"'
            depth += 0 if quoted else (line[end] == "(") - (line[end] == ")")
            end += 1
        kept.append(line[at:start].rstrip())
        places.append(line[start + 4 : end - 1])
        at = end
    return "".join(kept) + line[at:], places


# LLVM


def llvm(text: str, file: str = FILE) -> Mapped:
    """Reads ``!dbg`` of each instruction, resolved through scopes and ``inlinedAt``."""
    metadata = dict(re.findall(r"^(!\d+) = (.*)$", text, re.M))

    def field(entry: str, name: str) -> str:
        match = re.search(rf"\b{name}: (![0-9]+|\d+|\"[^\"]*\")", entry)
        return match[1].strip('"') if match else ""

    def is_own(scope: str) -> bool:
        for _ in range(20):
            entry = metadata.get(scope, "")
            if named := field(entry, "file"):
                return _is(field(metadata.get(named, ""), "filename"), file)
            scope = field(entry, "scope")
        return False

    known: dict[str, int] = {}

    def resolve(name: str) -> int:
        if name not in known:
            known[name], place = 0, name
            for _ in range(40):
                entry = metadata.get(place, "")
                if is_own(field(entry, "scope")):
                    known[name] = int(field(entry, "line") or 0)
                    break
                if not (place := field(entry, "inlinedAt")):
                    break
        return known[name]

    lines, numbers = [], []
    for line in text.splitlines():
        if re.match(r"!(\d+|llvm\.dbg\S*) = ", line):
            continue
        marker = re.search(r",? !dbg (!\d+)", line)
        numbers.append(resolve(marker[1]) if marker and not line.startswith("define") else 0)
        lines.append(line[: marker.start()] + line[marker.end() :] if marker else line)
    return lines, numbers


# Assembly: PTX, AMD's, and machine code


def assembly(text: str, file: str = FILE) -> Mapped:
    """Reads ``.loc``: the comments behind it, which name the chain of callers, else its own numbers. Debug sections are left out."""
    own = {number for number, path in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', text, re.M) if _is(path, file)}
    lines: list[str] = []
    numbers: list[int] = []
    now, skipping = 0, False
    for line in text.splitlines():
        if re.match(r"\s*\.section\s+\.debug", line):
            skipping = True
        elif skipping and re.match(r"\s*\.(section\s+(?!\.debug)|text\b|amdgpu_metadata)", line):
            skipping = False
        if skipping or re.match(r"\s*\.file\b|\$?\.?L(_?_tmp|tmp)\d+:|\s*\.cfi_", line):
            continue
        if place := re.match(r"\s*\.loc\s+(\d+)\s+(\d+)\s", line):
            now = _of_comment(line, file) or (int(place[2]) if place[1] in own else 0)
            continue
        is_code = re.match(r"\s+[a-z@]", line) is not None and not re.match(r"\s+\.", line)
        lines.append(line)
        numbers.append(now if is_code else 0)
    while lines and not lines[-1].strip():
        lines.pop()
        numbers.pop()
    return lines, numbers


def callers(text: str, file: str = FILE) -> dict[tuple[str, int], list[int]]:
    """Lines of other files that PTX has inlined, by file and line, with the candidate's lines that called them."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for line in re.findall(r"^\s*\.loc\s.*$", text, re.M):
        own = _of_comment(line, file)
        for name, number in re.findall(r"([^\s\[\]]+\.py):(\d+):\d+", line):
            if not _is(name, file) and own and own not in found[name, int(number)]:
                found[name, int(number)].append(own)
    return dict(found)


def sass(text: str, inlined: Mapping[tuple[str, int], Sequence[int]], file: str = FILE) -> Mapped:
    """Reads the ``//## File`` lines of nvdisasm. The machine code does not say who called what was inlined: `inlined` does."""
    lines: list[str] = []
    numbers: list[int] = []
    now = 0
    for line in text.splitlines():
        if match := re.match(r'\s*//## File "([^"]*)", line (\d+)', line):
            now = _own_line(match[1], int(match[2]), now, inlined, file)
            continue
        is_code = re.match(r"\s*/\*[0-9a-f]{4,}\*/", line) is not None
        lines.append(line.rstrip())
        numbers.append(now if is_code else 0)
    return lines, numbers


def _own_line(path: str, number: int, now: int, inlined: Mapping[tuple[str, int], Sequence[int]], file: str) -> int:
    if _is(path, file):
        return number
    options = inlined.get((path.rsplit("/", 1)[-1], number), ())
    return now if now in options else options[0] if len(options) == 1 else 0


def _of_comment(line: str, file: str) -> int:
    match = re.search(rf"(?:^|[\s/]){re.escape(file)}:(\d+):", line)
    return int(match[1]) if match else 0


def _is(path: str, file: str) -> bool:
    return path == file or path.endswith(f"/{file}")
