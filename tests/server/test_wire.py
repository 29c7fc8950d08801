"""Whatever a client writes on a line, it is answered where it waits for an answer."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.server_process import ServerProcess
from support.staging import conversation

from stash_mcp.server.wire import Line, read_line

PING = '{"jsonrpc":"2.0","id":7,"method":"ping"}'


def refused(line: str) -> list[tuple[object, int]]:
    found = read_line(line)
    assert found.message is None
    return [(row.id, row.error.code) for row in found.refusals]


@pytest.mark.parametrize(
    "line",
    [
        PING,
        '{"jsonrpc":"2.0","id":"a","method":"x","params":null}',
        '{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}',
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        '{"jsonrpc":"2.0","id":1,"result":{}}',
        '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
    ],
)
def test_a_message_is_handed_on_as_it_is(line: str) -> None:
    assert read_line(f"{line}\r\n") == Line(message=line)
    assert read_line(f"\ufeff{line}\n") == Line(message=line)


@pytest.mark.parametrize("line", ["\n", "  \r\n", "\ufeff\n"])
def test_a_blank_line_is_nothing(line: str) -> None:
    assert read_line(line) == Line()


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("hello", [(None, -32700)]),
        (PING + PING, [(None, -32700)]),
        ("[" * 200_000, [(None, -32700)]),
        ('{"jsonrpc":"2.0","id":7,"method":"ping"', [(None, -32700)]),
        ('{"id":7,"method":"x","jsonrpc":"2.0","params":' + "[" * 250 + "]" * 250 + "}",
         [(7, -32700)]),
        ("42", [(None, -32600)]),
        ("null", [(None, -32600)]),
        ("[]", [(None, -32600)]),
        (f"[{PING},{PING.replace('7', '8')}]", [(7, -32600), (8, -32600)]),
        ('[{"jsonrpc":"2.0","method":"x"},3]', [(None, -32600)]),
        ('{"jsonrpc":"2.0","id":7}', [(7, -32600)]),
        ('{"jsonrpc":"2.0","id":7,"method":5}', [(7, -32600)]),
        ('{"jsonrpc":"2.0","id":7,"method":"' + "m" * 5000 + '"}', [(7, -32600)]),
        ('{"jsonrpc":"1.0","id":7,"method":"ping"}', [(7, -32600)]),
        ('{"id":"seven","method":"ping"}', [("seven", -32600)]),
        ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', [(None, -32600)]),
        ('{"jsonrpc":"2.0","id":true,"method":"ping"}', [(None, -32600)]),
        ('{"jsonrpc":"2.0","id":null,"method":"ping"}', [(None, -32600)]),
        ('{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', [(None, -32600)]),
        ('{"jsonrpc":"2.0","id":7,"method":"x","params":[1]}', [(7, -32602)]),
        ('{"jsonrpc":"2.0","id":7,"method":"x","params":"y"}', [(7, -32602)]),
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused_with_the_id_that_can_be_read(
    line: str, answers: list[tuple[object, int]]
) -> None:
    assert refused(line) == answers


def test_a_notification_is_not_answered_whatever_its_params() -> None:
    assert read_line('{"jsonrpc":"2.0","method":"x","params":[1]}') == Line()


def test_a_batch_of_any_length_gets_a_bounded_answer() -> None:
    batch = json.dumps([{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(5000)])
    assert len(refused(batch)) == 100


def test_half_a_character_is_taken_for_the_sign_of_one_that_is_lost() -> None:
    line = r'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"cut \ud83d","b":"\ud83d\ude00"}}'
    message = read_line(line).message
    assert message is not None
    assert json.loads(message)["params"] == {"a": "cut \ufffd", "b": "\U0001f600"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess({"STASH_MCP_HOME": str(tmp_path / "home")})
    with server.process:
        server.initialize()
        yield server
        server.process.kill()


def write(server: ServerProcess, line: bytes) -> None:
    assert server.process.stdin is not None
    server.process.stdin.write(line + b"\n")
    server.process.stdin.flush()


def test_a_server_answers_what_it_cannot_read_and_goes_on(server: ServerProcess) -> None:
    for line, request_id, code in (
        (b"hello", None, -32700),
        (b"\xff\xfe", None, -32700),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}', 5, -32602),
    ):
        write(server, line)
        answer = server.receive()
        assert (answer["id"], answer["error"]["code"]) == (request_id, code)
    talk = conversation("a", "cut \ud83d", "b")
    call = {"name": "import_traces", "arguments": {"data": json.dumps(talk, ensure_ascii=False)}}
    request = {"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": call}
    write(server, json.dumps(request).encode())
    assert server.receive()["result"]["structuredContent"]["imported"] == 1
    shown = server.call(7, "get_trace", trace_id="a")
    assert shown["structuredContent"]["steps"][0]["content"] == "cut \ufffd"


def test_nothing_else_reads_what_the_client_writes() -> None:
    # A child that inherits standard input would take the client's next message.
    program = (
        "import os\n"
        "from stash_mcp.server.input import take_input\n"
        "lines = take_input()\n"
        "assert os.read(0, 10) == b''\n"
        "assert not os.get_inheritable(lines.fileno()) and lines.fileno() > 2\n"
        "print(lines.readline() + lines.readline(), flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=b"one\ntwo", capture_output=True, check=True
    )
    assert done.stdout.split() == [b"one", b"two"]
