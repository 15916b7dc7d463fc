"""The red-team corpus: cheats that the judge must not let pass, and honest kernels that it must not refuse.

A case is a file of its own. It begins with a literal ``CASE = {...}`` that says what it is and what it must get, and the rest of it is
the candidate; or, for an attack on something else than a verdict, an ``async def attack(room)`` that returns what it achieved in words,
and nothing where it failed. The ops that cases answer are reference files in the folder ``ops``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.candidate import Backend, Mode, Verdict
from workbench.errors import MisuseError
from workbench.task import Precision

HERE = Path(__file__).resolve().parents[2] / "tests" / "redteam"
_NEEDS = ("cpu", "gpu", "nvcc", "cxx")
_WAYS = ("host", "interpret")
_KEYS = frozenset({
    "cheat", "honest", "op", "why", "expect", "gpu", "needs", "way", "mode", "after", "precision", "full", "backend", "parameters",
    "alone",
})  # fmt: skip


@dataclass(frozen=True)
class Expect:
    """What a case must get: one of `verdicts`, all `labels` (each is part of one that it got), and `words` in the reason."""

    verdicts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    words: str = ""

    def __str__(self) -> str:
        return " or ".join(self.verdicts) + "".join(f" + “{label}”" for label in self.labels)


@dataclass(frozen=True)
class Case:
    """One file of the corpus.

    Attributes:
        number: of its class in the catalogue of cheats, or in the list of honest kernels.
        source: the candidate, with the lines of the header left empty, so that line numbers hold.
        attack: the text of a scenario instead; `source` is empty then.
        needs: ``cpu`` runs anywhere; ``gpu``; ``nvcc``: a GPU and a CUDA compiler; ``cxx``: a C++ compiler.
        way: without a GPU: ``host`` runs PyTorch on the CPU through the way of the GPU, ``interpret`` interprets Triton.
        gpu: what it must get on a GPU where that differs.
        after: another case that the same judge judges just before.
        full: takes long; left out of the quick run.
        alone: needs the card's memory for itself, so it comes when all others are done.
    """

    name: str
    number: int
    honest: bool
    op: str
    why: str
    expect: Expect
    source: str = ""
    attack: str = ""
    needs: str = "cpu"
    way: str = "host"
    mode: Mode = "quick"
    gpu: Expect | None = None
    after: str = ""
    precision: Precision = "match"
    backend: Backend = "triton"
    parameters: tuple[tuple[str, Any], ...] = ()
    full: bool = False
    alone: bool = False

    def wanted(self, on_gpu: bool) -> Expect:
        return self.gpu if on_gpu and self.gpu is not None else self.expect


def load(folder: Path | None = None) -> tuple[Case, ...]:
    """All cases below a folder, by name.

    Raises:
        MisuseError: there is no corpus, or a file's header is not one; the line names the file.
    """
    folder = folder or HERE
    if not (folder / "ops").is_dir():
        raise MisuseError(f"{folder}: no red-team corpus there: give the checkout's tests/redteam by --corpus")
    files = [*(folder / "cheats").glob("*.py"), *(folder / "honest").glob("*.py")]
    cases = tuple(sorted((read(path) for path in files), key=lambda case: (case.honest, case.number, case.name)))
    names = {case.name for case in cases}
    for case in cases:
        if not (folder / "ops" / f"{case.op}.py").exists():
            raise MisuseError(f"{case.name}: no op {case.op!r} in {folder / 'ops'}")
        if case.after and case.after not in names:
            raise MisuseError(f"{case.name}: it comes after {case.after!r}, which is no case")
    return cases


def read(path: Path) -> Case:
    """One case from its file, without running it."""
    text = path.read_text(encoding="utf-8")
    try:
        tree = ast.parse(text, str(path))
    except SyntaxError as error:
        raise MisuseError(f"{path}: {error.msg} (line {error.lineno})") from None
    header = next((node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CASE"), None)
    if header is None:
        raise MisuseError(f"{path}: a case begins with CASE = {{…}}")
    try:
        facts = ast.literal_eval(header.value)
        return _case(path.stem, facts, text, header, any(getattr(node, "name", "") == "attack" for node in tree.body))
    except (ValueError, TypeError, KeyError) as error:
        raise MisuseError(f"{path}: its CASE can't be read: {type(error).__name__}: {error}") from None


def _case(name: str, facts: Mapping[str, Any], text: str, header: ast.Assign, scenario: bool) -> Case:
    if unknown := set(facts) - _KEYS:
        raise ValueError(f"no such key {sorted(unknown)}")
    honest = "honest" in facts
    lines = text.splitlines(keepends=True)
    for number in range(header.lineno - 1, header.end_lineno or header.lineno):
        lines[number] = "\n"
    body = "".join(lines)
    case = Case(
        name, int(facts["honest" if honest else "cheat"]), honest, facts["op"], facts["why"], _expect(facts["expect"]),
        "" if scenario else body, body if scenario else "", facts.get("needs", "cpu"), facts.get("way", "host"), facts.get("mode", "quick"),
        _expect(facts["gpu"]) if "gpu" in facts else None, facts.get("after", ""), facts.get("precision", "match"),
        facts.get("backend", "triton"), tuple(facts.get("parameters", {}).items()), bool(facts.get("full", False)),
        bool(facts.get("alone", False)),
    )  # fmt: skip
    if case.needs not in _NEEDS or case.way not in _WAYS:
        raise ValueError(f"needs one of {_NEEDS}, way one of {_WAYS}")
    return case


def _expect(facts: Mapping[str, Any]) -> Expect:
    expect = Expect(tuple(facts.get("verdicts", ())), tuple(facts.get("labels", ())), facts.get("words", ""))
    for verdict in expect.verdicts:
        Verdict(verdict)
    return expect
