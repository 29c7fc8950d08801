"""A reward model's archive, fetched from wherever Stash keeps it, carried on where it broke off.

Stash answers with a signed URL of some minutes (newer servers) or with the archive itself (older
ones). What a broken download left stays beside the target, with the file's ETag, and is used only
for that same file. Covered: sizes and that it is gzip at all. Not covered: what is in it, and its
checksum, which stands at its end; whoever unpacks it checks that.
"""

import dataclasses
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx2
from pydantic import BaseModel, ConfigDict, ValidationError

from stash_mcp.errors import (
    StashAnswerError,
    StashError,
    StashNotFoundError,
    StashServerError,
    StashTimeoutError,
    StorageError,
)
from stash_mcp.stash import shapes
from stash_mcp.stash.address import checked_id
from stash_mcp.stash.answers import parsed
from stash_mcp.stash.client import StashClient
from stash_mcp.stash.connection import Call, Stream
from stash_mcp.stash.states import not_there
from stash_mcp.storage.files import (
    PRIVATE_FILE_MODE,
    os_errors,
    private_dir,
    replace,
    try_lock,
    write_atomic,
)

MAX_ARCHIVE_BYTES = 16 * 1024**3
"""A 0.6B model in float32 takes 2.4 GB."""

_MOST_ATTEMPTS = 30
_URL_BYTES = 65_536
_GZIP = b"\x1f\x8b"
_ARCHIVE_TYPES = ("application/gzip", "application/x-gzip", "application/octet-stream")
_PLAIN = {"accept-encoding": "identity"}
_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)")
_AGAIN = "Try again; what is here already is kept."


def download_weights(
    client: StashClient, model_id: str, folder: Path, *, max_bytes: int = MAX_ARCHIVE_BYTES
) -> Path:
    """The model's tar.gz as a file in `folder`, which is made; StashNotReadyError if it has none.

    A failure leaves what came, for the next call. StorageError while another process fetches it.
    """
    name = f"{checked_id(model_id, 'reward model')}.tar.gz"
    private_dir(folder)
    part = _Part(folder / f"{name}.part", folder / f"{name}.part.json")
    with try_lock(folder / f"{name}.lock") as held:
        if not held:
            raise StorageError(
                f"Another process is fetching reward model {model_id}.", "Wait until it is done."
            )
        _fetch(client, model_id, part, max_bytes)
        with os_errors("write", folder / name):
            replace(part.path, folder / name)
        part.forget()
    return folder / name


