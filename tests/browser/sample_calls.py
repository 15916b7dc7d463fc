"""Calls to models, and inspections, to look at: made of the real records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.events import Asked, Stamped
from workbench.proposers.llm import PURPOSES, render
from workbench.store import KeptCall


def sample_calls(stamped: Sequence[Stamped], every: int = 3) -> tuple[KeptCall, ...]:
    """One or two calls for every third brief, the first of two failed."""
    made: list[KeptCall] = []
    for one in stamped:
        if not isinstance(one.event, Asked) or one.event.brief.kind not in PURPOSES or int(one.event.brief.id[1:]) % every:
            continue
        brief = one.event.brief
        prompt = tuple({"role": message.role, "content": message.content} for message in render(brief))
        shared: dict[str, Any] = {
            "brief": brief.id, "purpose": brief.kind, "model": "qwen3-coder", "prompt": prompt, "why": "best reward a dollar so far",
            "settings": {"max_tokens": 8000, "temperature": 0.8, "seed": brief.seed},
        }  # fmt: skip
        if int(brief.id[1:]) % 2 == 0:
            made.append(KeptCall(
                key=f"{brief.id}a", tokens_in=3911, tokens_out=40, estimated=True, error="the endpoint broke off after 40 tokens",
                seconds=2.2, number=len(made) + 1, time=one.time, **shared,
            ))  # fmt: skip
        made.append(KeptCall(
            key=f"{brief.id}b", attempt=1 + int(brief.id[1:]) % 2, tokens_in=3911, tokens_out=811, cached=2048, money=0.0041,
            reply=REPLY, finish="stop", seconds=9.4, first_seconds=0.8, number=len(made) + 1, time=one.time, **shared,
        ))  # fmt: skip
    return tuple(made)


REPLY = """PLAN: Keep the row in registers, so that x is read once, and give each program two rows.
CITES: rows, card-7

```python
import torch
import triton
import triton.language as tl

TUNE = {"BLOCK": [8192, 4096], "WARPS": [8, 16]}


@triton.jit
def rmsnorm_kernel(x_ptr, w_ptr, y_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=0.0).to(tl.float32)
```
"""
