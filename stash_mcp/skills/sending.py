"""Whether a body asks to send files, secrets or the conversation somewhere.

Known to be stopped though they may be harmless, as the text cannot tell: a request or a mail that
takes a file (`curl -F file=@photo.jpg`, `| mail`), a command whose output goes into an address, a
push to a remote that the body adds. Known to be missed: an ordinary header with a key, sent to a
host that says nothing (`-H "Authorization: Bearer $TOKEN"`), and other languages than English.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

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

# --- commands ---

_SENDER = re.compile(
    r"\b(?:curl|wget|xh|https? (?:GET|POST|PUT)|iwr|irm|Invoke-(?:WebRequest|RestMethod))\b", re.I
)
_LIBRARY = re.compile(r"\b(?:requests|httpx|aiohttp|urllib\d?|urlopen|http\.client)\b")
_FILES = rf"(?:~/|/etc/|\$HOME|{PRIVATE_FILE}|{ENVIRONMENT_FILE})"


def _steps(*patterns: str | re.Pattern[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(each, re.I) if isinstance(each, str) else each for each in patterns)


_COMMANDS = (
    # Data from a file, from standard input or from another command.
    _steps(
        _SENDER,
        r"\s(?:-d|--data(?:-\w{1,20})?|--json)[ =]?[\"']?(?:\w{1,40}=)?"
        r"@(?!-[\"']?\s[^|\n]{0,80}<<)",
    ),
    _steps(_SENDER, r"\s(?:-F|--form)[ =]?[\"']?[\w.-]{1,60}=[@<]"),
    _steps(_SENDER, r"\s(?:-T|--upload-file|--post-file|--body-file|-InFile)[ =]"),
    _steps(_SENDER, r"\s-Body\s{1,9}[\"'(\s]{0,9}(?:Get-Content|gc|cat|type)\b"),
    _steps(
        _SENDER,
        r"\$\(|[^\s`]`\w[^`\n]{0,200}`|\$\{?(?:HOME|USER|PWD|HISTFILE|SSH_\w{1,40})\b",
    ),
    _steps(r"\|\s{0,9}(?:sudo\s{1,9})?(?:curl|nc|ncat|netcat|socat|telnet)\b"),
    _steps(r"\|\s{0,9}(?:mail|mailx|sendmail)\s{1,9}(?:-|\S{1,80}@)"),
    _steps(r"\b(?:nc|ncat|netcat)\b", r"\s\d{1,5}\s{0,9}<"),
    _steps(r"\b(?:nc|ncat|netcat)\b", r"\s-[ec]\s{0,9}/?\w"),
    _steps(r"/dev/(?:tcp|udp)/"),
    _steps(rf"{PRIVATE_FILE}|{ENVIRONMENT_FILE}|\s~/?\s", r"\|\s{0,9}ssh\b"),
    _steps(r"\b(?:dig|nslookup|host|ping)\s", r"\$\(|(?<=[\w.-])`\w[^`\n]{0,200}`\."),
    _steps(r"\b(?:scp|rsync|sftp)\b", _FILES, r"\s[\w.@-]{1,100}:"),
    _steps(_LIBRARY, r"\b(?:open|read_text|read_bytes)\(|\bos\.environ\b(?!\.get\(|\[)"),
    _steps(r"\bfetch\(", r"process\.env\b(?!\.)|readFile|document\.cookie|localStorage"),
    _steps(r"\b(?:gh\s{1,9}gist\s{1,9}create|aws\s{1,9}s3\s{1,9}cp|gsutil\s{1,9}cp)\b", _FILES),
    _steps(r"\bgit\s{1,9}push\s", r"(?<=\s)(?:https?|ssh)://|(?<=\s)git@"),
    _steps(r"\bgit\s{1,9}push\s", r"\s--mirror\b"),
)
_REMOTE_ADDED = re.compile(r"\bgit\s{1,9}remote\s{1,9}add\s{1,9}(?:-\w\s{1,9})?([\w.-]{1,60})\s")
_PUSHED = re.compile(r"\bgit\s{1,9}push\s{1,9}(?:-{1,2}[\w-]{1,30}\s{1,9}){0,5}([\w.-]{1,60})")
_USUAL_REMOTES = {"origin", "upstream", "heroku"}

_HOST = re.compile(r"://([^\s/\"'`?#]{1,200})")
_THIS_MACHINE = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?")
_KEY_HEADER = re.compile(
    r"(?:authorization|api-?key|[\w-]{0,30}(?:token|key|auth)):\s{0,3}(?:(?:bearer|token|basic)\s)?"
    r"[\"'{(\s]{0,4}$|\s-u\s{0,3}[\"']?[\w.@-]{0,60}:?$|--oauth2-bearer\s[\"']?$"
    r"|authorization[\"']?\s{0,3}[:=][^\n]{0,40}$",
    re.I,
)
# Whose keys these are by their names, and what their hosts have in theirs.
_VENDORS = {
    **dict.fromkeys(("aws",), "amazonaws"),
    **dict.fromkeys(("github", "gh"), "github"),
    **dict.fromkeys(("hf", "huggingface"), "huggingface"),
    **dict.fromkeys(("google", "gcp", "gemini"), "google"),
    **dict.fromkeys(("azure",), "azure"),
    **dict.fromkeys(("ssh",), "ssh"),
    **{
        name: name
        for name in (
            *("openai", "anthropic", "gitlab", "slack", "stripe", "npm", "twilio", "sendgrid"),
            *("docker", "cloudflare", "netlify", "vercel", "notion", "linear", "mistral"),
        )
    },
}


def _command_hits(text: str) -> Iterator[Hit]:
    added = {name for name in _REMOTE_ADDED.findall(text) if name not in _USUAL_REMOTES}
    for command in commands(text):
        hosts = _HOST.findall(command.text)
        if hosts and all(_THIS_MACHINE.fullmatch(host) for host in hosts):
            continue
        for steps in _COMMANDS:
            position = in_order(command.text, steps)
            if position is not None:
                yield command.line_at(position), "high"
        if any(match[1] in added for match in _PUSHED.finditer(command.text)):
            yield command.line, "high"
        if (_SENDER.search(command.text) or _LIBRARY.search(command.text)) and _gives_key(command):
            yield command.line, "high"


def _gives_key(command: Unit) -> bool:
    """Whether a secret goes to a host that it is not for, or goes anywhere but into a header."""
    hosts = " ".join(_HOST.findall(command.text)).lower()
    for match in secret_variables(command.text):
        owner = match[1].split("_")[0].lower()
        if _VENDORS.get(owner, owner) in hosts:
            continue
        before = command.text[max(0, match.start() - 80) : match.start()]
        if owner in _VENDORS or not _KEY_HEADER.search(before):
            return True
    return False


# --- words ---

_SEND = (
    r"(?:send|sends|upload|post|posts|forward|transmit|submit|deliver|e-?mail|mail|leak|exfiltrate"
    r"|push|copy|beacon|stream|append|attach|encode|include|put|paste)"
)
# Words that may stand between "send" and what is sent; not those that begin something else.
_BETWEEN = (
    r"(?:(?!(?:to|for|about|with|when|if|that|which|who|how|what|why|where|on|at|by|via|is|are|not"
    r"|no|links?|instructions?|pages?|forms?|resets?|change|only|using|after|before|because|than)\b)"
    r"[\w'\u2019./~@\\-]{1,40},? ){0,10}"
)
_NOT_THE_SECRET = (
    r"(?! (?:words?|points?|facts?|figures?|dates?|results?|takeaways?|findings?|counts?|limits?"
    r"|usage|leaks?|rotations?|resets?|rules?|polic(?:y|ies)|links?|forms?|pages?|requests?"
    r"|managers?|strength|hints?|fields?|expiry|exposure|incidents?|breach(?:es)?|problems?"
    r"|issues?|errors?|changes?|banners?|recipes?|service)\b)"
)
_SECRETS = (
    rf"(?:{PRIVATE_FILE}|{ENVIRONMENT_FILE}|~/\.\w[\w./-]{{0,80}}|/etc/\w{{1,40}}"
    r"|env(?:ironment)? (?:variables?|vars?)\b|\benv\b"
    rf"|(?<!tracking\s)\b(?:keys?|tokens?|passwords?|passphrases?|secrets?|cookies?)\b"
    rf"{_NOT_THE_SECRET}"
    r"|\bcredentials?\b|(?:shell|command|bash) history|\bwallets?\b|seed phrases?"
    r"|\bcard (?:numbers?|details|data)\b|\bcvv\b|\bibans?\b|social security numbers?|\bssns?\b"
    r"|passport numbers?|bank details)"
)
_DETERMINERS = (
    r"(?:(?:out|back|over|up|all|any|each|every|of|the|a|an|this|that|these|their|your|my|our|its"
    r"|(?:user|person|developer|owner|machine|customer)(?:['\u2019]?s)?|full|entire|whole"
    r"|complete|raw|current|last|latest|recent|previous|other|local|private|stored|saved"
    r"|contents?|copy|copies|list|dump|text|base64|encoded|and|in|from|git|session) ){0,12}"
)
_TALK = (
    r"(?:conversations?|chat(?: history| log)?s?|transcripts?|history|system prompt|prompts?"
    r"|context window|source code|repository|codebase|files?|messages?)\b"
    r"(?! (?:summar(?:y|ies)|ids?|links?|numbers?|names?|titles?)\b)"
)
_URL = r"(?:(?:https?|ftp|wss?)://|\d{1,3}(?:\.\d{1,3}){3}\b)"
_ADDRESS = (
    rf"(?:{_URL}|webhook|pastebin|[\w.+-]{{1,60}}@[\w-]{{1,60}}\.\w|(?:remote|external|attacker)"
    r"[\s-]\w)"
)
_TO = (
    r"\b(?:to|at|into|via|through|with|on|in|by)\b"
    r"(?: (?!(?:see|per|documented|described|explained)\b)\S{1,40}){0,5}? [<(\"']{0,2}"
)


@dataclass(frozen=True)
class _Sent:
    """`what` is sent, and `where` it goes to; harmless with `unless` between the two."""

    what: re.Pattern[str]
    where: re.Pattern[str] | None
    unless: re.Pattern[str] | None = None


_WORDS = (
    _Sent(phrase(rf"\b{_SEND} {_BETWEEN}{_SECRETS}"), phrase(_TO + _ADDRESS)),
    _Sent(
        phrase(rf"\b{_SEND} {_DETERMINERS}{_TALK}"),
        phrase(_TO + _URL),
        phrase(
            r"\b(?:the|a|this|that|each|its|their) (?:\w{1,20} )?(?:ticket|case|note|issue)s?\b"
        ),
    ),
    _Sent(phrase(rf"\bexfiltrate {_BETWEEN}(?:{_SECRETS}|{_TALK}|data)"), None),
)
_WHERE_REACHES = 400
# "Send the token in the Authorization header" is how an API is called.
_IN_HEADER = phrase(r"\b(?:header|authorization|bearer)\b")
_ONE_KEY = phrase(r"\b(?:key|token)$")
_EVERY = phrase(r"\b(?:all|any|every|each)\b")


def _word_hits(text: str) -> Iterator[Hit]:
    for sentence in sentences(text):
        for sent in _WORDS:
            for match in sent.what.finditer(sentence.text):
                if _goes_out(sentence.text, match, sent):
                    yield sentence.line_at(match.start()), "high"


def _goes_out(text: str, match: re.Match[str], sent: _Sent) -> bool:
    end = match.end()
    if sent.where is not None:
        where = sent.where.search(text, end, end + _WHERE_REACHES)
        if where is None or (sent.unless and sent.unless.search(text, end, where.end())):
            return False
        one_key = _ONE_KEY.search(match[0]) and not _EVERY.search(match[0])
        if one_key and _IN_HEADER.search(text, end, where.end()):
            return False
    return not forbidden(text, match.start()) and not quoted(text, match.start())


# --- addresses ---

_PICTURE = re.compile(
    r"!\[[^\]\n]{0,200}+\]\(\s{0,9}<?https?://[^)\s]{0,400}?(?:[?&/=](?:\{|<|\[|\$[\w{(]|%7B)"
    r"|=(?:\.\.\.|…|[A-Z_]{6,40}\b))"
)
_PICTURE_TAG = re.compile(r"<img\b[^<>\n]{0,800}+", re.I)
_FILLED_IN = re.compile(r"\bsrc\s{0,3}=\s{0,3}[\"']?https?://[^\s?]{0,300}\?[^\s]{0,300}?[{$\[%]")
_TALK_IN_ADDRESS = phrase(
    r"://[^\s)`]{0,300}?[?&/][\w-]{0,40}=?(?:\{|<|\[|\$){1,3}\s{0,3}(?:the[\s_-])?(?:full[\s_-])?(?:conversation|chat"
    r"|history|transcript|messages|system[\s_-]?prompt|context|secrets?|env|passwords?"
    r"|credentials?|cookies?)"
)


def _address_hits(text: str) -> Iterator[Hit]:
    for number, line in enumerate(text.split("\n"), 1):
        tags = (tag[0] for tag in _PICTURE_TAG.finditer(line))
        if (
            _PICTURE.search(line)
            or any(_FILLED_IN.search(tag) for tag in tags)
            or _TALK_IN_ADDRESS.search(line)
        ):
            yield number, "high"


def sends_data(text: str) -> Iterator[Hit]:
    text = plain(text)
    for find in (_command_hits, _word_hits, _address_hits):
        yield from find(text)
