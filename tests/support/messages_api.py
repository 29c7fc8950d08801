"""A stand-in on loopback for the API that Claude Code talks to, with scripted behaviour.

A script is called with each request for the main model and says what the model answers. A
`conversation` is a script written as a generator: it yields calls of tools and gets their results.
"""

import json
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]


@dataclass(frozen=True)
class Says:
    """An answer in text; "" is an empty one."""

    text: str
    stop_reason: str = "end_turn"


@dataclass(frozen=True)
class Calls:
    """A call of one tool."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fails:
    status: int
    message: str = "no"


Turn = Says | Calls | Fails
Script = Callable[[Request], Turn]


@dataclass(frozen=True)
class Result:
    """What a tool answered, as the model reads it. tools: those that it may call next; the others
    have to be looked up first, with ToolSearch.
    """

    text: str
    is_error: bool
    tools: frozenset[str]


def conversation(turns: Generator[Calls, Result, str]) -> Script:
    """Plays `turns`: each call that it yields is sent, and its result is sent in. What it returns
    is the last answer; requests after that get the same. What fails in it refuses the request, in
    its own words.
    """
    last: list[Turn] = []
    lock = threading.Lock()

    def script(request: Request) -> Turn:
        with lock:
            if last:
                return last[0]
            try:
                return turns.send(_result(request))  # type: ignore[arg-type]
            except StopIteration as stop:
                last.append(Says(stop.value))
            except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
                last.append(Fails(400, f"{type(error).__name__}: {error}"))
            return last[0]

    return script


def _result(request: Request) -> Result | None:
    """Of the call before this request; None where it is the first one."""
    found = [
        block
        for message in request["messages"]
        for block in _blocks(message["content"])
        if block["type"] == "tool_result"
    ]
    if not found:
        return None
    text = "\n".join(block.get("text", "") for block in _blocks(found[-1].get("content", "")))
    return Result(text, bool(found[-1].get("is_error")), tools(request))


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def tools(request: Request) -> frozenset[str]:
    return frozenset(tool["name"] for tool in request.get("tools", ()))


def texts(request: Request) -> str:
    """All that the request says in words: the system prompt, then the messages."""
    parts = [request.get("system", ""), *(row["content"] for row in request["messages"])]
    return "\n".join(block.get("text", "") for part in parts for block in _blocks(part))


class MessagesApi:
    """`requests` are the bodies that came, in order. A call of a tool that the request does not
    hold is refused, as no model would make it.
    """

    base_url: str = ""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._numbers = iter(range(1, 1_000_000))
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Turn:
        with self._lock:
            self.requests.append(request)
        turn = self.script(request)
        if isinstance(turn, Calls) and turn.tool not in tools(request):
            return Fails(400, f"{turn.tool} is not among the tools of this request")
        return turn

    def number(self) -> int:
        with self._lock:
            return next(self._numbers)


class _Handler(BaseHTTPRequestHandler):
    served: MessagesApi
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._send(200, b"", "application/json")

    def do_GET(self) -> None:
        self._fail(Fails(404))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            self._send(200, b'{"input_tokens": 10}', "application/json")
        elif path == "/v1/messages":
            self._answer(json.loads(body))
        else:
            self._fail(Fails(404))

    def _answer(self, request: Request) -> None:
        turn = self.served.answer(request)
        if isinstance(turn, Fails):
            self._fail(turn)
            return
        number = self.served.number()
        if request.get("stream"):
            self._send(200, _events(request["model"], number, turn), "text/event-stream")
        else:
            message = _message(request["model"], number, turn)
            self._send(200, json.dumps(message).encode(), "application/json")

    def _fail(self, turn: Fails) -> None:
        error = {"type": "error", "error": {"type": "api_error", "message": turn.message}}
        self._send(turn.status, json.dumps(error).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _block(number: int, turn: Says | Calls) -> dict[str, Any]:
    if isinstance(turn, Says):
        return {"type": "text", "text": turn.text}
    return {
        "type": "tool_use",
        "id": f"toolu_{number:04d}",
        "name": turn.tool,
        "input": turn.arguments,
    }


def _message(model: str, number: int, turn: Says | Calls) -> dict[str, Any]:
    return {
        "id": f"msg_{number:04d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [_block(number, turn)],
        "stop_reason": turn.stop_reason if isinstance(turn, Says) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 12, "output_tokens": 7},
    }


def _events(model: str, number: int, turn: Says | Calls) -> bytes:
    whole = _message(model, number, turn)
    block = whole["content"][0]
    if isinstance(turn, Says):
        opened, delta = {**block, "text": ""}, {"type": "text_delta", "text": turn.text}
    else:
        opened = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn.arguments)}
    events = (
        ("message_start", {"message": {**whole, "content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": opened}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        (
            "message_delta",
            {
                "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
                "usage": {"output_tokens": 7},
            },
        ),
        ("message_stop", {}),
    )
    lines = (
        f"event: {kind}\ndata: {json.dumps({'type': kind, **row})}\n\n" for kind, row in events
    )
    return "".join(lines).encode()


@contextmanager
def messages_api(script: Script) -> Iterator[MessagesApi]:
    running = MessagesApi(script)

    class Handler(_Handler):
        served = running

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # A client that has given up is no fault of the test.

    server = Server(("127.0.0.1", 0), Handler)
    running.base_url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
