"""What the person's bans mean in code: one table of known words, and how each is recognised in a candidate.

A ban is free text. Where it names one of the known ideas, a candidate that plainly uses that idea is refused before it is judged; else it
stays what it is, words to the proposers, and the person is told so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One known idea.

    Attributes:
        words: a pattern that finds it in the person's words.
        uses: patterns of dotted names that use it, as in ``tl.atomic_add``, of attributes, or of keywords (``name=value``).
        cuda: a pattern of CUDA C++ text that uses it.
        shown: what is refused, in words.
    """

    words: str
    uses: tuple[str, ...]
    cuda: str = ""
    shown: str = ""


RULES: Mapping[str, Rule] = {
    "atomics": Rule(r"\batomics?\b", (r".*\.atomic_\w+",), r"\batomic[A-Z]\w*\s*\(|\bcuda::atomic", "tl.atomic_…"),
    "tensor cores": Rule(
        r"\btensor[ -]?cores?\b|\btl\.dot\b|\bmma\b", (r"(tl|language)\.dot(_scaled)?",), r"\bw?mma(_|::)|\bmma\.sync", "tl.dot"
    ),
    "tf32": Rule(r"\btf32\b", (r"allow_tf32=True", r"input_precision='tf32'"), r"\btf32\b", "dots in TF32"),
    "half precision": Rule(
        r"\b(fp16|float16|half[ -]precision)\b", (r"(tl|language|torch)\.(float16|half)", r".*\.half"), r"\b__half2?\b", "float16"
    ),
    "bfloat16": Rule(r"\b(bf16|bfloat16)\b", (r"(tl|language|torch)\.bfloat16", r".*\.bfloat16"), r"\b__nv_bfloat162?\b", "bfloat16"),
    "inline assembly": Rule(
        r"\b(inline[ -]?(asm|assembly)|ptx)\b", (r".*\.inline_asm_elementwise",), r"\basm\b\s*(volatile)?\s*\(",
        "inline assembly",
    ),
    "libdevice": Rule(r"\blibdevice\b", (r"(.*\.)?libdevice(\..*)?",), "", "libdevice"),
    "autotune": Rule(r"\bautotun(e|er|ing)\b", (r"(triton|.*)\.autotune", r"autotune"), "", "triton.autotune"),
    "library calls": Rule(
        r"\b(librar(y|ies)|cublas|cudnn|torch\.(matmul|mm|bmm)|torch calls?)\b",
        (r"torch\.(matmul|mm|bmm|addmm|baddbmm|einsum|softmax|layer_norm|conv\dd)", r"(F|functional)\.\w+", r"torch\.ops\..*", r"@"),
        r"\bcublas|\bcudnn",
        "calls of torch's own kernels",
    ),
    "block pointers": Rule(r"\bblock[ -]?pointers?\b|\bmake_block_ptr\b", (r"(tl|language)\.make_block_ptr",), "", "tl.make_block_ptr"),
    "tensor descriptors": Rule(
        r"\b(tensor[ -]?descriptors?|tma)\b", (r".*\.(make|load|store)_tensor_descriptor", r".*\.TensorDescriptor(\..*)?"),
        r"\bCUtensorMap\b|cp\.async\.bulk", "tensor descriptors (TMA)",
    ),
    "cache hints": Rule(
        r"\bevict(ion)?\b|\bcache hints?\b", (r"eviction_policy=.*", r"cache_modifier=.*"), r"\b__ld(cs|cg|lu)\b", "cache hints"
    ),
    "cuda graphs": Rule(r"\bcuda ?graphs?\b", (r"torch\.cuda\.(CUDAGraph|graph)", r"torch\.cuda\.graphs?\..*"), "", "CUDA graphs"),
    "torch.compile": Rule(r"\btorch\.compile\b|\binductor\b", (r"torch\.compile", r"torch\._inductor\..*"), "", "torch.compile"),
    "scans": Rule(
        r"\b(associative )?scans?\b", (r".*\.associative_scan", r"(tl|language)\.(cumsum|cumprod)"), "", "tl.associative_scan, tl.cumsum"
    ),
    "sorting": Rule(r"\bsort(ing|s)?\b", (r"(tl|language)\.(sort|topk)", r"torch\.(sort|argsort|topk)"), "", "tl.sort"),
}  # fmt: skip
"""The known ideas by name."""


def rule_of(ban: str) -> tuple[str, Rule] | None:
    """The idea that a ban names, if it is a known one."""
    text = " ".join(ban.lower().replace("_", " ").split())
    return next(((name, rule) for name, rule in RULES.items() if re.search(rule.words, text)), None)


def note(ban: str) -> str:
    """What a ban will do, for the person."""
    found = rule_of(ban)
    if found is None:
        return f"ban {ban!r}: not an idea that can be recognised in code, so proposers are told, and nothing is refused for it"
    return f"ban {ban!r}: from now on a candidate that uses {found[1].shown} is refused before it is judged"


def violation(source: str, backend: str, bans: Iterable[str]) -> str:
    """Which ban a candidate plainly breaks and where, in one line; empty where none."""
    wanted = [(ban, *found) for ban in bans if (found := rule_of(ban)) is not None]
    if not wanted:
        return ""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""  # the build says what is wrong with it
    uses = list(_uses(tree))
    for ban, name, rule in wanted:
        for used, line in uses:
            if any(re.fullmatch(pattern, used) for pattern in rule.uses):
                return f"banned ({ban}): line {line} uses {name}: {used}"
        if backend == "cuda" and rule.cuda:
            for text, line in _texts(tree):
                if seen := re.search(rule.cuda, _uncommented(text)):
                    return f"banned ({ban}): the CUDA text from line {line} on uses {name}: {seen[0].strip()}"
    return ""


def _uses(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Dotted names, keywords with their values, products by ``@``, and imported names, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield _dotted(node), node.lineno
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg:
                    yield f"{keyword.arg}={ast.unparse(keyword.value)}", keyword.value.lineno
            if isinstance(node.func, ast.Name):
                yield node.func.id, node.lineno
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield "@", node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "…")
    return ".".join(reversed(parts))


def _texts(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno


def _uncommented(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
