"""What the text of a CUDA C++ candidate shows of its strategy. The text is scanned, not parsed: descriptors, not proofs."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LOOP = re.compile(r"(?P<unrolled>#\s*pragma\s+unroll[^\n]*\n\s*)?\b(?:for|while)\s*\(")
_KERNEL = re.compile(r"__global__\b[^;{]*\{")


def text_of(source: str) -> str:
    """All string literals of a module that hold kernels, without comments; empty where there are none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "\n".join(_COMMENT.sub(" ", text) for text in texts if "__global__" in text)


def traits(text: str) -> Mapping[str, str]:
    """``pass``, ``product``, ``combine``, ``address`` and ``persistent``, with the words that Triton's candidates have."""
    loops = sum(_top_loops(body) for body in _bodies(text))
    if re.search(r"\batomic(?:Add|Max|Min|CAS|Exch)\w*\s*\(|\bred\.", text):
        combine = "atomic"
    elif re.search(r"inclusive_scan|exclusive_scan|__shfl_up_sync", text):
        combine = "scan"
    else:
        combine = "no"
    descriptor = re.search(r"cp\.async\.bulk|CUtensorMap", text) is not None
    staged = re.search(r"cp\.async|__pipeline_memcpy_async|memcpy_async", text) is not None
    return {
        "pass": ("one", "loop", "loops")[min(loops, 2)],
        "product": "dot" if re.search(r"\bw?mma(?:\.sync|::mma_sync|_sync)|\bwgmma\.|\bmma_sync\s*\(", text) else "no",
        "combine": combine,
        "address": "descriptor" if descriptor else "staged" if staged else "pointer",
        "persistent": "yes" if re.search(r"\+=[^;)]*\bgridDim\.", text) else "no",
    }


def _bodies(text: str) -> list[str]:
    found = []
    for match in _KERNEL.finditer(text):
        depth, at = 1, match.end()
        while at < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        found.append(text[match.end() : at - 1])
    return found


def _top_loops(body: str) -> int:
    """Loops that are not within another one and not unrolled: each is one walk over the data."""
    count, at = 0, 0
    while (match := _LOOP.search(body, at)) is not None:
        end = _end_of_statement(body, match.end())
        if match["unrolled"]:
            at = match.end()
        else:
            count += 1
            at = end
    return count


def _end_of_statement(body: str, at: int) -> int:
    depth = 1  # within the loop's own parentheses
    while at < len(body) and depth:
        depth += {"(": 1, ")": -1}.get(body[at], 0)
        at += 1
    depth = 0
    while at < len(body):
        depth += {"{": 1, "}": -1}.get(body[at], 0)
        at += 1
        if depth == 0 and body[at - 1] in "};":
            break
    return at
