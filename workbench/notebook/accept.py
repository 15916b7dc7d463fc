"""Accept: a variant becomes code of the person's own.

Nothing that the search believed counts here. The variant is judged once more, in full, with new seeds, by a fresh judge in a fresh
process; only what passes is written. What is written needs torch and triton alone (`cell.write_cell`), and carries the line by which
`verify` can judge it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench._version import __version__
from workbench.candidate import NOT_UPDATED, Evaluation, Evidence, Verdict
from workbench.errors import AcceptRefusedError, ConsentNeededError, MisuseError, StoreError
from workbench.events import AcceptedCandidate, Noted
from workbench.notebook.cell import accepted_hash, source_hash, write_cell
from workbench.notebook.static import Summary, time_text
from workbench.notebook.verify import verify
from workbench.notebook.views import find


@dataclass(frozen=True)
class Accepted:
    """An accepted kernel: the cell's text, and what it rests on."""

    code: str
    evidence: Evidence
    place: str = ""

    def __repr__(self) -> str:
        evidence, evaluation = self.evidence, self.evidence.evaluation
        where = f" into {self.place}" if self.place else ""
        return f"{evidence.candidate} accepted{where}: {said(evaluation)}"


def accept(evolution: Any, candidate_id: str, *, consent: bool = False, to: str | Path | None = None, place: str = "") -> Accepted:
    """Judges a variant once more and writes it as plain code.

    Args:
        evolution: the run.
        candidate_id: of the variant, of one of its evaluations, or ``best``.
        consent: take it although it computes in lower precision than the reference, leaves a model's buffers stale, or could not be
            judged on this machine.
        to: a ``.py`` or ``.ipynb`` file to write, with its evidence beside it in ``<file>.evidence.json``.
        place: where the caller will put the code, for the record.

    Raises:
        AcceptRefusedError: the second judging did not go well; the message has the verdict and its reason.
        NoSuchCandidateError: the run has no such variant.
        MisuseError: it has not been judged.
    """
    from workbench.fleet import judge_once
    from workbench.notebook.files import check_place, write_file

    if to is not None:
        check_place(Path(to))
    task = evolution.task
    summary = Summary.of(evolution.events(0))
    candidate, believed = find(evolution, candidate_id, summary)
    if believed is None and summary.state == "ended":
        raise MisuseError(f"{candidate.id} was never judged and the run has ended: resume it with more steps, then accept it")
    if believed is None:
        raise MisuseError(f"{candidate.id} was not judged yet: wait for it, then accept it")
    if believed.verdict is Verdict.DOES_NOT_BUILD:
        raise AcceptRefusedError(f"{candidate.id} does not build: {believed.reason}: mend it, submit it, and accept the new variant")

    started = summary.started
    assert started is not None

    def write(judged: Evaluation) -> str:
        return write_cell(task, candidate, believed.parameters, judged, evolution.id, cell_source=started.cell_source)

    write(believed)  # what can't be written at all is said before minutes go into judging
    prepared, evaluation = judge_once(
        task, candidate, believed.parameters, id=believed.id, mode="full", device=started.device, sanitize=True
    )  # fmt: skip
    refuse_unless_fit(evaluation, consent)
    code = write(evaluation)
    evidence = Evidence(
        task=task.id,
        run=evolution.id,
        candidate=candidate.id,
        source_sha=source_hash(candidate.source),
        reference_sha=source_hash(task.reference),
        accepted_source_sha=accepted_hash(code),
        evaluation=evaluation,
        guard={
            "target": task.target,
            "device": prepared.device,
            "inputs": [[spec.name, spec.dtype, list(spec.shape)] for spec in task.inputs],
        },
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        workbench=__version__,
    )
    if to is not None:
        place = str(write_file(Path(to), code, task, evidence))
    _record(evolution, AcceptedCandidate(evidence, code, place))
    return Accepted(code, evidence, place)


