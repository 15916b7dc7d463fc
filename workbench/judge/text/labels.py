"""What a candidate's text shows before it runs.

Text proves little: every rule of this kind can be written around, and honest code trips over most of them. So what is found here are
labels, shown beside the result. One thing is refused: putting something else in the place of the clock, of PyTorch's functions, or of the
judge. No kernel needs that.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from workbench.judge.text.text_reader import TextReader

NO_KERNEL = "no kernel of its own"
_TAMPERING_RULES = frozenset({"TIMER_MONKEYPATCH", "TORCH_VALIDATION_MONKEYPATCH", "HARNESS_RUNTIME_PATCHING", "RUNTIME_PACKAGE_INSTALL"})


@dataclass(frozen=True)
class Reading:
    """What the text shows.

    Attributes:
        labels: facts, sorted.
        tampering: the offending line in words; empty for all honest code.
        error: why it is no Python module; empty for those that are.
    """

    labels: tuple[str, ...] = ()
    tampering: str = ""
    error: str = ""


def read(source: str) -> Reading:
    """Reads a candidate's module without running it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        return Reading(error=f"{type(error).__name__}: {getattr(error, 'msg', error)}" + (f" (line {line})" if line else ""))
    try:
        visitor = TextReader(source.splitlines())
        visitor.visit(tree)
    except RecursionError:
        return Reading(error="the module is nested too deeply")
    labels = visitor.labels
    if not visitor.kernels:
        labels.add(NO_KERNEL)
    guard_labels, guard_hit = _kernelguard(source)
    tampering = visitor.tampering or guard_hit
    return Reading(tuple(sorted(labels | guard_labels)), tampering)


@functools.cache
def kernelguard_available() -> bool:
    """Whether the optional scanner is installed."""
    return importlib.util.find_spec("kernelguard") is not None


def _kernelguard(source: str) -> tuple[set[str], str]:
    """Labels of the optional scanner; its tampering rules refuse as ours do."""
    if not kernelguard_available():
        return set(), ""
    import kernelguard

    try:
        report: Mapping[str, object] = kernelguard.analyze_code(source, compute_structural_hash=False)
    except Exception as error:
        return {f"KernelGuard could not read it ({type(error).__name__})"}, ""
    hits = list(_hits(report))
    tampering = next((f"KernelGuard {name}: {evidence}" for name, evidence in hits if name in _TAMPERING_RULES), "")
    return {f"KernelGuard: {name}" for name, _ in hits}, tampering


def _hits(report: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    found = report.get("matched_patterns", ())
    for item in found if isinstance(found, (list, tuple)) else ():
        if isinstance(item, Mapping) and item.get("pattern"):
            yield str(item["pattern"]), str(item.get("evidence", ""))[:120]
