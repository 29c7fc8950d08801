"""Keys and passwords: those that stand in a body, and the files and variables that hold them."""

import re
from collections.abc import Iterator

from stash_mcp.skills.findings import Hit, line_of

PRIVATE_FILE = (
    r"(?:\.ssh/(?!known_hosts|authorized_keys|[\w.-]{0,60}\.pub\b)[\w.*-]{1,60}"
    r"|\bid_(?:rsa|dsa|ecdsa|ed25519)\b(?!\.pub)|\.aws/(?:credentials|config)|\.netrc\b|\.pgpass\b"
    r"|\.git-credentials\b|\.docker/config\.json|\.kube/config|\.gnupg\b|\.npmrc\b|\.pypirc\b"
    r"|\.(?:bash|zsh|psql|mysql|python)_history\b|/etc/(?:passwd|shadow|sudoers)\b"
    r"|\bLogin Data\b|\.config/gh/hosts|\blogin\.keychain)"
)
ENVIRONMENT_FILE = r"(?<![\w.])\.env\b(?!\.(?:example|sample|template|dist|schema)|[\w(])"
"""Patterns without regard to case. Public keys and examples are left out."""

_VARIABLE = re.compile(
    r"(?:\$(?:env:|\{(?:env:)?)?|%|\b(?:environ(?:\.get\(|\[)|getenv\()\s{0,3}[\"']"
    r"|process\.env\.)([A-Z][A-Z0-9_]{2,60})"
)
_SECRET_WORDS = {
    *("KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "PAT", "COOKIE"),
    *("CREDENTIAL", "CREDENTIALS"),
}


def secret_variables(text: str) -> Iterator[re.Match[str]]:
    """Where `text` takes a variable that holds a secret by its name, which is group 1."""
    for match in _VARIABLE.finditer(text):
        if not _SECRET_WORDS.isdisjoint(match[1].split("_")):
            yield match


# --- in the body itself ---

_KEYS = re.compile(
    r"\bsk-(?:ant-|proj-|live-|or-)?[A-Za-z0-9_-]{20,200}|\b[srp]k_live_[A-Za-z0-9]{16,100}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,100}"
    r"|\bgithub_pat_[A-Za-z0-9_]{30,100}|\bglpat-[\w-]{20,60}|\bxox[abprs]-[A-Za-z0-9-]{20,100}"
    r"|\bAIza[\w-]{35}|\bnpm_[A-Za-z0-9]{36}|\bhf_[A-Za-z0-9]{30,60}|\bpypi-[\w-]{50,300}"
    r"|-----BEGIN (?:[A-Z]{2,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
)
_ASSIGNED = re.compile(
    r"(?:password|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key|token)[\"']?"
    r"\s{0,3}(?::|=(?!=))\s{0,3}[\"']?([^\s\"'`,;|)]{8,200})",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(
    r"\b[a-z][a-z+]{1,20}://([^\s:/@]{1,60}):(?!\1@)([^\s:/@]{3,100})@", re.IGNORECASE
)
_STANDS_FOR_ONE = re.compile(
    r"[<{\[($%*]|\.\.\.|…|x{3}|0{6}|123456|example|sample|your|dummy|fake|placeholder|change|^my"
    r"|test|^pass(?:word|wd)?$|^secret$|^token$|environ|getenv|process|config|settings|secrets\."
    r"|^\w{1,60}(?:\.\w{1,60}){1,20};?$",
    re.IGNORECASE,
)


def credentials(text: str) -> Iterator[Hit]:
    """Keys by their form; passwords by what stands before them, if they look like one."""
    for match in _KEYS.finditer(text):
        if not _STANDS_FOR_ONE.search(match[0]):
            yield line_of(text, match.start()), "high"
    for match in _ASSIGNED.finditer(text):
        if not _STANDS_FOR_ONE.search(match[1]) and _mixed(match[1]):
            yield line_of(text, match.start()), "high"
    for match in _IN_ADDRESS.finditer(text):
        if not _STANDS_FOR_ONE.search(match[2]):
            yield line_of(text, match.start()), "high"


def _mixed(value: str) -> bool:
    """Letters and digits, and no path, call or address."""
    letters = any(c.isalpha() for c in value)
    return letters and any(c.isdigit() for c in value) and "://" not in value