def refuse_unless_fit(evaluation: Evaluation, consent: bool) -> None:
    """What may be written: right variants; with the person's consent also lower precision, what leaves a model's buffers stale, and what
    this machine can't judge.

    Raises:
        AcceptRefusedError: names the verdict, the reason and, where consent would help (`ConsentNeededError`), how to give it.
    """
    verdict, why = evaluation.verdict, f": {evaluation.reason}" if evaluation.reason else ""
    if verdict is Verdict.RIGHT and (stale := stale_buffers(evaluation)) and not consent:
        raise ConsentNeededError(
            f"{evaluation.candidate} {stale}, as the reference does: in eval mode it would be another model, unless it gets buffers of "
            "those names that it updates"
        )
    if verdict is Verdict.RIGHT:
        return
    if verdict in (Verdict.LOWER_PRECISION, Verdict.NOT_JUDGED):
        if consent:
            return
        raise ConsentNeededError(f"{evaluation.candidate} is {_words(verdict)}{why}")
    raise AcceptRefusedError(f"{evaluation.candidate} did not pass the second judging, it is {_words(verdict)}{why}")


def _record(evolution: Any, event: AcceptedCandidate | Noted) -> None:
    """Adds the event to the run. A run that was only opened to be looked at belongs to another process, so it goes into the store."""
    try:
        evolution.record(event)
    except StoreError:
        evolution.store.append(evolution.id, event)


def make_accept(evolution: Any) -> Callable[..., Mapping[str, Any]]:
    """What the board's Accept button calls: ``(candidate, place, consent=False)`` to the code and where it may go.

    The answer has ``code``, ``cell`` (the run's cell), ``expected_hash`` (SHA-256 of the source that this cell must still have),
    ``message`` and ``provenance`` (for the new cell's metadata).
    """

    def accept_from_board(candidate: str, place: str, consent: bool = False) -> dict[str, Any]:
        where = "this run's cell" if place == "replace" else "a cell below"
        accepted = accept(evolution, candidate, consent=consent, place=where)
        evidence = accepted.evidence
        started = Summary.of(evolution.events(0)).started
        cell_source = started.cell_source if started is not None else ""
        return {
            "code": accepted.code,
            "cell": started.cell if started is not None else "",
            "expected_hash": hashlib.sha256(cell_source.encode()).hexdigest() if cell_source else "",
            "message": f"{evidence.candidate}: {said(evidence.evaluation)}",
            "provenance": {
                "run": evidence.run,
                "candidate": evidence.candidate,
                "verdict": evidence.evaluation.verdict.value,
                "accepted_sha256": evidence.accepted_source_sha,
            },
        }

    return accept_from_board


def make_applied(evolution: Any) -> Callable[[str, Mapping[str, Any]], None]:
    """What the board calls when a browser has put an accepted kernel into the notebook, or could not: the run's record says so."""

    def applied(candidate: str, outcome: Mapping[str, Any]) -> None:
        where = "this run's cell" if outcome.get("place") == "replace" else "a new cell"
        if outcome.get("ok"):
            _record(evolution, Noted(f"{candidate} stands in {where} (id {outcome.get('cell') or 'unknown'}, not run yet)"))
        else:
            why = outcome.get("reason") or "the notebook did not say why"
            _record(evolution, Noted(f"{candidate} was accepted, but is not in {where}: {why}", level="warning"))

    return applied


def said(evaluation: Evaluation) -> str:
    """Verdict, judge and time in one line, and what else a person who takes the kernel has to know."""
    judge = f" (judged by {evaluation.judged_by})" if evaluation.judged_by else ""
    stale = stale_buffers(evaluation)
    return f"{_words(evaluation.verdict)}{judge}, {time_text(evaluation)}{f'; it {stale}' if stale else ''}"


def stale_buffers(evaluation: Evaluation) -> str:
    """The label of a kernel that leaves buffers stale; empty for all others."""
    return next((label for label in evaluation.labels if label.startswith(NOT_UPDATED)), "")


def _words(verdict: Verdict) -> str:
    return verdict.value.replace("_", " ")


__all__ = ["Accepted", "accept", "make_accept", "make_applied", "refuse_unless_fit", "said", "verify", "write_cell"]
