"""Whether a body asks to run what comes from elsewhere, to destroy, or to read out secrets.

A sentence that forbids it is left alone. Known to be stopped though it may be harmless: an
installer that is piped into a shell, and `cat .env`. Known to be missed: code that is fetched and
run by a library, a tool or a package that a person must know to be bad.
"""

import re
from collections.abc import Iterator, Sequence

from stash_mcp.skills.credentials import ENVIRONMENT_FILE, PRIVATE_FILE, secret_variables
from stash_mcp.skills.findings import Hit
from stash_mcp.skills.reading import (
    Unit,
    commands,
    forbidden,
    in_order,
    phrase,
    plain,
    quoted,
    sentences,
)


def _steps(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


# --- code from elsewhere ---

_SHELL = (
    r"(?<![\w.-])(?:(?:sudo|exec|/usr/bin/env|/bin/|/usr/bin/)\s{0,3}(?:-\w{1,10}\s{1,3})?){0,2}(?:(?:ba|z|da|k|fi)?sh"
    r"|python[\d.]{0,4}|perl|ruby|node|php|iex|Invoke-Expression|pwsh|powershell)\b(?![\w.-])"
)
# Not one that is given its program and reads what is fetched as data.
_SHELL_FOR_INPUT = rf"{_SHELL}(?!\s{{1,9}}-(?:m|c|e|n|ne|p|pe|r)\b)"
_FETCH = r"\b(?:curl|wget|fetch|iwr|irm|Invoke-(?:WebRequest|RestMethod)|DownloadString)\b"
_REMOTE_COMMANDS = (
    _steps(rf"{_FETCH}(?=[^|\n]{{0,300}}[\w/])", rf"\|\s{{0,9}}{_SHELL_FOR_INPUT}"),
    _steps(rf"{_SHELL}[^\n`|;&)]{{0,40}}?[<$]\(\s{{0,9}}{_FETCH}"),
    _steps(rf"(?:\beval|\bsource|(?<!\S)\.)\s{{1,9}}[\"']?[<$]\(\s{{0,9}}{_FETCH}"),
    _steps(rf"\beval\b\s{{0,9}}[\"'(]{{0,3}}`\s{{0,9}}{_FETCH}"),
    _steps(r"\b(?:iex|Invoke-Expression)\b\s{0,9}[\"'(&]", _FETCH),
    _steps(
        r"\b(?:base64|openssl\s{1,9}(?:enc|base64))\s[^|\n]{0,100}?-{1,2}d\w{0,6}\b",
        rf"\|\s{{0,9}}{_SHELL_FOR_INPUT}",
    ),
    _steps(r"\bxxd\s{1,9}-r\b", rf"\|\s{{0,9}}{_SHELL_FOR_INPUT}"),
    _steps(r"\b(?:powershell|pwsh)\b", r"\s-e(?:c|nc\w{0,12})?\s{1,9}[\w+/=]{8}"),
    _steps(r"\b(?:exec|eval)\(", r"\b(?:requests|httpx|urlopen|b64decode|fetch)\b"),
)
_REMOTE_WORDS = (
    phrase(
        r"\b(?:run|execute|launch|start) (?:(?:the|this|that|a|an|our) )?(?:[\w-]{1,30} )?"
        r"(?:scripts?|code|commands?|program|binary|installer|payload) (?:\w{1,20} ){0,3}?"
        r"(?:at|from) <?(?:https?|ftp)://"
    ),
)
# In a sentence that names what is fetched.
_FETCHED_AND_RUN = (
    phrase(r"\b(?:download|fetch|get|pull|curl)\b"),
    phrase(r"https?://|\b(?:script|installer|payload|binary)\b"),
    phrase(
        r"\b(?:and|then|to) (?:then )?(?:run|execute|eval) (?:it|them|that|this"
        r"|the (?:result|script|code|file))\b"
    ),
)
_NAME = r"[\"']?(?:\./)?([\w./~-]{1,100})"
_DOWNLOAD = re.compile(r"\b(?:curl|wget)\b")
_SAVED_AS = re.compile(rf"\s(?:-\w{{0,6}}[oO]|--output(?:-document)?)[ =]{_NAME}")
_ADDRESS = re.compile(r"://[^\s;|&\"'`]{1,300}+")
_STARTED = re.compile(
    rf"(?:\b(?:ba|z|da)?sh|\bsource|\bpython[\d.]{{0,4}}|\bchmod\s{{1,9}}\S{{1,9}})\s{{1,9}}{_NAME}"
    r"|(?<![\w/])\./([\w./-]{1,100})"
)


def runs_remote_code(text: str) -> Iterator[Hit]:
    text = plain(text)
    yield from _command_hits(text, _REMOTE_COMMANDS)
    yield from _word_hits(text, _REMOTE_WORDS)
    for sentence in sentences(text):
        position = in_order(sentence.text, _FETCHED_AND_RUN)
        if position is not None and not forbidden(sentence.text, position):
            yield sentence.line_at(position), "high"
    yield from _saved_and_started(text)


def _saved_and_started(text: str) -> Iterator[Hit]:
    saved = {name for command in commands(text) for name in _saved(command.text)}
    for number, line in enumerate(text.split("\n"), 1):
        started = {(match[1] or match[2]).rstrip(".") for match in _STARTED.finditer(line)}
        if started & saved:
            yield number, "high"


def _saved(command: str) -> Iterator[str]:
    download = _DOWNLOAD.search(command)
    if download is not None:
        yield from (match[1] for match in _SAVED_AS.finditer(command, download.end()))
        for address in _ADDRESS.findall(command, download.end()):
            yield address.rpartition("/")[2]


# --- destruction ---

_EVERYTHING = (
    r"[\"']?(?:~|/|\$HOME|\$\{HOME\}|\$env:USERPROFILE|%USERPROFILE%|[A-Za-z]:\\?|\*|\.\.?"
    r"|/(?:etc|usr|var|bin|boot|home|root|opt|lib)|\.git)"
    r"[/\\]?\*?[\"']?(?=[\s;&|`'\")]|$)"
)
_DESTRUCTION = (
    _steps(r"\b(?:Remove-Item|ri|rd|rmdir|del)\b", r"(?:-Recurse|/s)\b", rf"\s{_EVERYTHING}"),
    _steps(
        r"\bfind\s{1,9}[\"']?(?:~|/|\$HOME|\$\{HOME\})/?[\"']?\s", r"\s-delete\b|-exec\s{1,9}rm\b"
    ),
    _steps(r"\bmkfs(?:\.\w{1,10})?\s|\bdd\s[^\n]{0,100}?\bof=/dev/(?:sd|nvme|hd|disk|vd)"),
    _steps(r">\s{0,3}/dev/(?:sd|nvme|hd|disk|vd)"),
    _steps(r":\(\)\s{0,3}\{\s{0,3}:\|:"),
    _steps(
        rf"\b(?:chmod|chown)\s{{1,9}}-\w{{0,5}}R\w{{0,5}}\s{{1,9}}\S{{1,40}}\s{{1,9}}{_EVERYTHING}"
    ),
    _steps(r"\bshred\s", rf"\s(?:{PRIVATE_FILE}|~/|/)"),
    _steps(r"\bformat\s{1,3}[A-Za-z]:(?:\s|$)"),
)
_REMOVED = re.compile(r"\brm\s([^\n;&|`]{1,400}+)")
_RECURSIVE = re.compile(r"-\w{0,8}[rR]\w{0,8}|--recursive")
_WHOLE = re.compile(_EVERYTHING)
_DESTROY_WORDS = (
    phrase(
        r"\b(?:delete|erase|wipe|destroy|remove) (?:(?:all|every|everything|the|whole|entire|of|in"
        r"|from|files?|data|user['\u2019]s|person['\u2019]s|their|your) ){0,8}"
        r"(?:home (?:folder|directory)|hard (?:disk|drive)|disks?\b|drives?\b|file\s?system"
        r"|operating system|backups\b)"
    ),
)


def destroys(text: str) -> Iterator[Hit]:
    text = plain(text)
    yield from _command_hits(text, _DESTRUCTION)
    yield from _word_hits(text, _DESTROY_WORDS)
    for command in commands(text):
        for removed in _REMOVED.finditer(command.text):
            if _removes_all(removed[1].split()) and not forbidden(command.text, removed.start()):
                yield command.line_at(removed.start()), "high"


def _removes_all(arguments: Sequence[str]) -> bool:
    recursive = any(_RECURSIVE.fullmatch(each) for each in arguments)
    return recursive and any(_WHOLE.match(each) for each in arguments)


# --- secrets that are read out ---

_READER = (
    r"(?:\b(?:cat|less|more|head|tail|bat|type|gc|Get-Content|e?grep|rg|strings|xxd|base64|tac|nl|awk"
    r"|sed|sort|cut|tar|zip)\s|\b(?:open|read_text|read_bytes|readFile(?:Sync)?|Path)\()"
)
_READ_COMMANDS = (
    _steps(rf"\b(?:cp|mv)\s[^\n|;&`]{{0,80}}?{PRIVATE_FILE}"),
    _steps(rf"{_READER}[^\n|;&`]{{0,120}}?(?:{PRIVATE_FILE}|{ENVIRONMENT_FILE})"),
)
_SHOW = (
    r"(?:show|print|display|output|paste|quote|echo|reveal|dump|include|repeat|recite|cat|add|append"
    r"|list|give|tell)"
)
_READ = (
    r"(?:read|open|collect|gather|load|take|look (?:at|into|in)|fetch|get|find|search|copy|check)"
)
_FILLER = r"(?:(?!(?:to|for|never|not|no|from|into|is|are)\b)[\w'\u2019./~-]{1,40},? ){0,6}"
_FROM = r"(?:(?:contents?|values?|lines?|keys?|secrets?|text) (?:of|from|in) )?"
_READ_WORDS = (
    phrase(rf"\b{_SHOW} {_FILLER}{_FROM}(?:the )?(?:file )?\S{{0,30}}?(?:{PRIVATE_FILE})"),
    phrase(
        rf"\b{_SHOW} {_FILLER}(?:contents?|values?|lines?|keys?|secrets?) (?:of|from|in) (?:the )?"
        rf"(?:file )?(?:{ENVIRONMENT_FILE})"
    ),
    phrase(rf"\b{_READ} {_FILLER}{_FROM}(?:the )?(?:file )?\S{{0,30}}?(?:{PRIVATE_FILE})"),
    phrase(
        rf"\b{_READ} {_FILLER}{_FROM}(?:the )?(?:file )?(?:{ENVIRONMENT_FILE}),?(?: file,?)?"
        rf" (?:and |then |to ){{1,2}}{_SHOW}\b"
    ),
)
_SHOWN_BEFORE = phrase(rf"\b{_SHOW} {_FILLER}(?:(?:contents?|values?) of )?\S{{0,30}}$")
_SHOW_REACHES = 120
# Into another command or a file: not shown.
_KEPT = re.compile(r"[^\n;]{0,60}?[|>]")


def reads_secrets(text: str) -> Iterator[Hit]:
    text = plain(text)
    yield from _command_hits(text, _READ_COMMANDS)
    yield from _word_hits(text, _READ_WORDS)
    for sentence in sentences(text):
        for match in secret_variables(sentence.text):
            if _shows(sentence.text, match):
                yield sentence.line_at(match.start()), "high"


def _shows(text: str, variable: re.Match[str]) -> bool:
    start = variable.start()
    shown = _SHOWN_BEFORE.search(text[max(0, start - _SHOW_REACHES) : start])
    if shown is None or _KEPT.match(text, variable.end()):
        return False
    return not forbidden(text, start)


def _command_hits(text: str, rules: Sequence[Sequence[re.Pattern[str]]]) -> Iterator[Hit]:
    for command in commands(text):
        for steps in rules:
            position = in_order(command.text, steps)
            while position is not None and forbidden(command.text, position):
                position = in_order(command.text, steps, position + 1)
            if position is not None:
                yield command.line_at(position), "high"


def _word_hits(text: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[Hit]:
    for sentence in sentences(text):
        for pattern in patterns:
            yield from _asked_for(sentence, pattern)


def _asked_for(sentence: Unit, pattern: re.Pattern[str]) -> Iterator[Hit]:
    for match in pattern.finditer(sentence.text):
        if not forbidden(sentence.text, match.start()) and not quoted(sentence.text, match.start()):
            yield sentence.line_at(match.start()), "high"
