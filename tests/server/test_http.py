"""Serving over HTTP: real sockets on loopback, in this process and in one of its own."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from itertools import product
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from support.staging import Stage, conversation, jsonl

from stash_mcp.cli.main import main
from stash_mcp.server.admission import MOST_BYTES
from stash_mcp.server.http import HttpServer, open_server, serve_app
from stash_mcp.server.listening import HttpOptions
from stash_mcp.storage.files import try_lock

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-the-tests-0001"
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "0"},
}
JSON_AND_EVENTS = {"accept": "application/json, text/event-stream"}
PATIENCE = 20

Mode = Literal["auto", "legacy"]


@asynccontextmanager
async def serving(stage: Stage, options: HttpOptions) -> AsyncIterator[HttpServer]:
    server = open_server(stage.settings, replace(options, port=0), TOKEN)
    with closing(server.listener):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_app, server.app, server.listener, server.options)
            yield server
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def connected(
    url: str, mode: Mode = "auto", token: str = TOKEN, verify: ssl.SSLContext | bool = True
) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=bearer(token), verify=verify) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def post(url: str, headers: dict[str, str], method: str = "initialize") -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": INITIALIZE}
    async with httpx2.AsyncClient() as http:
        return await http.post(url, json=body, headers=JSON_AND_EVENTS | headers)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_of_each_era_imports_reads_and_is_refused(mode: Mode, stage: Stage) -> None:
    text = jsonl([conversation("one")]).decode()
    async with serving(stage, HttpOptions()) as server, connected(server.url, mode) as client:
        modern = client.protocol_version >= "2026"
        tools = (await client.list_tools()).tools
        imported = await client.call_tool("import_traces", {"data": text})
        refused = await client.call_tool("get_run", {"run_id": "none"})
    assert modern == (mode == "auto")
    assert {"import_traces", "get_run"} < {tool.name for tool in tools}
    assert (imported.structured_content or {})["trace_ids"] == ["one"]
    assert refused.is_error
    assert stage.backend.get_trace("one").trace.title == "Conversation one"


@pytest.mark.anyio
async def test_the_first_call_of_a_modern_client_needs_no_list_before(stage: Stage) -> None:
    async with serving(stage, HttpOptions()) as server, connected(server.url) as client:
        answer = await client.call_tool("list_runs", {})
    assert (answer.structured_content or {})["total"] == 0


NOTHING_SENT = 'Bearer realm="stash-skills"'
WRONG_TOKEN = 'Bearer realm="stash-skills", error="invalid_token"'


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/mcp", "/elsewhere"])
async def test_without_its_token_nothing_is_answered(path: str, stage: Stage) -> None:
    cases = [
        ({}, NOTHING_SENT),
        ({"Authorization": f"Basic {TOKEN}"}, NOTHING_SENT),
        ({"Authorization": "Bearer"}, WRONG_TOKEN),
        (bearer(TOKEN[:-1]), WRONG_TOKEN),
        (bearer(f"{TOKEN}0"), WRONG_TOKEN),
    ]
    async with serving(stage, HttpOptions()) as server:
        for headers, challenge in cases:
            answer = await post(server.url.removesuffix("/mcp") + path, headers)
            assert answer.status_code == 401, headers
            assert answer.headers["www-authenticate"] == challenge
            assert TOKEN not in answer.text
            assert "token" in answer.json()["message"]


FOREIGN = [
    ({"Host": "evil.example:80"}, 421),
    ({"Host": "127.0.0.1.evil.example"}, 421),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "http://localhost.evil.example:8274"}, 403),
    ({"Origin": "http://localhost:3000.evil.example"}, 403),
    ({"Host": "127.0.0.1:80@evil.example"}, 421),
    ({"Host": "localhost:"}, 421),
]


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["2025-06-18", "2026-07-28"])
@pytest.mark.parametrize("asks_for_token", [True, False])
async def test_a_page_that_points_a_name_here_is_turned_away_in_both_eras(
    era: str, asks_for_token: bool, stage: Stage
) -> None:
    ours = {"MCP-Protocol-Version": era, **bearer(TOKEN)}
    async with serving(stage, HttpOptions(asks_for_token=asks_for_token)) as server:
        for (headers, status), method in product(FOREIGN, ("initialize", "tools/list")):
            answer = await post(server.url, ours | headers, method)
            assert (answer.status_code, "stash-skills" in answer.text) == (status, False), headers


@pytest.mark.anyio
async def test_its_own_names_are_answered_at_any_port(stage: Stage) -> None:
    own: list[dict[str, str]] = [
        {"Host": "localhost:9000"},
        {"Host": "[::1]:8274"},
        {"Host": "box.local"},
        {"Host": "box.local:443", "Origin": "https://box.local"},
        {"Origin": "http://localhost:3000"},
    ]
    async with serving(stage, HttpOptions(names=("box.local",))) as server:
        url = server.url.replace("box.local", "127.0.0.1")
        for headers in own:
            answer = await post(url, bearer(TOKEN) | headers)
            assert (answer.status_code, "stash-skills" in answer.text) == (200, True), headers


@pytest.mark.anyio
async def test_a_request_that_is_too_large_is_told_another_way(stage: Stage) -> None:
    large = "x" * (MOST_BYTES + 1)

    async def in_chunks() -> AsyncIterator[bytes]:
        for _ in range(MOST_BYTES // 2**20 + 1):
            yield b"x" * 2**20

    async with serving(stage, HttpOptions()) as server, httpx2.AsyncClient() as http:
        headers = JSON_AND_EVENTS | bearer(TOKEN) | {"content-type": "application/json"}
        for content in (large, in_chunks()):
            answer = await http.post(server.url, content=content, headers=headers)
            assert answer.status_code == 413
            assert "import_traces(path=...)" in answer.text


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["2025-06-18", "2026-07-28"])
async def test_a_client_that_goes_in_the_middle_of_its_request_is_no_error(
    era: str, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    begun = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"MCP-Protocol-Version: {era}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nContent-Length: 1000\r\n\r\n{"
    )
    async with serving(stage, HttpOptions()) as server:
        port = server.listener.getsockname()[1]
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(begun.encode())
        # Answered after the one that has gone was looked at.
        for _ in range(3):
            assert (await post(server.url, bearer(TOKEN))).status_code == 200
    assert "Traceback" not in caplog.text


@pytest.mark.anyio
async def test_without_auth_no_token_is_asked_for(stage: Stage) -> None:
    async with serving(stage, HttpOptions(asks_for_token=False)) as server:
        assert (await post(server.url, {})).status_code == 200
    assert not stage.settings.http_token_path.exists()


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stash-skills test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    cert_path, key_path = folder / "cert.pem", folder / "key.pem"
    cert_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert_path, key_path


@pytest.mark.anyio
async def test_with_a_certificate_it_serves_tls_and_nothing_else(
    stage: Stage, tmp_path: Path
) -> None:
    cert, key = self_signed(tmp_path)
    trust = ssl.create_default_context(cafile=str(cert))
    async with serving(stage, HttpOptions(tls_cert=cert, tls_key=key)) as server:
        assert server.url.startswith("https://127.0.0.1:")
        async with connected(server.url, verify=trust) as client:
            answer = await client.call_tool("list_runs", {})
        with pytest.raises(httpx2.TransportError):
            await post(server.url.replace("https", "http"), bearer(TOKEN))
    assert (answer.structured_content or {})["total"] == 0


class Process:
    """`stash-skills serve --http`, and what it said at its start."""

    def __init__(self, stage: Stage, *options: str, **environment: str) -> None:
        self.environment = {
            **os.environ,
            "STASH_MCP_HOME": str(stage.settings.home),
            "CLAUDE_PROJECT_DIR": str(stage.settings.project_dir),
            "PYTHONPATH": str(ROOT),
            **environment,
        }
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "stash_mcp", "serve", "--http", "--port", "0", *options],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert self.popen.stderr is not None
        self.said = ""
        while "claude mcp add" not in self.said:
            line = self.popen.stderr.readline()
            assert line, self.said
            self.said += line
        found = re.search(r"https?://\S+/mcp", self.said)
        assert found is not None
        self.url = found[0]


@pytest.fixture
def process(stage: Stage) -> Iterator[Process]:
    process = Process(stage)
    with process.popen:
        yield process
        process.popen.kill()


@pytest.fixture
def running_job(stage: Stage) -> Iterator[str]:
    """The id of a training that never ends: its worker's lock is ours."""
    stage.conversations()
    model = stage.train()
    stage.begin()
    with try_lock(stage.settings.worker_lock_path) as held:
        assert held
        yield model.id


