"""A tar file read once, from its first block to its last, in bounded memory.

Not by `tarfile.open`: it reads an extended header whole, of whatever size that header claims
(gigabytes of zeros pack into megabytes), follows a chain of them by recursion, and keeps a list of
a sparse file's parts. Here sizes are checked before anything is read. A single block is parsed by
`tarfile` all the same. Covered: plain files, folders, and long names and sizes in extended
headers. Every other kind of member is handed out as "other", for the caller to refuse.
"""

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

MAX_EXTENDED_BYTES = 1024 * 1024
"""Of one extended header. Attributes that macOS writes into them take some kilobytes."""

_BLOCK = 512
_CHUNK_BYTES = 1024 * 1024
_MOST_EXTENDED = 8
# Programs pad the end to a record, of 10 KB usually.
_MAX_PADDING_BYTES = 1024 * 1024
_END = bytes(_BLOCK)
_PAX_TYPES = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE)
_EXTENDED_TYPES = (*_PAX_TYPES, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_FILE_TYPES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_RECORD = re.compile(rb"([0-9]{1,9}) ([^=\n]{1,500})=")
_NUMBER = re.compile(r"[0-9]{1,19}")

Kind = Literal["file", "folder", "other"]


class Source(Protocol):
    def read(self, size: int, /) -> bytes:
        """`size` bytes; fewer at the end alone."""


class OversizedHeaderError(tarfile.TarError):
    """An extended header that claims more than MAX_EXTENDED_BYTES."""


@dataclass(frozen=True)
class Member:
    """size: bytes of a file's content, 0 for the others. The content is read once, in order, and
    before the next member is asked for."""

    name: str
    kind: Kind
    size: int
    source: Source

    def chunks(self) -> Iterator[bytes]:
        left = self.size
        while left:
            chunk = _exactly(self.source, min(left, _CHUNK_BYTES))
            left -= len(chunk)
            yield chunk
        _exactly(self.source, -self.size % _BLOCK)


def members(source: Source) -> Iterator[Member]:
    """Each member in order, its chunks to be read to their end; then `source` is read to its own.

    Raises tarfile.TarError for what is no tar file, or is one that is cut or goes on after its end.
    """
    while (member := _next(source)) is not None:
        yield member
    padding = 0
    while chunk := source.read(_CHUNK_BYTES):
        padding += len(chunk)
        if padding > _MAX_PADDING_BYTES or chunk.strip(b"\0"):
            raise tarfile.ReadError("it goes on after its end")


def _next(source: Source) -> Member | None:
    """The next member, with what the extended headers before it say; None at the end."""
    said: dict[str, str] = {}
    for _ in range(_MOST_EXTENDED):
        block = _exactly(source, _BLOCK)
        if block == _END:
            return None
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if info.type not in _EXTENDED_TYPES:
            return _member(info, said, source)
        said |= _extended(info, source)
    raise tarfile.ReadError("it has header after header and no member")


def _member(info: tarfile.TarInfo, said: dict[str, str], source: Source) -> Member:
    name = said.get("path", info.name).rstrip("/")
    size = said.get("size", str(info.size))
    if not _NUMBER.fullmatch(size):
        raise tarfile.ReadError(f"the size of {name[:200]!r} is no number")
    if any(key.startswith("GNU.sparse.") for key in said):
        return Member(name, "other", 0, source)
    if info.type in _FILE_TYPES:
        return Member(name, "file", int(size), source)
    return Member(name, "folder" if info.isdir() else "other", 0, source)


def _extended(info: tarfile.TarInfo, source: Source) -> dict[str, str]:
    """What an extended header says of the member after it: `path`, `size` and others."""
    if not 0 <= info.size <= MAX_EXTENDED_BYTES:
        raise OversizedHeaderError(f"a header of {info.size:,} bytes, {info.name!r}")
    data = _exactly(source, info.size + -info.size % _BLOCK)[: info.size]
    if info.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": _text(data.partition(b"\0")[0])}
    if info.type == tarfile.GNUTYPE_LONGLINK:
        return {}
    records = _records(data)
    if info.type != tarfile.XGLTYPE:
        return records
    if "path" in records or "size" in records:
        raise tarfile.ReadError("it gives all members one name or one size")
    return {}


def _records(data: bytes) -> dict[str, str]:
    records: dict[str, str] = {}
    start = 0
    while start < len(data) and data[start]:
        found = _RECORD.match(data, start)
        end = start + int(found[1]) if found else 0
        if found is None or end <= found.end() or data[end - 1 : end] != b"\n":
            raise tarfile.ReadError("a header of it cannot be read")
        records[_text(found[2])] = _text(data[found.end() : end - 1])
        start = end
    return records


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _exactly(source: Source, size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise tarfile.ReadError("it ends too early")
    return data
