"""Base models from folders, and from a model hub that a server on loopback plays."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stash_mcp.errors import TrainingError
from stash_mcp.reward.base_model import base_model_folder


@contextmanager
def hub(status: int, code: str | None = None) -> Iterator[str]:
    """A hub that answers everything with one status; yields its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            if code:
                self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (404, "RepoNotFound", "hub has no model somebody/model"),
        (401, "RepoNotFound", "hub has no model somebody/model"),
        (403, "GatedRepo", "accepted its terms"),
        (401, None, "hub refused to give somebody/model"),
        (500, None, "hub could not be reached"),
    ],
)
def test_what_the_hub_answers_is_said_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, code: str | None, said: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)

    with hub(status, code) as endpoint, pytest.raises(TrainingError, match=said) as caught:
        base_model_folder("somebody/model", endpoint=endpoint, cache_dir=tmp_path)

    assert "folder of a base model" in caught.value.fix


def test_a_hub_that_nobody_answers_for_is_said_to_be_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with hub(200) as gone:
        pass

    with pytest.raises(TrainingError, match="hub could not be reached"):
        base_model_folder("somebody/model", endpoint=gone, cache_dir=tmp_path)


def test_without_a_network_a_model_that_was_never_fetched_is_out_of_reach(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="not on this machine"):
        base_model_folder("somebody/model", cache_dir=tmp_path)


@pytest.mark.parametrize("name", ["/no/such/folder", "no/such/folder", "a b", "", ".."])
def test_a_name_that_is_neither_a_folder_nor_a_model_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TrainingError):
        base_model_folder(name, cache_dir=tmp_path)


def test_a_folder_is_taken_as_it_is(bert_base: Path) -> None:
    assert base_model_folder(str(bert_base)) == bert_base


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"has no config\.json"):
        base_model_folder(str(tmp_path))


def test_a_folder_with_a_pickle_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").touch()

    with pytest.raises(TrainingError, match="no weights in the safetensors format"):
        base_model_folder(str(tmp_path))
