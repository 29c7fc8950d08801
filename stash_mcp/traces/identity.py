"""Ids made from content, so that importing the same thing again finds the same id."""

import hashlib
import json
from collections import Counter

_HEX_DIGITS = 16


class ContentIds:
    """Hands out `<prefix>-<16 hex digits>` for each content given.

    Equal contents of one payload get different ids by their order: they stay separate, and the
    same payload gives the same ids again.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._seen: Counter[bytes] = Counter()

    def next_id(self, content: object) -> str:
        """content: JSON values."""
        digest = hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).digest()
        self._seen[digest] += 1
        numbered = hashlib.sha256(digest + str(self._seen[digest]).encode())
        return f"{self._prefix}-{numbered.hexdigest()[:_HEX_DIGITS]}"
