"""From a brief to the messages of one call. No history is kept: the task, the parents, the feedback, and nothing else."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.brief import Brief, Parent
from workbench.candidate import Evaluation
from workbench.knowledge import cuda_idiom
from workbench.proposers.llm.calls import Message
from workbench.proposers.llm.context import MUST, Piece, select, shorten
from workbench.proposers.llm.tokens import count_messages
from workbench.target import TARGETS
from workbench.task import InputSpec, Task

PURPOSES = ("seed", "step", "repair", "crossover")
LIMITS: Mapping[str, int] = {"seed": 8000, "step": 6000, "repair": 3000, "crossover": 9000}
"""Tokens of a whole prompt for each purpose. A parent's source always goes in whole, so a very long one can pass them."""

_WRAPPING = 12
"""Tokens that a template puts around one piece."""

ExpertSource = Callable[[str, Task], str]


def render(
    brief: Brief,
    *,
    expert_source: ExpertSource | None = None,
    limit: int | None = None,
    diffs: bool = True,
    problem: str = "",
) -> tuple[Message, ...]:
    """The system message, equal for all briefs so that providers can cache it, and one user message.

    Args:
        brief: of a kind in `PURPOSES`.
        expert_source: gives an expert's card and code by name; the shipped experts' by default.
        limit: tokens of the whole prompt; `LIMITS` by default.
        diffs: whether search/replace blocks may be sent for small changes.
        problem: what was wrong with the last answer to this brief, in one line.
    """
    environment = _environment()
    system = environment.get_template("system.j2").render()
    template = environment.get_template(f"{brief.kind}.j2")
    limit = LIMITS[brief.kind] if limit is None else limit
    # The frame is what the template says around the pieces: rendered once with empty ones to be measured.
    cuda = _cuda_form(environment, brief)
    frame = template.render(b=brief, p=_Pieces(), diffs=diffs, problem=problem, cuda=cuda)
    room = limit - count_messages((Message("system", system), Message("user", frame)))
    chosen = select(_pieces(brief, expert_source or shipped_expert), room, _WRAPPING)
    user = template.render(b=brief, p=_Pieces(chosen), diffs=diffs, problem=problem, cuda=cuda)
    # Blank lines of the frame are thinned; sources stay as they are, since SEARCH lines have to match them.
    parts = re.split(r"(<data .*?</data>)", user.strip(), flags=re.S)
    thinned = (part if part.startswith("<data ") else re.sub(r"\n{3,}", "\n\n", part) for part in parts)
    return Message("system", system), Message("user", "".join(thinned) + "\n")


def _cuda_form(environment: Any, brief: Brief) -> str:
    """How CUDA C++ is written, where a parent is or somebody asks for it; a brief without it has more room."""
    asked = " ".join((*brief.hints, *brief.island.hints, brief.island.aim, brief.directive))
    if not (any(parent.candidate.backend == "cuda" for parent in brief.parents) or re.search(r"(?i)\bcuda\b(?!\.)", asked)):
        return ""
    return str(environment.get_template("cuda.j2").render(headers=cuda_idiom.HEADERS, kernel=cuda_idiom.compile_function(["BLOCK"])))


def shipped_expert(name: str, task: Task) -> str:
    """Why the expert kernel `name` is fast, and its code for this task with its default choices.

    Raises:
        Exception: whatever an expert raises that does not fit the task.
    """
    from workbench.knowledge import experts

    defaults = {choice: values[0] for choice, values in experts.choices(name, task).items()}
    why = "\n".join(f"# {line}".rstrip() for line in experts.card(name).strip().splitlines())
    return f"{why}\n{experts.write(name, task, defaults)}"


def citable(brief: Brief) -> tuple[str, ...]:
    """Ids that an answer may cite."""
    return (*brief.experts, *(card.id for card in brief.cards))


class _Pieces(dict[str, str]):
    """Texts by name; what was left out is empty."""

    def __getattr__(self, name: str) -> str:
        return self.get(name, "")


