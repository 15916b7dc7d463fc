"""What a proposer was asked for one candidate, and what it answered: brief, prompts, replies, price, and what the answer rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.board.contract import Run
from workbench.brief import Brief, Parent
from workbench.candidate import Candidate
from workbench.knowledge import experts
from workbench.knowledge.axes import UnsupportedError
from workbench.records import encode
from workbench.task import Task


def prompt(run: Run, candidate: str) -> dict[str, Any]:
    """Everything about how a candidate came to be written, as ``extensions/protocol.ts`` names it.

    Where no model was asked, `rendered` is the prompt that one would have got, so that a person can see what the search knew.

    Raises:
        NoSuchCandidateError: the run has none of that id.
        StoreError: the store can't be read.
    """
    found = run.candidate(candidate)
    made, brief = found.candidate, found.brief
    if brief is None:
        return {"brief": None, "calls": [], "rendered": [], "unrendered": _no_brief(made), "cited": _cited(made, None), "choices": None}
    kept = run.calls(brief.id) if hasattr(run, "calls") else ()
    rendered, unrendered = ([], "") if kept else _rendered(brief)
    return {
        "brief": _brief(brief), "calls": [_call(call) for call in kept], "rendered": rendered, "unrendered": unrendered,
        "cited": _cited(made, brief), "choices": _choices(made, run.task),
    }  # fmt: skip


def _no_brief(made: Candidate) -> str:
    if made.proposer == "person":
        return "You wrote this one: nobody was asked, and no prompt exists."
    return "The brief of this variant is not in the store, so its prompt can't be shown."


def _brief(brief: Brief) -> dict[str, Any]:
    return {
        "id": brief.id, "kind": brief.kind, "candidate": brief.candidate, "island": brief.island.name, "aim": brief.island.aim,
        "advice": list(brief.island.hints), "directive": brief.directive, "expert": encode(brief.expert),
        "experts": list(brief.experts), "parameters": encode(brief.parameters), "parents": [_parent(one) for one in brief.parents],
        "cards": encode(brief.cards), "hints": list(brief.hints), "bans": list(brief.bans), "left": encode(brief.left),
        "seed": brief.seed,
    }  # fmt: skip


def _parent(parent: Parent) -> dict[str, Any]:
    timing = parent.evaluation.timing
    return {
        "id": parent.candidate.id, "evaluation": parent.evaluation.id, "verdict": parent.evaluation.verdict.value,
        "time_us": timing.median_us if timing is not None else None, "modelled": timing is not None and timing.modelled,
        "diagnosis": parent.diagnosis.summary if parent.diagnosis is not None else "",
    }  # fmt: skip


def _call(call: Any) -> dict[str, Any]:
    """A stored call to a model. Where the endpoint did not say, tokens are estimates and marked so."""
    return {
        "number": call.number, "purpose": call.purpose, "model": call.model, "why": call.why, "attempt": call.attempt,
        "messages": _counted(call.prompt), "settings": encode(call.settings), "reply": call.reply, "finish": call.finish,
        "tokens_in": call.tokens_in, "tokens_out": call.tokens_out, "cached": call.cached, "estimated": call.estimated,
        "money": call.money, "seconds": call.seconds, "first_seconds": call.first_seconds, "error": call.error, "time": call.time,
    }  # fmt: skip


def _counted(messages: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    from workbench.proposers.llm.tokens import count

    return [{"role": one["role"], "content": one["content"], "tokens": count(one["content"])} for one in messages]


def _rendered(brief: Brief) -> tuple[list[dict[str, Any]], str]:
    """The prompt that a model would have got, or why there is none."""
    from workbench.proposers.llm import PURPOSES, render

    if brief.kind not in PURPOSES:
        return [], f"A step of kind {brief.kind} asks for no new source, so no prompt is written for it."
    try:
        return _counted([{"role": one.role, "content": one.content} for one in render(brief)]), ""
    except Exception as error:  # a brief of another version must not cost the rest of the tab
        return [], f"The prompt of this step can't be written here ({type(error).__name__}: {error})."


def _cited(made: Candidate, brief: Brief | None) -> list[dict[str, str]]:
    """What the candidate says it rests on: an expert with why it is fast, or a card of experience with what came of it."""
    cards = {card.id: card for card in brief.cards} if brief is not None else {}
    known = experts.names()
    found = []
    for name in made.cites:
        if name in cards:
            card = cards[name]
            text = "\n".join(
                line for line in (f"When: {card.trigger}", f"Do: {card.advice}", card.effect and f"Then: {card.effect}") if line
            )
            found.append({"id": name, "kind": "card", "text": text})
        elif name in known:
            found.append({"id": name, "kind": "expert", "text": experts.card(name).strip()})
        else:
            found.append({"id": name, "kind": "other", "text": ""})
    return found


def _choices(made: Candidate, task: Task) -> dict[str, Any] | None:
    """For an expert's candidate: each structural choice, what was chosen, what else there is, and what that choice does."""
    name = str(made.recipe.get("expert", ""))
    if name not in experts.names():
        return None
    try:
        space = experts.choices(name, task)
    except UnsupportedError:  # an op that this version's expert no longer fits: what was chosen still stands
        space = {}
    names = dict.fromkeys((*space, *(choice for choice in made.recipe if choice != "expert")))
    rows = []
    for choice in names:
        values = space.get(choice, ())
        chosen = made.recipe.get(choice, values[0] if values else None)
        rows.append({
            "name": choice, "chosen": encode(chosen), "values": encode(list(values)), "why": experts.explain(name, choice, chosen),
        })  # fmt: skip
    return {"expert": name, "rows": rows}
