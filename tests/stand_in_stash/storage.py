"""The storage host that signed URLs lead to: another server, which must never see Stash's key."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from stand_in_stash.routes import Reply


@dataclass
class Storage:
    """expired: signatures that are no longer taken. cuts: for each request to come, after how many
    bytes of its body the connection is dropped; None for a whole answer.
    seen: every request's path and headers, in order. honours_ranges: as real ones do.
    misses_by: bytes by which it sends another part than was asked for.
    bent: for each request to come, what makes another answer of the right one; None for that.
    drip: seconds between single bytes of the body.
    """

    data: bytes = b""
    cuts: list[int | None] = field(default_factory=list)
    honours_ranges: bool = True
    misses_by: int = 0
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    issued: list[str] = field(default_factory=list)
    expired: set[str] = field(default_factory=set)
    expires_after_use: bool = False
    base_url: str = ""
    drip: float | None = None
    bent: list[Callable[[Reply], Reply] | None] = field(default_factory=list)

    def signed_url(self, model_id: str) -> str:
        self.issued.append(hashlib.sha256(f"{len(self.issued)}".encode()).hexdigest()[:16])
        return f"{self.base_url}/artifacts/{model_id}.tar.gz?signature={self.issued[-1]}"

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.data).hexdigest()[:20]}"'

    def leaks(self, keys: list[str]) -> list[str]:
        """Whatever of the requests so far held one of these keys."""
        said = [f"{path} {headers}" for path, headers in self.seen]
        return [words for words in said if any(key in words for key in keys)]

    def answer(self, path: str, headers: dict[str, str]) -> Reply:
        reply = self._right(path, headers)
        bend = self.bent.pop(0) if self.bent else None
        return reply if bend is None else bend(reply)

    def _right(self, path: str, headers: dict[str, str]) -> Reply:
        self.seen.append((path, headers))
        signature = path.rpartition("signature=")[2]
        if signature not in self.issued or signature in self.expired:
            body = b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
            return Reply(body, 403, "application/xml")
        if self.expires_after_use:
            self.expired.add(signature)
        return self._file(headers)

    def _file(self, headers: dict[str, str]) -> Reply:
        start = self._start(headers)
        known = {"ETag": self.etag, "Accept-Ranges": "bytes"}
        if start is None:
            return Reply(self.data, 200, "application/gzip", known)
        if start >= len(self.data):
            return Reply(b"", 416, "application/xml", known)
        span = f"bytes {start}-{len(self.data) - 1}/{len(self.data)}"
        return Reply(self.data[start:], 206, "application/gzip", {**known, "Content-Range": span})

    def _start(self, headers: dict[str, str]) -> int | None:
        asked = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
        same = headers.get("if-range", self.etag) == self.etag
        return int(asked[1]) + self.misses_by if asked and same and self.honours_ranges else None