@functools.cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # prompts are not HTML; what programs wrote goes through `guarded`
    )
    environment.filters["guarded"] = guarded
    return environment


def guarded(text: str) -> str:
    """`text` that can't end the data block it stands in."""
    return re.sub(r"<(/?)(data)\b", r"<\1 \2", text, flags=re.I).strip("\n")


def _pieces(brief: Brief, expert_source: ExpertSource) -> list[Piece]:
    task = brief.task
    repair = brief.kind == "repair"
    pieces = [
        Piece("reference", task.reference, MUST, least=300),
        Piece("inputs", describe_inputs(task), MUST, least=150),
        Piece("bans", "; ".join(brief.bans), MUST),
        Piece("hints", "; ".join(brief.hints), 0.95),
        Piece("target", describe_target(task.target) + (_TF32 if task.tf32 else ""), 0.5 if repair else 0.85),
        Piece("role", _role(brief), 0.3 if repair else 0.8),
        Piece("left", _left(brief), 0.1),
    ]
    if brief.parents:
        first = brief.parents[0]
        pieces += [
            Piece("parent", first.candidate.source, MUST),
            Piece("result", describe_result(first.evaluation), MUST, least=120),
            Piece("diagnosis", _diagnosis(first), MUST, least=120),
        ]
        if repair:
            pieces.append(Piece("log", shorten(first.evaluation.log, 600), 0.9, least=150))
    if len(brief.parents) > 1:
        second = brief.parents[1]
        pieces += [
            Piece("other", second.candidate.source, MUST),
            Piece("other_result", describe_result(second.evaluation), MUST, least=120),
        ]
    # A seed starts from an expert; a step has a parent already; a repair needs to see neither.
    worth = {"seed": 0.9, "step": 0.6, "crossover": 0.4, "repair": 0.25}[brief.kind]
    for rank, name in enumerate(brief.experts[:3]):
        pieces.append(Piece(f"expert {name}", _expert(name, brief, expert_source), worth - 0.15 * rank))
    for rank, card in enumerate(brief.cards[:6]):
        effect = f" Effect: {card.effect}." if card.effect else ""
        advice, _, code = card.advice.partition("\n")
        text = f"When {card.trigger}: {advice}{effect}" + (f"\n{code}" if code else "")
        pieces.append(Piece(f"card {card.id}", text, 0.75 - 0.06 * rank + 0.1 * (card.confidence - 0.5)))
    return pieces


def _expert(name: str, brief: Brief, source: ExpertSource) -> str:
    """Why it is fast and its code; where a parent is that very code, only the former."""
    try:
        text = source(name, brief.task)
    except Exception:  # an expert that can't be written for this task is left out; it is a help, not a need
        return ""
    for parent in brief.parents:
        if (code := parent.candidate.source.strip()) and code in text:
            return text.replace(code, f"# Its code is {parent.candidate.id}, below.").strip()
    return text


def describe_inputs(task: Task) -> str:
    """The arguments and outputs, one a line.

    Shapes are there so that layout and sizes are plain; the judge uses other sizes too.
    """
    lines = [f"- {_spec(spec)}" for spec in task.inputs]
    for number, output in enumerate(task.outputs):
        name = "output" if len(task.outputs) == 1 else f"output {number}"
        lines.append(f"- {name}: {output.dtype}{list(output.shape)}")
    if task.init_args:
        lines.append(f"- constructor arguments: {', '.join(map(repr, task.init_args))}")
    work = task.work
    lines.append(f"Least traffic {_amount(work.bytes)}B, work {_amount(work.flops)}FLOP.")
    return "\n".join(lines)


def _spec(spec: InputSpec) -> str:
    if not spec.is_tensor:
        return f"{spec.name}: Python {type(spec.values.value).__name__}, {spec.values.value!r}"
    dense: list[int] = []
    stride = 1
    for size in reversed(spec.shape):
        dense.insert(0, stride)
        stride *= max(size, 1)
    layout = "contiguous" if tuple(dense) == spec.strides or not spec.shape else f"strides {list(spec.strides)}"
    role = "" if spec.role == "input" else f", {spec.role}"
    return f"{spec.name}: {spec.dtype}{list(spec.shape)}, {layout}{role}, {spec.values.kind} values"