class _Origin(BaseModel):
    """Which file a part is of. `etag` is a strong one, or "" if the part cannot be carried on."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    etag: str = ""
    total: int | None = None


@dataclass(frozen=True)
class _Part:
    path: Path
    note: Path

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def origin(self) -> _Origin:
        try:
            return _Origin.model_validate_json(self.note.read_bytes())
        except (OSError, ValidationError):
            return _Origin()

    def begin(self, origin: _Origin) -> None:
        self.drop()
        write_atomic(self.note, origin.model_dump_json())

    @contextmanager
    def appending(self) -> Iterator[BinaryIO]:
        with os_errors("write", self.path):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            with os.fdopen(os.open(self.path, flags, PRIVATE_FILE_MODE), "ab") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())

    def starts_with(self, magic: bytes) -> bool:
        with os_errors("read", self.path), self.path.open("rb") as file:
            return file.read(len(magic)) == magic

    def drop(self) -> None:
        with os_errors("remove", self.path):
            self.path.unlink(missing_ok=True)
        self.forget()

    def forget(self) -> None:
        with os_errors("remove", self.note):
            self.note.unlink(missing_ok=True)


def _fetch(client: StashClient, model_id: str, part: _Part, max_bytes: int) -> None:
    """Attempts until the part is whole: bounded in number, and in those that bring nothing."""
    in_vain = 0
    for attempt in range(1, _MOST_ATTEMPTS + 1):
        before = part.size()
        try:
            _attempt(client, model_id, part, max_bytes)
            return
        except StashError as error:
            # What comes drop by drop grows too, and for hours.
            came = part.size() > before and not isinstance(error, StashTimeoutError)
            in_vain = 0 if came else in_vain + 1
            pause = client.sender.pause_after(max(in_vain, 1), error)
            if pause is None or attempt == _MOST_ATTEMPTS:
                raise
        client.sender.sleep(pause)


def _attempt(client: StashClient, model_id: str, part: _Part, max_bytes: int) -> None:
    url = _where(client, model_id, part, max_bytes)
    if url is None:
        return
    call = Call("GET", url, headers={**_PLAIN, **_range_of(part)}, with_key=False)
    with client.sender.connection.stream(call, unpacked=False) as stream:
        _check_storage(stream, client.sender.connection.host_of(url), part)
        _receive(stream, part, max_bytes)


def _where(client: StashClient, model_id: str, part: _Part, max_bytes: int) -> httpx2.URL | None:
    """Where the archive lies; None where Stash sent it itself, and it is received."""
    call = client.weights_call(model_id)
    # The archive is read as its bytes come, so nothing on the way may pack it once more.
    call = dataclasses.replace(call, headers={**call.headers, **_PLAIN})
    try:
        with client.sender.stream(call, unpacked=False) as stream:
            if _media_type(stream) in _ARCHIVE_TYPES:
                _receive(stream, part, max_bytes)
                return None
            body = _short(stream)
    except StashNotFoundError as error:
        model = client.get_reward_model(model_id)
        raise not_there(model, "reward model", "checkpoint") or error from None
    given = parsed(body, shapes.WEIGHTS_URL, client.sender.connection.secrets)
    return client.address.storage_url(given.url)


def _short(stream: Stream) -> bytes:
    if _media_type(stream) != "application/json":
        raise StashAnswerError(
            "Stash sent neither an archive nor where it lies.",
            "Check that STASH_URL is the address of the API.",
        )
    body = bytearray()
    for chunk in stream.chunks:
        body += chunk
        if len(body) > _URL_BYTES:
            raise StashAnswerError("Stash's answer is too long for an address.", _AGAIN)
    return bytes(body)


def _range_of(part: _Part) -> dict[str, str]:
    size, etag = part.size(), part.origin().etag
    return {"range": f"bytes={size}-", "if-range": etag} if size and etag else {}


def _check_storage(stream: Stream, host: str, part: _Part) -> None:
    """Raise for what is no file; another attempt asks Stash for a new URL first."""
    if stream.status in (200, 206):
        return
    if stream.status == 416:
        part.drop()
    gone = stream.status in (404, 410)
    raise StashServerError(
        f"{host}, where Stash keeps the reward model's files, answered with status "
        f"{stream.status}.",
        "Train the model again, or ask Stash where its files are." if gone else _AGAIN,
        passing=not gone,
    )


def _receive(stream: Stream, part: _Part, max_bytes: int) -> None:
    """Write what comes, after what is there if it carries on, and check that it is whole."""
    total = _begin(stream, part)
    if total is not None and total > max_bytes:
        part.drop()
        raise _too_large(max_bytes)
    if not _append(stream, part, max_bytes if total is None else total):
        part.drop()
        raise _too_large(max_bytes) if total is None else _lied("sent more than it had promised")
    if total is not None and part.size() != total:
        raise StashAnswerError(
            f"Of {total:,} bytes of the reward model {part.size():,} came.", _AGAIN, passing=True
        )
    if not part.starts_with(_GZIP):
        part.drop()
        raise StashAnswerError(
            "What came is no tar.gz file.", "Try again; if it stays, report it to Stash."
        )


def _append(stream: Stream, part: _Part, most: int) -> bool:
    """Write what comes; False, and no more is written, where it would be above `most` bytes."""
    left = most - part.size()
    with part.appending() as file:
        for chunk in stream.chunks:
            left -= len(chunk)
            if left < 0:
                return False
            file.write(chunk)
    return True


def _begin(stream: Stream, part: _Part) -> int | None:
    """The whole file's size in bytes, if it is known; the part is emptied unless it goes on."""
    if stream.status != 206:
        origin = _Origin(etag=_strong_etag(stream), total=_length(stream))
        part.begin(origin)
        return origin.total
    origin = part.origin()
    if not _carries_on(stream, origin, part.size()):
        part.drop()
        raise _lied("sent another part of the file, or of another one, than was asked for")
    return origin.total


def _carries_on(stream: Stream, origin: _Origin, at: int) -> bool:
    """Whether it is the rest from byte `at` on, of the file that the part is of."""
    span = _RANGE.fullmatch(str(stream.headers.get("content-range", "")).strip())
    if span is None or str(stream.headers.get("etag", origin.etag)) != origin.etag:
        return False
    first, last, total = int(span[1]), int(span[2]), origin.total
    told = total if span[3] == "*" else int(span[3])
    return first == at <= last and told == total and (total is None or last < total)


def _lied(what: str) -> StashAnswerError:
    return StashAnswerError(f"The storage {what}.", "Try again from the start.", passing=True)


def _too_large(max_bytes: int) -> StashAnswerError:
    return StashAnswerError(
        f"The reward model's archive is larger than {max_bytes:,} bytes.",
        "Nothing of it is used. A model of that size cannot be taken over.",
    )


def _strong_etag(stream: Stream) -> str:
    etag = str(stream.headers.get("etag", ""))
    return etag if re.fullmatch(r'"[\x21\x23-\x7e]*"', etag) else ""


def _length(stream: Stream) -> int | None:
    value = str(stream.headers.get("content-length", ""))
    return int(value) if re.fullmatch(r"[0-9]{1,19}", value) else None


def _media_type(stream: Stream) -> str:
    return str(stream.headers.get("content-type", "")).lower().partition(";")[0].strip()
