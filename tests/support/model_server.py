"""A real HTTP server on loopback that speaks the OpenAI protocol with scripted behaviour."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What the server sends; `reset` drops the connection, `hang` never answers, `dribble` sends
    a space now and then."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    reset: bool = False
    hang: bool = False
    dribble: bool = False


def says(text: str | None, finish_reason: str = "stop") -> Reply:
    return Reply(_completion({"role": "assistant", "content": text}, finish_reason))


def calls_tool(name: str, arguments: str) -> Reply:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return Reply(_completion(message, "tool_calls"))


def fails(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    error = {"error": {"message": message, "type": "error", "code": code}}
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Reply(error, status=status, headers=named)


def _completion(message: dict[str, Any], finish_reason: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "stub",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


class ModelServer:
    """`requests` are the JSON bodies that came, in order; `most_at_once` how many overlapped."""

    def __init__(self, script: Callable[[Request], Reply]) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.most_at_once = 0
        self.released = threading.Event()
        self._at_once = 0
        self._lock = threading.Lock()

    base_url: str = ""

    def answer(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return self.script(request)
        finally:
            with self._lock:
                self._at_once -= 1


class _Handler(BaseHTTPRequestHandler):
    served: ModelServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        request = json.loads(self.rfile.read(length))
        request["_authorization"] = self.headers.get("authorization")
        reply = self.served.answer(request)
        if reply.hang:
            self.served.released.wait(30)
            self.close_connection = True
            return
        if reply.dribble:
            self._dribble()
            return
        if reply.reset:
            _reset(self.connection)
            self.close_connection = True
            return
        self._send(reply)

    def _dribble(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "100000")
        self.end_headers()
        for _ in range(300):
            self.wfile.write(b" ")
            self.wfile.flush()
            if self.served.released.wait(0.1):
                return

    def _send(self, reply: Reply) -> None:
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def model_server(script: Callable[[Request], Reply]) -> Iterator[ModelServer]:
    running = ModelServer(script)

    class Handler(_Handler):
        served = running

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # A client that has given up is no fault of the test.

    server = Server(("127.0.0.1", 0), Handler)
    running.base_url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield running
    finally:
        running.released.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