_TF32 = " Products of float32 may be computed in TF32, as the reference's are."


def describe_target(name: str) -> str:
    """The limits of a target that matter for a kernel, in one line; empty for an unknown target."""
    target = TARGETS.get(name)
    if target is None:
        return ""
    peaks = ", ".join(
        f"{dtype} {target.peaks[dtype] / 1e12:.0f}" for dtype in ("float32", "tf32", "bfloat16", "float16") if dtype in target.peaks
    )
    return (
        f"{target.name} ({target.gpu}): {target.multiprocessors} multiprocessors, "
        f"{target.block_shared_bytes // 1024} KiB shared memory a program, "
        f"{target.registers} registers a multiprocessor, warps of {target.warp_size}, DRAM {target.bandwidth / 1e12:.2f} TB/s, "
        f"L2 {target.l2_bytes >> 20} MiB, TFLOP/s: {peaks}."
    )


def describe_result(evaluation: Evaluation) -> str:
    """What the judge found, in a few figures."""
    parts = [f"Judged {evaluation.verdict.value.replace('_', ' ')}"]
    if evaluation.reason and not evaluation.verdict.passes:
        parts[0] += f": {guarded(evaluation.reason)[:400]}"
    if evaluation.matched is not None and not evaluation.verdict.passes:
        parts.append(f"{evaluation.matched:.1%} of elements right")
    if witness := evaluation.witness:
        seen = f"at {list(witness.index)} of output {witness.output} got {_figure(witness.got)}, expected {_figure(witness.expected)}"
        bound = f", bound {_figure(witness.bound)}" if witness.bound is not None else ""
        parts.append(f"{seen}{bound}" + (f" ({witness.pattern})" if witness.pattern and witness.pattern not in evaluation.reason else ""))
    if evaluation.time_us is not None and evaluation.timing is not None:
        modelled = "modelled " if evaluation.timing.modelled else ""
        ratio = f", {evaluation.speedup.ratio:.2f}× {evaluation.speedup.against}" if evaluation.speedup else ""
        parts.append(f"{modelled}{evaluation.time_us:.1f} µs{ratio}")
    if evaluation.parameters:
        parts.append("at " + ", ".join(f"{name}={value}" for name, value in evaluation.parameters.items()))
    text = "; ".join(parts) + "."
    for use in evaluation.resources[:2]:
        spills = f", {use.spill_bytes} bytes spilled" if use.spill_bytes else ""
        shared = f"{use.shared_bytes >> 10} KiB shared"
        text += f" `{guarded(use.kernel)}`: {use.registers} registers{spills}, {shared}, occupancy {use.occupancy:.0%}."
    return text


def _diagnosis(parent: Parent) -> str:
    if parent.diagnosis is None:
        return ""
    # What a failure shows is in the judge's result already.
    told = parent.diagnosis.evidence[:3] if parent.evaluation.verdict.passes else ()
    evidence = f" ({'; '.join(told)})" if told else ""
    return guarded(f"{parent.diagnosis.kind}: {parent.diagnosis.summary}{evidence}")


def _role(brief: Brief) -> str:
    hints = f" Hints: {'; '.join(brief.island.hints)}." if brief.island.hints else ""
    return f"{brief.island.name}: {brief.island.aim}.{hints}"


def _left(brief: Brief) -> str:
    left = brief.left
    parts = []
    if left.evaluations is not None:
        parts.append(f"{left.evaluations} evaluations")
    if left.tokens is not None:
        parts.append(f"{left.tokens:,} tokens")
    return f"Left in this run: {', '.join(parts)}." if parts else ""


def _figure(number: float | None) -> str:
    return "nothing" if number is None else f"{number:.6g}"


def _amount(number: float) -> str:
    for unit in ("", "k", "M", "G", "T"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} P"
