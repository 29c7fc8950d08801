"""Taking keys out of texts that are stored or shown: logs, errors, events."""

import re
from collections.abc import Iterable

MASK = "[redacted]"

# Shapes of well-known providers' keys, for those that do not stand in our own environment.
_KEY_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk|hf|ghp|gho|glpat|AIza)[-_][A-Za-z0-9*_\-]{6,}"
    r"|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|(?<=Bearer )[A-Za-z0-9._~+/=*\-]{8,}"
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with every one of `secrets`, and everything that looks like a key, masked."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _KEY_SHAPES.sub(MASK, text)
