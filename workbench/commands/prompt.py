"""``prompt RUN BRIEF``: what a model was asked in a stored step, or would be."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.errors import MisuseError


def add_options(parser: argparse.ArgumentParser) -> None:
    """What ``prompt`` understands."""
    parser.add_argument("run", metavar="RUN", help="its id, the beginning of it, or last")
    parser.add_argument("brief", metavar="BRIEF", help="such as b7, or the candidate that answered it, such as k5")
    parser.add_argument("--replies", action="store_true", help="print what came back, too")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def prompt(options: argparse.Namespace) -> int:
    """Prints the prompts of a step. Where none was sent (an expert wrote it), the prompt that a model would have got."""
    from workbench.proposers.llm import PURPOSES, render
    from workbench.store import open_default

    store = open_default(Path.cwd())
    run = store.run(options.run).id
    brief = find_brief(store.events(run, types=("Asked",)), run, options.brief)
    calls = store.calls(run, brief.id)
    if calls:
        shown = [_shown(call.prompt, call) for call in calls]
    elif brief.kind in PURPOSES:
        messages = render(brief)
        shown = [_shown([{"role": one.role, "content": one.content} for one in messages], None)]
    else:
        raise MisuseError(f"{brief.id} is a step of kind {brief.kind}: no prompt is written for one of those")
    if options.json:
        print(json.dumps({"run": run, "brief": brief.id, "kind": brief.kind, "candidate": brief.candidate, "calls": shown}))
        return 0
    for one in shown:
        print(f"{brief.id}, {brief.kind} of {brief.candidate}: {one['summary']}", file=sys.stderr)
        for message in one["messages"]:
            print(f"----- {message['role']}: {message['tokens']:,} tokens\n{message['content']}")
        if options.replies and one["reply"]:
            print(f"----- reply\n{one['reply']}")
    return 0


def find_brief(asked: Sequence[Any], run: str, name: str) -> Any:
    """The brief of that id, or the first that asked for the candidate of that id.

    Raises:
        MisuseError: the run has none.
    """
    briefs = [stamped.event.brief for stamped in asked]
    for brief in briefs:
        if name in (brief.id, brief.candidate):
            return brief
    last = f": the last one is {briefs[-1].id}" if briefs else ": nothing was asked in it yet"
    raise MisuseError(f"run {run} has no step {name!r}{last}")


def _shown(messages: Sequence[Any], call: Any) -> dict[str, Any]:
    from workbench.proposers.llm.tokens import count

    counted = [{**message, "tokens": count(message["content"])} for message in messages]
    total = sum(message["tokens"] for message in counted)
    if call is None:
        summary, reply = f"about {total:,} tokens; not sent, no model was asked", ""
    else:
        sent = f"{call.tokens_in:,} tokens in, {call.tokens_out:,} out" if call.tokens_in else f"about {total:,} tokens in"
        summary = f"{sent}; {call.purpose} to {call.model}, attempt {call.attempt}" + (f", failed: {call.error}" if call.error else "")
        reply = call.reply
    return {"summary": summary, "messages": counted, "tokens": total, "reply": reply}
