"""A model without a model: answers from a script, so that tests and lessons need no endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

from workbench.proposers.llm.calls import Delta, ModelRequest
from workbench.proposers.llm.tokens import count, count_messages

Answer = str | Exception
Rule = Callable[[ModelRequest], Answer]


class ScriptedModel:
    """A transport that answers from a list, one entry a request, or by a rule from request to answer.

    An answer is the text of the reply, or an exception that the request meets, such as ``TransientFault("busy")``. A list that has run
    out is an error of the script. Every request is kept in `requests`.

    >>> import asyncio
    >>> from workbench.proposers.llm import LlmProposer
    >>> model = ScriptedModel(["Plan: one program a row.\\n```python\\n…\\n```"])
    >>> proposer = LlmProposer(("scripted",), transport=model)

    Args:
        answers: the list or the rule.
        chunk: characters of one streamed piece.
        delay: seconds between two pieces.
        usage: whether token counts come with the last piece, as most endpoints send them.
    """

    def __init__(self, answers: Iterable[Answer] | Rule, *, chunk: int = 64, delay: float = 0.0, usage: bool = True) -> None:
        self.requests: list[ModelRequest] = []
        self._answers = answers if callable(answers) else _in_turn(answers)
        self._chunk, self._delay, self._usage = chunk, delay, usage

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self.requests.append(request)
        answer = self._answers(request)
        if isinstance(answer, Exception):
            raise answer
        for start in range(0, len(answer), self._chunk):
            await asyncio.sleep(self._delay)
            yield Delta(answer[start : start + self._chunk])
        tokens = (count_messages(request.messages), count(answer)) if self._usage else (None, None)
        yield Delta(finish="stop", tokens_in=tokens[0], tokens_out=tokens[1])


def _in_turn(answers: Iterable[Answer]) -> Rule:
    iterator = iter(answers)

    def answer(request: ModelRequest) -> Answer:
        try:
            return next(iterator)
        except StopIteration:
            raise AssertionError(f"the script has no further answer, but was asked: {request.messages[-1].content[:200]}") from None

    return answer
