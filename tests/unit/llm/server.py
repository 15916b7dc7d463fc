"""A scripted server of the chat completions API on loopback, with the faults that real endpoints have.

It is a real HTTP server: the real client runs against it, over a socket. `Server(script)` takes one entry a request; the last one repeats.
"""

import contextlib
import json
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Say:
    """A streamed answer, with the ways in which a stream goes wrong."""

    text: str
    usage: dict | None = None  # None: not sent
    finish: str | None = "stop"
    cut_after: int | None = None  # pieces until the connection is closed
    hang_after: int | None = None  # pieces until nothing comes any more
    bad_json_after: int | None = None
    error_after: dict | None = None  # an error object in the stream, after the text
    delay: float = 0.0  # seconds between pieces
    chunk: int = 20


@dataclass
class Refuse:
    """A status other than 200, with an error object in its body."""

    status: int
    message: str = "no"
    code: str | None = None
    headers: dict = field(default_factory=dict)
    body: str | None = None  # in place of the error object


@dataclass
class Hang:
    """Nothing at all, until the server is closed."""


@dataclass
class Reset:
    """The connection is closed before an answer."""


def usage(tokens_in=1500, tokens_out=300, cached=0):
    return {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


class Server:
    """Use as a context manager; `requests` holds the JSON bodies, `headers` the headers, `times` when each came."""

    def __init__(self, *script):
        self.script = list(script)
        self.requests, self.headers, self.times = [], [], []
        self.gone = threading.Event()  # set when a client hung up on a hanging answer
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def next(self, body, headers):
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            entry = self.script[min(len(self.requests), len(self.script)) - 1]
        return entry(body) if callable(entry) else entry

    def wait_for_hang_up(self, connection):
        """Blocks until the client closes its end or the server ends."""
        connection.settimeout(0.02)
        while not self._closing.is_set():
            try:
                if connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.gone.set()


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/chat/completions":
                self.refuse(Refuse(404, "no such path"))
                return
            entry = server.next(body, {name.lower(): value for name, value in self.headers.items()})
            {Say: self.say, Refuse: self.refuse, Hang: self.hang, Reset: self.reset}[type(entry)](entry)

        def say(self, say):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            pieces = [say.text[start : start + say.chunk] for start in range(0, len(say.text), say.chunk)]
            try:
                self.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
                for number, piece in enumerate(pieces):
                    if number == say.cut_after:
                        self.close_connection = True  # not a reset, which would also take away what the client has not read yet
                        return None
                    if number == say.hang_after:
                        return self.hang(say)
                    if number == say.bad_json_after:
                        self.chunk(b'data: {"choices": [{"delta": {"conte\n\n')
                    self.event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
                    time.sleep(say.delay)
                if say.error_after:
                    self.event({"error": say.error_after})
                if say.finish:
                    self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": say.finish}]})
                if say.usage:
                    self.event({"choices": [], "usage": say.usage})
                self.chunk(b"data: [DONE]\n\n")
                self.chunk(b"")
            except OSError:
                server.gone.set()
            return None

        def event(self, data):
            whole = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", **data}
            self.chunk(f"data: {json.dumps(whole)}\n\n".encode())

        def chunk(self, data):
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def refuse(self, refuse):
            error = {"error": {"message": refuse.message, "code": refuse.code, "type": refuse.code, "param": None}}
            body = (json.dumps(error) if refuse.body is None else refuse.body).encode()
            self.send_response(refuse.status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **refuse.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def hang(self, _):
            server.wait_for_hang_up(self.connection)
            self.close_connection = True

        def reset(self, _):
            # A linger of zero makes the close a reset, as a crashed server's is.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.connection.close()
            self.close_connection = True

        def finish(self):
            with contextlib.suppress(OSError, ValueError):
                super().finish()

        def handle_one_request(self):
            try:
                super().handle_one_request()
            except (OSError, ValueError):
                self.close_connection = True

        def log_message(self, *_):
            pass

    return Handler
