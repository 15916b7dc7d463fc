"""What the line magics answer with: small objects that read well in a notebook and in a terminal."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.candidate import Candidate, Evaluation
from workbench.errors import NoSuchCandidateError
from workbench.notebook.static import Summary, mimebundle, time_text


@dataclass(frozen=True)
class Line:
    """One line, shown without quotes."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Text:
    """A title and some preformatted text."""

    title: str
    text: str

    def __repr__(self) -> str:
        return f"{self.title}\n{self.text}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.title)}</p><pre>{html.escape(self.text)}</pre>"


class Run:
    """A run as it stood when it was asked for."""

    def __init__(self, evolution: Any) -> None:
        self._bundle = mimebundle(Summary.of(evolution.events(0)))

    def __repr__(self) -> str:
        return self._bundle["text/plain"]

    def _repr_html_(self) -> str:
        return self._bundle["text/html"]


@dataclass(frozen=True)
class Runs:
    """What lies in the store."""

    runs: Sequence[Any]
    live: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        if not self.runs:
            return "no runs here yet: put %%evolve_kernel on top of a cell"
        return "\n".join(f"{run}{'  (in this kernel)' if run.id in self.live else ''}" for run in self.runs)


def resolve(evolution: Any, name: str) -> str:
    """The id of a candidate: ``best``, an id of its own, or that of one of its evaluations.

    Raises:
        NoSuchCandidateError: the run has none of that name.
    """
    return find(evolution, name)[0].id


def find(evolution: Any, name: str, summary: Summary | None = None) -> tuple[Candidate, Evaluation | None]:
    """A candidate and the evaluation meant: its best one where only the candidate is named; None before it was judged.

    Raises:
        NoSuchCandidateError: the run has none of that name.
    """
    summary = summary or Summary.of(evolution.events(0))
    if name == "best":
        if summary.best is None:
            raise NoSuchCandidateError(f"{evolution.id} has no right variant yet: let it run on, or name one by its id")
        name = summary.best[1]
    evaluation = summary.evaluations.get(name)
    if evaluation is not None:
        name = evaluation.candidate
    if name not in summary.candidates:
        known = list(summary.candidates)
        some = f"it has {', '.join(known[:8])}{', …' if len(known) > 8 else ''}" if known else "it has none yet"
        raise NoSuchCandidateError(f"{evolution.id} has no variant {name!r}: {some}")
    if evaluation is None:
        evaluation = next((one for one in summary.ranked() if one.candidate == name), None)
    return summary.candidates[name], evaluation


def variant(evolution: Any, name: str) -> Text:
    """One variant in full: what it is, what the judge said, why, and its code."""
    candidate, evaluation = find(evolution, name)
    lines = [f"idea: {candidate.plan}" if candidate.plan else "", f"by {candidate.proposer}" if candidate.proposer else ""]
    if candidate.parents:
        lines.append(f"from {', '.join(candidate.parents)}")
    title = f"{candidate.id}: not judged yet"
    if evaluation is not None:
        title = f"{evaluation.id}: {evaluation.verdict.value.replace('_', ' ')}, {time_text(evaluation)}"
        lines += _figures(evaluation)
        diagnosis = Summary.of(evolution.events(0)).diagnoses.get(evaluation.id)
        lines.append(f"why: {diagnosis}" if diagnosis else "")
    return Text(title, "\n".join([*(line for line in lines if line), "", source(candidate, evaluation)]))


def diff(evolution: Any, new: str, old: str | None = None) -> Text:
    """What changed from `old` to `new`, with the chosen values in place; `old` is the parent, or the reference where there is none."""
    from workbench.explain.diff import unified

    candidate, evaluation = find(evolution, new)
    if old is None and candidate.parents:
        old = candidate.parents[0]
    if old is None:
        name, text = "reference", evolution.task.reference
    else:
        before, judged = find(evolution, old)
        name, text = judged.id if judged is not None else before.id, source(before, judged)
    title = evaluation.id if evaluation is not None else candidate.id
    changed = unified(text, source(candidate, evaluation), name, title)
    return Text(f"{name} → {title}", changed or "nothing changed")


def source(candidate: Candidate, evaluation: Evaluation | None) -> str:
    """The code that was judged: the evaluation's values stand in place of ``TUNE``."""
    if evaluation is None:
        return candidate.source
    from workbench.build.tune import choose

    try:
        return choose(candidate.source, evaluation.parameters)
    except ValueError:
        return candidate.source


def _figures(evaluation: Evaluation) -> list[str]:
    lines = [f"judged by {evaluation.judged_by}" if evaluation.judged_by else "", evaluation.reason]
    if evaluation.parameters:
        lines.append("values: " + ", ".join(f"{name}={value}" for name, value in evaluation.parameters.items()))
    if evaluation.speedup is not None:
        speedup = evaluation.speedup
        lines.append(f"{speedup.ratio:.2f}× against {speedup.against} (95 %: {speedup.low:.2f}–{speedup.high:.2f})")
    if evaluation.witness is not None:
        seen = evaluation.witness
        lines.append(
            f"witness: output {seen.output} at {seen.index}: got {seen.got}, expected {seen.expected} (input set {seen.input_set})"
        )
    for one in evaluation.resources:
        lines.append(
            f"{one.kernel}: grid {'×'.join(map(str, one.grid))}, {one.registers} registers, {one.spill_bytes} B spilled, "
            f"{one.shared_bytes} B shared, occupancy {one.occupancy:.0%}"
        )
    if evaluation.labels:
        lines.append("labels: " + ", ".join(evaluation.labels))
    return lines


__all__ = ["Line", "Run", "Runs", "Text", "diff", "find", "resolve", "source", "variant"]
