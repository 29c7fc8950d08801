"""The servers, and answers that no sound server gives."""

import contextlib
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from stand_in_stash.routes import Asked, Reply, answer
from stand_in_stash.storage import Storage
from stand_in_stash.world import GOOD, KEYS, World

CERTIFICATE = Path(__file__).parent / "localhost.pem"
_NO_BODY = (204, 304)


@dataclass(frozen=True)
class Odd:
    """An answer instead of the right one, to the next request.

    after_effect: the request is done for real first. status, content_type, headers, body: of the
    answer; a null body is that of the right answer. raw: these bytes and nothing else. cut: only so
    many bytes of the body, which is announced whole. reset: no answer, the connection is dropped.
    hang: no answer until the test ends. drip: seconds between single bytes, of head and body, or
    with head_at_once of the body alone.
    """

    after_effect: bool = False
    status: int | None = None
    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    raw: bytes | None = None
    cut: int | None = None
    reset: bool = False
    hang: bool = False
    drip: float | None = None
    head_at_once: bool = False


@dataclass
class StandIn:
    """odd: for the next requests, in order; None for a right answer. always: for all the others.
    asked: every request, in order. connections: how many were opened.
    """

    world: World
    storage: Storage
    base_url: str = ""
    key: str = GOOD
    odd: deque[Odd | None] = field(default_factory=deque)
    always: Odd | None = None
    asked: list[Asked] = field(default_factory=list)
    user_agents: set[str] = field(default_factory=set)
    connections: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def answer(self, asked: Asked) -> tuple[Reply, Odd]:
        self.asked.append(asked)
        odd = self.odd.popleft() if self.odd else self.always
        if odd is not None and not odd.after_effect and odd.body is not None:
            return _changed(Reply(), odd), odd
        if odd is not None and not odd.after_effect and (odd.reset or odd.hang or odd.raw):
            return Reply(), odd
        reply = answer(self.world, asked, self.storage.signed_url)
        return (reply, Odd()) if odd is None else (_changed(reply, odd), odd)

    def paths(self, method: str) -> list[str]:
        return [asked.path for asked in self.asked if asked.method == method]


def _changed(reply: Reply, odd: Odd) -> Reply:
    return Reply(
        reply.body if odd.body is None else odd.body,
        odd.status or reply.status,
        odd.content_type or reply.content_type,
        {**reply.headers, **odd.headers},
        reply.chunked and odd.cut is None,
    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave in one packet each; without this the second waits for an acknowledgement.
    disable_nagle_algorithm = True
    ended: threading.Event
    date: Callable[[], str]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def send(self, reply: Reply, odd: Odd) -> None:
        if odd.hang:
            self.ended.wait(30)
        if odd.hang or odd.reset:
            self.drop()
            return
        if odd.raw is not None:
            self._write(odd.raw, odd.drip)
            self.close_connection = True
            return
        self._write(self._head(reply), None if odd.head_at_once else odd.drip)
        body = b"" if reply.status in _NO_BODY else reply.body
        if reply.chunked:
            body = b"".join(_chunk(body[at : at + 4096]) for at in range(0, len(body), 4096))
            body += _chunk(b"")
        self._write(body if odd.cut is None else body[: odd.cut], odd.drip)
        if odd.cut is not None:
            self.close_connection = True

    def drop(self) -> None:
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _head(self, reply: Reply) -> bytes:
        length = ("Transfer-Encoding", "chunked")
        if not reply.chunked:
            length = ("Content-Length", str(len(reply.body)))
        lines = [("Date", self.date()), ("Content-Type", reply.content_type)]
        if reply.status not in _NO_BODY:
            lines.append(length)
        given = {name.lower() for name in reply.headers}
        lines = [line for line in lines if line[0].lower() not in given]
        lines += reply.headers.items()
        text = "".join(f"{name}: {value}\r\n" for name, value in lines)
        return f"HTTP/1.1 {reply.status} Said\r\n{text}\r\n".encode("latin-1", "replace")

    def _write(self, data: bytes, drip: float | None) -> None:
        if drip is None:
            self.wfile.write(data)
            return
        for byte in data:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.ended.wait(drip):
                return


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    tls: ssl.SSLContext | None = None
    stand_in: StandIn | None = None

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        connection, address = super().get_request()
        if self.stand_in is not None:
            self.stand_in.connections += 1
        if self.tls is not None:
            connection = self.tls.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # A client that has given up is no fault of the test.


def _api_handler(stand_in: StandIn) -> type[_Handler]:
    class Handler(_Handler):
        ended = stand_in.ended

        def _serve(self) -> None:
            # A proxy is asked for a whole URL.
            target = urlsplit(self.path)
            asked = Asked(
                self.command,
                target.path,
                target.query,
                self.headers.get("authorization"),
                self.read_body(),
                self.headers.get("accept-encoding"),
            )
            stand_in.user_agents.add(self.headers.get("user-agent", ""))
            reply, odd = stand_in.answer(asked)
            marked = {"X-Stash-Cli-Latest": "0.9.0", **reply.headers}
            if "text/html" in reply.content_type:
                marked = reply.headers
            self.send(
                Reply(reply.body, reply.status, reply.content_type, marked, reply.chunked), odd
            )

        do_GET = do_POST = do_PATCH = do_DELETE = _serve

    Handler.date = lambda self: format_datetime(stand_in.world.clock(), usegmt=True)
    return Handler


def _storage_handler(storage: Storage, ended_: threading.Event) -> type[_Handler]:
    class Handler(_Handler):
        ended = ended_

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = storage.answer(self.path, headers)
            cut = storage.cuts.pop(0) if storage.cuts else None
            self.send(reply, Odd(cut=cut, drip=storage.drip, head_at_once=True))

    Handler.date = lambda self: "Thu, 01 Oct 2026 00:00:00 GMT"
    return Handler


@contextmanager
def _serving(
    handler: type[_Handler], stand_in: StandIn | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    server = _Server(("127.0.0.1", 0), handler)
    server.stand_in, server.tls = stand_in, tls
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@contextmanager
def stand_in(world: World | None = None, *, tls: bool = False) -> Iterator[StandIn]:
    """A running stand-in and its storage host; at the end the storage must have seen no key."""
    running = StandIn(world or World(), Storage())
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    handler, storage = _api_handler(running), _storage_handler(running.storage, running.ended)
    with _serving(handler, running, context) as port, _serving(storage) as storage_port:
        running.base_url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        running.storage.base_url = f"http://127.0.0.1:{storage_port}"
        try:
            yield running
        finally:
            running.ended.set()
    assert not running.storage.leaks(list(KEYS)), "the storage host saw a key of Stash"
