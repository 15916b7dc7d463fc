"""A small world for search logic: proposals are designs written into the source, and a formula says how fast each one is."""

from __future__ import annotations

import random
import re

from workbench.brief import Brief, Proposal, Usage
from workbench.candidate import Candidate, Diagnosis, Evaluation, Resources, Timing, Verdict
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

TASK = Task(
    name="double", reference="def double(x):\n    return x * 2\n", entry="double",
    inputs=(InputSpec("x", (1024,), "float32", (1,), Values("normal")),),
    outputs=(OutputSpec((1024,), "float32", (1,)),), work=Work(bytes=8192, flops=1024),
)  # fmt: skip


def source_of(design: int, tune: str = "", bug: int = 0) -> str:
    """A module whose speed is `design` (higher is faster) and which has `bug` mistakes left."""
    return f"# design={design} bug={bug}\n{tune}\ndef double(x):\n    return x * 2\n"


def read(source: str) -> tuple[int, int]:
    found = re.search(r"design=(\d+) bug=(\d+)", source)
    assert found
    return int(found[1]), int(found[2])


def judge(candidate: Candidate, parameters=None, number: int = 0) -> Evaluation:
    """Time 1000 / (1 + design) µs, and a quarter off for BLOCK=256; a bug makes it wrong, the more the wronger."""
    design, bug = read(candidate.source)
    parameters = dict(parameters or {})
    time = 1000 / (1 + design) * (0.75 if parameters.get("BLOCK") == 256 else 1.0)
    verdict = Verdict.WRONG if bug else Verdict.RIGHT
    return Evaluation(
        id=f"{candidate.id}.{number}", candidate=candidate.id, task=TASK.id, verdict=verdict, parameters=parameters,
        reason="a witness" if bug else "", matched=1 / (1 + bug), judged_by="interpreter (8)",
        timing=None if bug else Timing(time, time, time, time, time, modelled=True),
        resources=(Resources("double", (4,), vector_bytes=4 << (design % 3)),),
    )  # fmt: skip


def describe(candidate: Candidate, evaluation: Evaluation) -> tuple[str, ...]:
    return tuple(f"vector {one.vector_bytes}" for one in evaluation.resources)


def diagnose(evaluation: Evaluation) -> Diagnosis:
    kind = "memory" if evaluation.verdict.passes else "mismatch"
    return Diagnosis(evaluation=evaluation.id, kind=kind, summary=kind, directive=f"mend {kind} of {evaluation.candidate}")


def propose(brief: Brief, *, bug: int = 0, tune: str = "", gain: int = 1) -> Proposal:
    """A new design next to the parent's, from the brief alone."""
    rng = random.Random(brief.seed)
    if brief.kind == "repair":
        design, bugs = read(brief.parents[0].candidate.source)
        source = source_of(design, tune, max(bugs - 1, 0)) + f"# {brief.id}\n"
    else:
        parent = max((read(one.candidate.source)[0] for one in brief.parents), default=0)
        source = source_of(parent + (rng.randrange(1, 4) if gain else 0), tune, bug) + f"# {brief.id}\n"
    candidate = Candidate(id="?", backend="triton", source=source, entry="?", proposer="world", plan=f"plan of {brief.id}")
    return Proposal(brief=brief.id, candidate=candidate, usage=Usage(tokens_in=10, tokens_out=5))


def nothing(brief: Brief, reason: str = "nothing new") -> Proposal:
    return Proposal(brief=brief.id, candidate=None, reason=reason)


def drive(search, answer=propose, steps: int = 100_000, log: list | None = None) -> list:
    """Asks, answers and tells one at a time until the search ends; returns (brief, proposal, evaluation, events) of each."""
    log = [] if log is None else log
    while len(log) < steps and (brief := search.ask()) is not None:
        proposal = search.receive(search.given(brief) or answer(brief))
        evaluation = judge(proposal.candidate, brief.parameters, len(log)) if proposal.candidate else None
        events = search.tell(proposal, evaluation, diagnose(evaluation) if evaluation else None)
        log.append((brief, proposal, evaluation, events))
    return log
