"""A model on a loopback server that writes what the scripted fleet's formula reads; what it answers follows from the prompt alone."""

from __future__ import annotations

import re

from server import Say, usage

from workbench.proposers.llm import LlmProposer, Message, Price, Retry, Timeouts
from workbench.proposers.llm.tokens import count_messages

KEY = "sk-planted-secret-0123456789"
PRICES = {"m": Price(2.0, 8.0), "n": Price(0.2, 0.8)}
TOKENS_OUT = 400

MODULE = """\
import torch
import triton
import triton.language as tl

# design={design} {note}


@triton.jit
def _double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


def double(x):
    y = torch.empty_like(x)
    _double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y
"""


def reply(design: int, note: str = "", cites: str = "none") -> str:
    return f"Plan: design {design}.\nCites: {cites}\n```python\n{MODULE.format(design=design, note=note)}```\n"


def kind(body) -> str:
    text = body["messages"][1]["content"]
    signs = (("# Repair it", "repair"), ("# Do this one thing", "step"), ("# Combine them", "crossover"), ("first candidate", "seed"))
    return next(name for sign, name in signs if sign in text)


def writes(body, wrong_every: int = 4) -> Say:
    """One design better than the parents; a step whose seed says so is wrong, and is right after its repair."""
    text, seed = body["messages"][1]["content"], body.get("seed", 0)
    designs = [int(found) for found in re.findall(r"design=(-?\d+)", text)]
    cards = re.findall(r"^- `([\w-]+)`: When", text, re.M)
    design = max([1, *designs]) + 1
    if kind(body) == "step" and wrong_every and seed % wrong_every == 0:
        design = -1
    text = reply(design, f"seed {seed}", cards[0] if cards else "none")
    return Say(text, usage(tokens_of(body), TOKENS_OUT), chunk=200)


def tokens_of(body) -> int:
    """As an endpoint counts the prompt: more than the estimate, since code is dense."""
    return round(1.2 * count_messages(Message(one["role"], one["content"]) for one in body["messages"]))


def model(server, names=("m",), **more) -> LlmProposer:
    fields = {
        "retry": Retry(attempts=3, first=0.01, factor=1.2), "prices": PRICES, "timeouts": Timeouts(30, 30, 30), "max_output": 3000,
        "expert_source": lambda name, task: f"# {name}\n",
    }  # fmt: skip
    return LlmProposer(names, server.url, **(fields | more))
