"""The transport over the wire: the ``openai`` package against any compatible endpoint."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from workbench.errors import ModelStopped
from workbench.proposers.llm.calls import Delta, ModelRequest
from workbench.proposers.llm.scrub import scrub, secrets_of
from workbench.proposers.llm.transport import ContextTooLong, TransientFault

_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|(prompt|input|request).{0,20}too (long|large)|too many (input )?tokens|n_ctx", re.I
)
_NO_QUOTA = re.compile(
    r"insufficient.?(quota|funds|balance|credit)|billing|credit balance|exceeded your current quota|payment required", re.I
)
_PASSING = {408, 409, 425, 429}
_LOGGERS = ("openai", "httpx", "httpx2", "httpcore", "httpcore2")


@dataclass(frozen=True)
class Timeouts:
    """Seconds that a call may take in all, until its first piece (models that think are silent for long), and between two pieces."""

    total: float = 900.0
    first: float = 300.0
    between: float = 60.0


class Endpoint:
    """A transport to one endpoint. The key is read from OPENAI_API_KEY when a call needs it, and kept nowhere here.

    Each call has a client and a connection of its own: beside an answer of many seconds a handshake is nothing, and no key, loop or open
    socket outlives a call.

    Args:
        base_url: such as ``http://127.0.0.1:8080/v1``; OPENAI_BASE_URL where None, and OpenAI's own where that is not set either.
    """

    def __init__(self, base_url: str | None = None, timeouts: Timeouts | None = None) -> None:
        self._base_url = base_url
        self._timeouts = timeouts or Timeouts()
        self._dialects: dict[str, _Dialect] = {}

    def __repr__(self) -> str:
        return "Endpoint()"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        loop = asyncio.get_running_loop()
        async with await self._client() as client:
            end = loop.time() + self._timeouts.total
            stream = await self._open(client, request, min(self._timeouts.first, self._timeouts.total))
            try:
                heard = finished = False
                while True:
                    patience = min(self._timeouts.between if heard else self._timeouts.first, end - loop.time())
                    fault: Exception | None = None
                    try:
                        async with asyncio.timeout(patience):
                            chunk = await anext(stream, None)
                    except Exception as error:
                        fault = self._fault(error, request.model, streaming=True)
                    if fault is not None:  # raised outside of the handler: what the library raised, and all it holds, is not chained
                        raise fault
                    if chunk is None:
                        break
                    heard = True
                    delta = _delta(chunk)
                    finished = finished or bool(delta.finish)
                    yield delta
                if not finished:
                    raise TransientFault("the stream ended before the answer did")
            finally:
                await stream.close()

    async def _open(self, client: Any, request: ModelRequest, patience: float) -> Any:
        """The opened stream. A request with a field that the endpoint refuses is put another way and sent again."""
        dialect = self._dialects.setdefault(request.model, _Dialect())
        while True:
            fault = None
            try:
                async with asyncio.timeout(patience):
                    return await client.chat.completions.create(**dialect.fields(request))
            except Exception as error:
                if not (getattr(error, "status_code", None) in (400, 422) and dialect.adapt(_message(error))):
                    fault = self._fault(error, request.model, streaming=False)
            if fault is not None:
                raise fault

    async def _client(self) -> Any:
        base_url = self._base_url or os.environ.get("OPENAI_BASE_URL") or None
        key = os.environ.get("OPENAI_API_KEY")
        if not key and not base_url:
            raise ModelStopped(
                "OPENAI_API_KEY is not set: set it in the environment, point OPENAI_BASE_URL at a local server, or use the experts", "key"
            )
        for name in _LOGGERS:  # their informational lines name the host; a level that the person has set stays
            logger = logging.getLogger(name)
            if logger.level == logging.NOTSET:
                logger.setLevel(logging.WARNING)
        # Retries are ours: each has to be recorded, and paid for from the budget.
        openai = await asyncio.to_thread(_import_openai)
        return openai.AsyncOpenAI(api_key=key or "none", base_url=base_url, timeout=self._timeouts.total, max_retries=0)

    def _fault(self, error: Exception, model: str, *, streaming: bool) -> Exception:
        """What an exception of the library means, free of secrets."""
        import openai

        said = self._scrub(_message(error))
        status = getattr(error, "status_code", None)
        code = f"{getattr(error, 'code', '')} {getattr(error, 'type', '')}"
        if isinstance(error, (TimeoutError, openai.APITimeoutError)):
            return TransientFault("the model did not answer in time")
        if _TOO_LONG.search(said) or "context_length" in code or status == 413:
            return ContextTooLong(f"the prompt does not fit the context of {model}: {said}")
        if status == 402 or _NO_QUOTA.search(f"{code} {said}"):
            return ModelStopped(f"the account has no quota left: {said}", "quota")
        if status in _PASSING or (status is not None and status >= 500):
            return TransientFault(f"HTTP {status}: {said}", _retry_after(error.response.headers))  # type: ignore[attr-defined]
        if status in (401, 403):
            return ModelStopped(f"the endpoint refused the key (HTTP {status}): check OPENAI_API_KEY", "key")
        if status == 404:
            return ModelStopped(f"the endpoint knows no model {model!r} (HTTP 404): check --model and OPENAI_BASE_URL", "model")
        if status is not None:
            return ModelStopped(f"the endpoint refused the request to {model} (HTTP {status}): {said}", "request")
        if isinstance(error, openai.APIConnectionError):
            cause = type(error.__cause__).__name__ if error.__cause__ else "no answer"
            return TransientFault("the stream was cut" if streaming else f"the endpoint can't be reached ({cause})")
        if isinstance(error, openai.APIError):
            return TransientFault(f"the endpoint reported a fault: {said}")
        return TransientFault(f"the answer can't be read ({type(error).__name__})")

    def _scrub(self, text: str) -> str:
        return scrub(text, secrets_of(os.environ.get("OPENAI_API_KEY"), self._base_url or os.environ.get("OPENAI_BASE_URL")))


def _import_openai() -> Any:
    """The library with what it loads late: a second or two at first, in a thread, so that other proposals go on."""
    import openai
    import openai.resources.chat.completions

    return openai


class _Dialect:
    """How one model wants its request: servers differ in the fields that they know, and say so with HTTP 400."""

    def __init__(self) -> None:
        self._limit = (
            "max_tokens"  # every server knows it; newer models refuse it loudly, while older servers overlook the new name silently
        )
        self._dropped: set[str] = set()

    def fields(self, request: ModelRequest) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            self._limit: request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        return {name: value for name, value in fields.items() if value is not None and name not in self._dropped}

    def adapt(self, refusal: str) -> bool:
        """Whether the request can be put another way after `refusal`."""
        if self._limit == "max_tokens" and (
            "max_completion_tokens" in refusal or re.search(r"unsupported.{0,40}max_tokens", refusal, re.I)
        ):
            self._limit = "max_completion_tokens"
            return True
        for name in ("stream_options", "seed", "temperature"):
            if name in refusal and name not in self._dropped:
                self._dropped.add(name)
                return True
        return False


def _message(error: Exception) -> str:
    """What the endpoint said, else what the library says."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, Mapping) else inner
        if message:
            return str(message)
    return str(error)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: the header holds milliseconds, seconds or a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1e3)
        value = headers.get("retry-after", "")
        if not value:
            return None
        if re.fullmatch(r"\d+(\.\d+)?", value.strip()):
            return float(value)
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def _delta(chunk: Any) -> Delta:
    choice = chunk.choices[0] if getattr(chunk, "choices", None) else None
    usage = getattr(chunk, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    return Delta(
        text=(choice.delta.content or "") if choice is not None and choice.delta is not None else "",
        finish=(choice.finish_reason or "") if choice is not None else "",
        tokens_in=getattr(usage, "prompt_tokens", None),
        tokens_out=getattr(usage, "completion_tokens", None),
        cached=getattr(details, "cached_tokens", None) or 0,
    )
