"""A reward model's archive: both shapes, broken off and carried on, and never trusted."""

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from stand_in_stash import KEYS, Odd, StandIn
from stand_in_stash.routes import Reply
from support.stash_calls import commented, trained

from stash_mcp.errors import (
    NotWritableError,
    StashAddressError,
    StashAnswerError,
    StashError,
    StashNotFoundError,
    StashNotReadyError,
    StashServerError,
    StashTimeoutError,
    StorageError,
)
from stash_mcp.settings import StashAccess
from stash_mcp.stash import Limits, StashClient, download_weights, open_client
from stash_mcp.stash.address import address_of
from stash_mcp.stash.sent import Training
from stash_mcp.storage.files import try_lock


def archive() -> bytes:
    """A tar.gz of 200,000 bytes that do not compress; what is in it is another room's matter."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        info = tarfile.TarInfo("reward-model/model.safetensors")
        info.size = 200_000
        tar.addfile(info, io.BytesIO(os.urandom(info.size)))
    return data.getvalue()


@pytest.fixture
def model(client: StashClient, stash: StandIn) -> str:
    stash.world.weights = stash.storage.data = archive()
    return trained(client)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "weights"


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def ranges(stash: StandIn) -> list[str | None]:
    return [headers.get("range") for _, headers in stash.storage.seen]


def test_a_signed_archive_is_fetched_whole_and_without_the_key(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    path = download_weights(client, model, folder)
    assert path.read_bytes() == stash.storage.data
    assert left_over(folder) == [path.name]
    assert len(stash.storage.seen) == 1
    assert "authorization" not in stash.storage.seen[0][1]
    assert stash.storage.leaks(list(KEYS)) == []


def test_an_older_servers_stream_is_fetched_whole(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.world.streams_weights = True
    assert download_weights(client, model, folder).read_bytes() == stash.world.weights
    assert stash.storage.seen == []


def test_nothing_on_the_way_is_asked_to_compress_the_answer(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    download_weights(client, model, folder, max_bytes=1_000_000)
    asked = [row for row in stash.asked if row.path.endswith("/weights")]
    assert [row.accept_encoding for row in asked] == ["identity"]


def test_a_broken_download_is_carried_on_where_it_stopped(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.storage.cuts = [70_000, 60_000, None]
    path = download_weights(client, model, folder)
    assert path.read_bytes() == stash.storage.data
    assert ranges(stash) == [None, "bytes=70000-", "bytes=130000-"]
    assert left_over(folder) == [path.name]


def test_what_came_is_kept_for_the_next_call(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.storage.cuts = [70_000, 0, 0, 0, 0, 0]
    with pytest.raises(StashError):
        download_weights(client, model, folder)
    assert (folder / f"{model}.tar.gz.part").stat().st_size == 70_000
    stash.storage.cuts = []
    assert download_weights(client, model, folder).read_bytes() == stash.storage.data
    assert ranges(stash)[-1] == "bytes=70000-"


def test_an_expired_address_is_asked_for_again(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.storage.expires_after_use = True
    stash.storage.cuts = [70_000]
    assert download_weights(client, model, folder).read_bytes() == stash.storage.data
    assert len(stash.storage.issued) == 2


def test_an_address_that_never_holds_is_told_in_the_end(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.storage.signed_url = lambda id: f"{stash.storage.base_url}/{id}?signature=old"  # type: ignore[method-assign]
    with pytest.raises(StashServerError, match="status 403") as caught:
        download_weights(client, model, folder)
    assert "signature" not in str(caught.value)
    assert len(stash.storage.seen) == client.sender.connection.limits.attempts


def test_a_file_that_changed_meanwhile_is_fetched_anew(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.storage.cuts = [70_000, 0, 0, 0, 0, 0]
    with pytest.raises(StashError):
        download_weights(client, model, folder)
    stash.storage.cuts, stash.storage.data = [], archive()
    assert download_weights(client, model, folder).read_bytes() == stash.storage.data


def test_a_storage_without_ranges_is_fetched_anew(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.storage.honours_ranges = False
    stash.storage.cuts = [70_000]
    assert download_weights(client, model, folder).read_bytes() == stash.storage.data


def test_another_part_than_was_asked_for_is_not_put_together(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.storage.misses_by = 1
    stash.storage.cuts = [70_000]
    assert download_weights(client, model, folder).read_bytes() == stash.storage.data
    assert ranges(stash) == [None, "bytes=70000-", None]


def test_a_left_over_part_that_is_longer_than_the_file_is_dropped(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    folder.mkdir()
    (folder / f"{model}.tar.gz.part").write_bytes(b"x" * 500_000)
    note = json.dumps({"etag": stash.storage.etag, "total": len(stash.storage.data)})
    (folder / f"{model}.tar.gz.part.json").write_text(note)
    assert download_weights(client, model, folder).read_bytes() == stash.storage.data


@pytest.mark.parametrize("note", ["", "{", '{"etag": 7}', "[]"])
def test_a_part_of_unknown_origin_is_dropped(
    client: StashClient, stash: StandIn, model: str, folder: Path, note: str
) -> None:
    folder.mkdir()
    (folder / f"{model}.tar.gz.part").write_bytes(b"x" * 500)
    (folder / f"{model}.tar.gz.part.json").write_text(note)
    assert download_weights(client, model, folder).read_bytes() == stash.storage.data
    assert ranges(stash) == [None]


def test_a_model_without_weights_names_its_state(
    client: StashClient, stash: StandIn, folder: Path
) -> None:
    stash.world.polls = 0
    model = client.train(Training(name="tone", trace_ids=commented(client).trace_ids))
    with pytest.raises(StashNotReadyError, match="is queued"):
        download_weights(client, model.id, folder)


def test_an_unknown_model_is_not_found(client: StashClient, folder: Path) -> None:
    with pytest.raises(StashNotFoundError):
        download_weights(client, "00000000-0000-4000-8000-000000000000", folder)
    with pytest.raises(StashNotFoundError, match="no id"):
        download_weights(client, "../../etc", folder)


@pytest.mark.parametrize("streams", [True, False])
def test_an_archive_that_is_too_large_is_refused(
    client: StashClient, stash: StandIn, model: str, folder: Path, streams: bool
) -> None:
    stash.world.streams_weights = streams
    with pytest.raises(StashAnswerError, match="larger than 100,000 bytes"):
        download_weights(client, model, folder, max_bytes=100_000)
    assert left_over(folder) == []


def test_what_is_no_gzip_is_refused_and_not_kept(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.storage.data = b"<html>Not a file</html>"
    with pytest.raises(StashAnswerError, match=r"no tar\.gz"):
        download_weights(client, model, folder)
    assert left_over(folder) == []


def test_an_archive_that_is_called_compressed_in_transit_is_kept_as_it_is(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.odd.append(
        Odd(
            body=stash.world.weights,
            content_type="application/gzip",
            headers={"Content-Encoding": "gzip"},
        )
    )
    path = download_weights(client, model, folder)
    assert gzip.decompress(path.read_bytes())[:12] == b"reward-model"


@pytest.mark.parametrize(
    "url",
    [
        "http://files.example/a",
        "file:///etc/passwd",
        "https://",
        "ftp://a/b",
        "https://u:p@a/",
        "x",
    ],
)
def test_an_address_that_is_not_safe_is_not_asked(
    client: StashClient, stash: StandIn, model: str, folder: Path, url: str
) -> None:
    stash.odd.append(Odd(body=json.dumps({"url": url}).encode()))
    with pytest.raises(StashAddressError):
        download_weights(client, model, folder)


@pytest.mark.parametrize(
    "body", [b"{}", b'{"url": 7}', b"[]", b"", b'{"url": "' + b"x" * 70_000 + b'"}', b"\xff"]
)
def test_an_answer_without_an_address_is_refused(
    client: StashClient, stash: StandIn, model: str, folder: Path, body: bytes
) -> None:
    stash.always = Odd(body=body)
    with pytest.raises(StashAnswerError):
        download_weights(client, model, folder)


def test_a_web_page_in_place_of_the_archive_is_refused(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.always = Odd(body=b"<html>", content_type="text/html")
    with pytest.raises(StashAnswerError, match="neither an archive"):
        download_weights(client, model, folder)


def test_two_processes_do_not_fetch_one_model_at_once(
    client: StashClient, model: str, folder: Path
) -> None:
    folder.mkdir()
    with try_lock(folder / f"{model}.tar.gz.lock") as held:
        assert held
        with pytest.raises(StorageError, match="Another process"):
            download_weights(client, model, folder)


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="needs a folder without rights")
def test_a_folder_that_cannot_be_written_is_told(
    client: StashClient, model: str, tmp_path: Path
) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(NotWritableError):
            download_weights(client, model, tmp_path / "weights")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(os.name == "nt", reason="modes of files")
def test_the_archive_is_private(client: StashClient, model: str, folder: Path) -> None:
    path = download_weights(client, model, folder)
    assert path.stat().st_mode & 0o077 == 0


Bend = Callable[[Reply], Reply]


def with_headers(**headers: str) -> Bend:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda reply: replace(reply, headers={**reply.headers, **given})


def sends_more(reply: Reply) -> Reply:
    return replace(reply, body=reply.body + b"more", chunked=True)


def no_length(reply: Reply) -> Reply:
    return replace(reply, chunked=True)


LIES = {
    "another file": with_headers(ETag='"another"'),
    "a weak name": with_headers(ETag='W/"another"'),
    "a start before": with_headers(Content_Range="bytes 0-199999/200200"),
    "an end before its start": with_headers(Content_Range="bytes 70000-5/*"),
    "an end after the file's": with_headers(Content_Range="bytes 70000-999999999/*"),
    "another size": with_headers(Content_Range="bytes 70000-200000/200001"),
    "no range": with_headers(Content_Range=""),
    "no numbers": with_headers(Content_Range="bytes x-y/z"),
    "more than promised": sends_more,
    "not satisfiable": lambda reply: replace(reply, status=416, body=b""),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=list(LIES))
def test_no_lie_about_the_rest_of_a_file_gets_into_it(
    client: StashClient, stash: StandIn, model: str, folder: Path, lie: Bend
) -> None:
    stash.storage.cuts = [70_000]
    stash.storage.bent = [None, lie]
    path = download_weights(client, model, folder)
    assert path.read_bytes() == stash.storage.data
    assert ranges(stash) == [None, "bytes=70000-", None]
    assert left_over(folder) == [path.name]


@pytest.mark.parametrize("bend", [with_headers(Content_Length="100000"), no_length])
def test_a_first_answer_of_another_length_is_not_more_than_it_is(
    client: StashClient, stash: StandIn, model: str, folder: Path, bend: Bend
) -> None:
    stash.storage.bent = [bend]
    data = stash.storage.data
    path = download_weights(client, model, folder)
    assert path.read_bytes() in (data, data[:100_000])


def test_a_part_that_nobody_asked_for_is_not_taken_for_the_whole(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    half = len(stash.storage.data) // 2
    span = f"bytes {half}-{len(stash.storage.data) - 1}/{len(stash.storage.data)}"
    stash.storage.bent = [
        lambda reply: replace(
            reply, status=206, body=reply.body[half:], headers={"Content-Range": span}
        )
    ]
    assert download_weights(client, model, folder).read_bytes() == stash.storage.data


def test_a_storage_that_only_lies_comes_to_an_end(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.storage.bent = [lambda reply: replace(reply, status=416, body=b"")] * 40
    with pytest.raises(StashServerError, match="status 416"):
        download_weights(client, model, folder)
    assert len(stash.storage.seen) == client.sender.connection.limits.attempts
    assert left_over(folder) == []


def test_an_endless_archive_is_dropped_and_not_only_refused(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    stash.storage.bent = [no_length]
    with pytest.raises(StashAnswerError, match="larger than 100,000 bytes"):
        download_weights(client, model, folder, max_bytes=100_000)
    assert left_over(folder) == []


def test_a_storage_that_gives_byte_after_byte_is_given_up_and_what_came_is_kept(
    stash: StandIn, model: str, folder: Path
) -> None:
    access = StashAccess(stash.base_url, stash.key, "a test", "a test")
    limits = Limits(total_seconds=0.3, attempts=2)
    stash.storage.drip = 0.02
    with (
        open_client(access, limits, sleep=lambda _: None) as slow,
        pytest.raises(StashTimeoutError),
    ):
        download_weights(slow, model, folder)
    assert len(stash.storage.seen) == 2
    assert 0 < (folder / f"{model}.tar.gz.part").stat().st_size < 1000


# --- sent on ---


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_storage_may_send_on_and_the_key_goes_nowhere(
    client: StashClient, stash: StandIn, model: str, folder: Path, status: int
) -> None:
    def elsewhere(reply: Reply) -> Reply:
        return Reply(b"", status, headers={"Location": stash.storage.signed_url(model)})

    stash.storage.bent = [elsewhere]
    assert download_weights(client, model, folder).read_bytes() == stash.storage.data
    assert ["authorization" in headers for _, headers in stash.storage.seen] == [False, False]


def test_not_even_a_storage_that_sends_back_to_stash_is_given_the_key(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    back = f"{stash.base_url}/api/v1/rm/traces"
    stash.storage.bent = [lambda reply: Reply(b"", 302, headers={"Location": back})] * 9
    with pytest.raises(StashServerError, match="status 401"):
        download_weights(client, model, folder)
    assert [row.authorization for row in stash.asked if row.path.endswith("/traces")][-1] is None


@pytest.mark.parametrize(
    "target",
    ["http://files.example/a", "ftp://127.0.0.1/a", "https://u:p@files.example/", "http://[", "//"],
)
def test_a_storage_that_sends_on_to_what_is_not_safe_is_not_followed(
    client: StashClient, stash: StandIn, model: str, folder: Path, target: str
) -> None:
    stash.storage.bent = [lambda reply: Reply(b"", 302, headers={"Location": target})] * 9
    with pytest.raises((StashAddressError, StashAnswerError)):
        download_weights(client, model, folder)
    assert left_over(folder) == []


def test_a_storage_that_sends_on_and_on_comes_to_an_end(
    client: StashClient, stash: StandIn, model: str, folder: Path
) -> None:
    def onward(reply: Reply) -> Reply:
        return Reply(b"", 302, headers={"Location": stash.storage.signed_url(model)})

    stash.storage.bent = [onward] * 40
    with pytest.raises(StashAnswerError, match="on and on"):
        download_weights(client, model, folder)
    assert len(stash.storage.seen) < 20


@pytest.mark.parametrize(
    ("base", "target", "taken"),
    [
        ("https://stash.example", "https://files.example/a", True),
        ("https://stash.example", "http://files.example/a", False),
        ("https://stash.example", "http://127.0.0.1:9/a", False),
        ("https://stash.example", "https://localhost/a", False),
        ("https://stash.example", "https://[::1]/a", False),
        ("http://127.0.0.1:8", "http://127.0.0.1:9/a", True),
        ("http://127.0.0.1:8", "http://files.example/a", False),
    ],
)
def test_a_file_may_lie_behind_tls_anywhere_and_on_this_machine_for_a_stash_of_this_machine(
    base: str, target: str, taken: bool
) -> None:
    address = address_of(StashAccess(base, "key", "a test", "a test"))
    if taken:
        assert str(address.storage_url(target)) == target
        return
    with pytest.raises(StashAddressError):
        address.storage_url(target)