@pytest.mark.anyio
async def test_clients_over_http_and_stdio_see_one_library(process: Process, stage: Stage) -> None:
    token = stage.settings.http_token_path.read_text("utf-8").strip()
    assert token not in process.said
    assert f"$(cat {stage.settings.http_token_path})" in process.said or os.name != "posix"
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "stash_mcp", "serve"], env=process.environment
    )
    async with (
        connected(process.url, "auto", token) as first,
        connected(process.url, "legacy", token) as second,
        Client(parameters) as third,
    ):
        clients = (first, second, third)
        for number, client in enumerate(clients):
            text = jsonl([conversation(f"from-{number}")]).decode()
            assert not (await client.call_tool("import_traces", {"data": text})).is_error
        for client in clients:
            listed = (await client.call_tool("list_traces", {})).structured_content or {}
            assert {row["trace_id"] for row in listed["traces"]} == {"from-0", "from-1", "from-2"}


def open_session(http: httpx2.Client, url: str) -> dict[str, str]:
    """The headers of a session of the older era."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    session = http.post(url, json=body).headers["mcp-session-id"]
    headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-06-18"}
    http.post(
        url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers
    ).raise_for_status()
    return headers


def get_run(job_id: str) -> dict[str, Any]:
    params = {
        "name": "get_run",
        "arguments": {"run_id": job_id, "wait_seconds": 50},
        "_meta": {"progressToken": "p"},
    }
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals for processes")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_it_leaves_on_a_signal_though_a_stream_is_open_and_a_call_is_waiting(
    name: str, running_job: str, process: Process, stage: Stage
) -> None:
    token = stage.settings.http_token_path.read_text("utf-8").strip()
    with httpx2.Client(headers=JSON_AND_EVENTS | bearer(token), timeout=PATIENCE) as http:
        session = open_session(http, process.url)
        with (
            http.stream("GET", process.url, headers=session) as events,
            http.stream("POST", process.url, json=get_run(running_job), headers=session) as call,
        ):
            events.raise_for_status()
            news = next(line for line in call.iter_lines() if line.startswith("data: {"))
            assert json.loads(news.removeprefix("data: "))["method"] == "notifications/progress"
            process.popen.send_signal(getattr(signal, name))
            assert process.popen.wait(PATIENCE) == 0
    assert process.popen.stdout is not None
    assert process.popen.stderr is not None
    assert process.popen.stdout.read() == ""
    assert "Traceback" not in process.popen.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        (["--http", "--host", "0.0.0.0"], "--tls-cert"),
        (["--http", "--host", "0.0.0.0", "--no-auth"], "Leave out --no-auth"),
        (["--port", "0"], "Add --http"),
    ],
)
def test_what_is_not_served_is_said_by_the_command(
    arguments: list[str], fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert fix in said.err


def test_serving_over_stdio_does_without_what_http_needs() -> None:
    program = "import sys, stash_mcp.server.stdio; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = set(done.stdout.decode().split())
    assert "stash_mcp.server.app" in loaded
    assert not loaded & {f"stash_mcp.server.{name}" for name in ("http", "listening", "bearer")}
