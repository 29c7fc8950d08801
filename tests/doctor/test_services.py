"""Models and Stash over real HTTP on loopback; models through the real process that asks them."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.model_server import Request, fails, free_port, model_server, says

from stash_mcp.doctor import probing, services
from stash_mcp.doctor.probing import ProbeFailed, probe
from stash_mcp.settings import StashAccess

KEY = "stash-key-1234567890"


@contextmanager
def stash(status: int, body: object) -> Iterator[tuple[StashAccess, list[str]]]:
    """A Stash that answers everything so, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['authorization']}")
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield StashAccess(url, KEY, "STASH_URL", "STASH_API_KEY"), asked
        finally:
            server.shutdown()


def test_stash_is_asked_once_with_the_key_and_is_well() -> None:
    with stash(200, [{"name": "stash", "description": "its own"}]) as (access, asked):
        check = services.stash(access)
    assert check.state == "ok"
    assert "the account is enabled" in check.said
    assert asked == [f"/api/v1/rm/formats Bearer {KEY}"]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, {"detail": "Invalid API key"}, "key"),
        (403, "<html>Forbidden</html>", "403"),
        (404, {"detail": "Reward models are not enabled for this account"}, "not enabled"),
        (500, {"detail": "boom"}, "500"),
    ],
)
def test_what_stash_refuses_is_a_problem_in_clear_words(
    status: int, body: object, words: str
) -> None:
    with stash(status, body) as (access, asked):
        check = services.stash(access)
    assert check.state == "problem"
    assert words in f"{check.said} {check.fix}"
    assert KEY not in check.model_dump_json()
    assert len(asked) == 1


def test_a_stash_that_is_not_there_is_a_problem() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    check = services.stash(StashAccess(url, KEY, "STASH_URL", "STASH_API_KEY"))
    assert check.state == "problem"
    assert "STASH_URL" in (check.fix or "")


def test_without_a_key_stash_is_not_asked() -> None:
    access = StashAccess("http://127.0.0.1:1", None, "the default", "no key is set")
    check = services.stash(access)
    assert (check.state, check.said) == ("not checked", "No key is set.")


def test_each_model_is_called_once_and_its_failure_told() -> None:
    pytest.importorskip("litellm")

    def answer(request: Request) -> object:
        return fails(401, "bad key sk-abcdefgh12345") if request["model"] == "bad" else says("yes")

    with model_server(answer) as server:  # type: ignore[arg-type]
        names = ("openai/good", "openai/bad", "builtin/comments", "openai/good")
        checks = services.models(names, server.base_url)
    found = {check.name: check for check in checks}
    assert found["model builtin/comments"].state == "ok"
    assert found["model openai/good"].state == "ok"
    bad = found["model openai/bad"]
    assert bad.state == "problem"
    assert "sk-abcdefgh12345" not in bad.model_dump_json()
    assert sorted(request["model"] for request in server.requests) == ["bad", "good"]


def test_no_model_is_called_that_was_not_named() -> None:
    [check] = services.models((), None)
    assert check.state == "not checked"


def test_a_process_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_MODULE", "http.server")
    with pytest.raises(ProbeFailed, match="no answer within 1 s"):
        probe(["--bind", "127.0.0.1", str(free_port())], 1.0)


def test_a_process_that_dies_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_MODULE", "no_such_module_here")
    with pytest.raises(ProbeFailed, match="no_such_module_here"):
        probe(["gpu"], 20.0)
