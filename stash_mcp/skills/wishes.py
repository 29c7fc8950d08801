"""What a skill's body asks an agent to do that a person would not want: rules on plain words.

Covered: sending a person's data somewhere, hiding what is done from the person, and text that
nobody reads because it is very long or pushed out of sight. Words can say a thing in more ways than
rules can list: this finds the usual ones. A sentence that forbids the thing ("never send ...") is
left alone, and so is a request to an API whose data stands in the command.
"""

import re
from collections.abc import Iterator

from stash_mcp.skills.findings import Hit, Rule

MAX_LINE_CHARACTERS = 4_000
MAX_TEXT_LINES = 510
MAX_TEXT_CHARACTERS = 21_500
"""A body's limits (document.py) and the frontmatter above it."""

_I = re.IGNORECASE

# --- commands that send ---

_SENDER = r"\b(?:curl|wget)\b[^\n]{0,600}?"
_COMMANDS = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        # Data from a file, from standard input or from another command.
        (_SENDER + r"\s(?:-d|--data(?:-\w+)?|--json)[ =]?[\"']?(?:\w+=)?@", 0),
        (_SENDER + r"\s(?:-F|--form)[ =]?[\"']?[\w.-]+=[@<]", 0),
        (_SENDER + r"\s(?:-T|--upload-file|--post-file|--body-file)[ =]", 0),
        (_SENDER + r"(?:\$\(|[^\s`]`\w[^`\n]*`|\$\{?(?:HOME|USER|PWD|HISTFILE|SSH_\w+)\b)", 0),
        (r"\|\s*(?:sudo\s+)?(?:curl|nc|ncat|netcat|socat|telnet)\b", 0),
        (r"\|\s*(?:mail|mailx|sendmail)\s+(?:-|\S+@)", 0),
        (r"\b(?:nc|ncat|netcat)\b\s+(?:-\w+\s+)*[\w.-]+\s+\d+\s*<", 0),
        (r"\b(?:nc|ncat|netcat)\b[^\n]*\s-[ec]\s*/?\w", 0),
        (r"/dev/(?:tcp|udp)/", 0),
        (r"\b(?:dig|nslookup|host|ping)\s[^\n`]*(?:\$\(|(?<=[\w.-])`\w[^`\n]*`\.)", 0),
        (
            r"\b(?:scp|rsync|sftp)\b[^\n]*(?:~/|/etc/|\.ssh|\.env\b|\.aws|\$HOME)[^\n]*\s[\w.@-]+:",
            0,
        ),
        (r"\bInvoke-(?:WebRequest|RestMethod)\b[^\n]*-(?:InFile|Body\s+\(?\s*Get-Content)", _I),
        (r"\b(?:iwr|irm)\b[^\n]*-(?:InFile|Body\s+\(?\s*Get-Content)", _I),
        (r"\b(?:requests|httpx|urllib\.request)\.\w+\([^\n]*(?:os\.environ|open\(|read_text\()", 0),
        (r"\bfetch\([^\n]*(?:process\.env|readFile|document\.cookie|localStorage)", 0),
        (r"\b(?:gh\s+gist\s+create|aws\s+s3\s+cp)\b[^\n]*(?:~/|/etc/|\.ssh|\.env\b|\.aws)", 0),
    )
)

# --- words that send ---

_SEND = (
    r"(?:send|sends|upload|post|posts|forward|transmit|submit|deliver|e-?mail|mail|leak|exfiltrate"
    r"|push|copy|beacon|stream|report|append|attach|encode|include|put|paste)"
)
_ALL_OF = (
    r"(?:(?:out|back|over|up|all|any|each|every|of|the|a|an|this|that|these|their|your|my|our|its"
    r"|user'?s?|person'?s?|developer'?s?|owner'?s?|machine'?s?|full|entire|whole|complete|raw"
    r"|current|last|latest|recent|previous|other|local|private|secret|stored|saved|found|contents?"
    r"|copy|copies|list|dump|values?|text|base64|encoded|and|in|from|env|aws|ssh|git|api"
    r"|browser|shell|session)\s+)*"
)
_SECRETS = (
    r"(?:\.env\b|~/\.\w[\w./-]*|/etc/\w+|id_rsa|env(?:ironment)?(?: variables?| vars?)"
    r"|(?:api |access |auth |private |ssh |secret )*(?:keys?|tokens?)\b(?! (?:words?|points?))"
    r"|credentials?|passwords?|passphrases?|secrets?|cookies?|(?:shell|command|bash) history"
    r"|keychain|wallets?|seed phrases?)"
)
_TALK = (
    r"(?:conversations?|chat(?: history| log)?s?|transcripts?|history|system prompt|prompts?"
    r"|context window|source code|repository|codebase|files?|messages?)"
)
_AT = r"[^\n.!?]{0,60}?\b(?:to|at|into|via|through|with|on|in)\b[^\n]{0,40}?"
_URL = r"(?:https?|ftp|wss?)://|\b\d{1,3}(?:\.\d{1,3}){3}\b"
_ADDRESS = (
    _URL + r"|\bwebhook|\bpastebin|[\w.+-]+@[\w-]+\.\w+|\b(?:remote|external|attacker)[ -]\w*"
)
_WORDS = tuple(
    re.compile(pattern, _I)
    for pattern in (
        rf"\b{_SEND}\s+{_ALL_OF}{_SECRETS}{_AT}(?:{_ADDRESS})",
        rf"\b{_SEND}\s+{_ALL_OF}{_TALK}{_AT}(?:{_URL})",
        rf"\bexfiltrate\s+{_ALL_OF}(?:{_SECRETS}|{_TALK}|data)",
    )
)
_LINKS = tuple(
    re.compile(pattern, _I)
    for pattern in (
        # A picture is fetched by itself, with whatever an agent puts into its address.
        r"!\[[^\]\n]*\]\(\s*<?https?://[^)\s]*(?:[?&/=](?:\{|<|\[|\$|%7B)|=(?:\.\.\.|…|(?-i:[A-Z_]{6,})\b))",
        r"<img\b[^>\n]*\bsrc\s*=\s*[\"']?https?://[^>\s?]*\?[^>\s]*(?:\{|\$|%7B|\[)",
        r"https?://[^\s)>]*[?&][\w-]+=[{<\[$]+\s*(?:the[ _-])?(?:full[ _-])?(?:conversation|chat|"
        r"history|transcript|messages|system[ _-]?prompt|context|secrets?|env|passwords?|"
        r"credentials?|cookies?)",
    )
)

# --- hiding ---

_WHO = r"(?:the |a |any |your )?(?:users?|persons?|people|humans?|operators?|developers?|owners?)\b"
_DONE = (
    r"(?:this|these|that|those|your) (?:steps?|instructions?|skills?|sections?|rules?|files?"
    r"|commands?|uploads?|requests?|calls?|actions?|activity|transfers?|changes?|edits?|outputs?"
    r"|paragraphs?|notes?|lines?|tasks?|script)\b"
    r"|(?:that )?(?:you|it)(?: have|'ve| has)? (?:ran|run|read|sent|did|done|made|called|uploaded"
    r"|loaded|executed|copied|changed|opened|used|installed|were told|received)\b"
    r"|what you (?:did|do|ran|sent|read|changed)\b|having (?:run|read|sent|done)\b"
    r"|doing (?:this|so|it)\b"
)
_TELL = r"(?:tell|inform|mention|reveal|disclose|report|notify|alert|admit|acknowledge)"
_SHOW = r"(?:tell|inform|show|notify|alert|let|explain to|report to|mention to)"
_THE = r"the (?:commands?|uploads?|requests?|calls?|transfers?|changes?|edits?|scripts?)\b"
_NOT = (
    r"(?:do not|don't|don\u2019t|never|must not|mustn't|should not|shouldn't|avoid|no need to|not)"
)
_HIDING = tuple(
    re.compile(pattern, _I)
    for pattern in (
        rf"\b{_NOT} (?:ever )?{_TELL}(?:ing)? (?:to )?(?:{_WHO} )?(?:about |of )?(?:{_DONE})",
        rf"\b{_NOT} (?:ever )?{_SHOW}(?:ing)? {_WHO} (?:know )?(?:about |of )?(?:{_DONE}|{_THE})",
        rf"\b{_NOT} (?:ever )?(?:show|reveal|say|log|display) what you (?:did|ran|sent|changed)\b",
        r"\b(?:pretend|act as if|claim|lie)\b[^\n.;]{0,30}\b(?:you (?:did not|didn't|never)"
        r"|nothing (?:happened|was (?:sent|run|read)))",
    )
)
_HIDING_UNLESS_FORBIDDEN = tuple(
    re.compile(pattern, _I)
    for pattern in (
        rf"\bwithout (?:ever )?(?:telling|informing|notifying|alerting|showing) (?:it to )?{_WHO}"
        r"(?! (?:of|about|the|how|what|why|when|that|which|where|whether|who|it)\b)",
        rf"\bwithout (?:{_WHO}'?s? )(?:knowing|knowledge|noticing|seeing|being told|awareness)",
        r"\bwithout (?:mentioning|disclosing|revealing|showing|logging) (?:it|this|that)\b",
        rf"\b(?:hide|conceal|mask|keep) (?:it|this|that|the output|{_DONE}|{_THE})[^\n.;]{{0,30}}"
        rf"\bfrom {_WHO}",
        rf"\b(?:hide|conceal) (?:{_DONE})",
        rf"\bbehind {_WHO}['\u2019]s? back",
        rf"\bso (?:that )?{_WHO} (?:does|do|will|can|would)(?: not|n't|n\u2019t|not) (?:\w+ )?"
        r"(?:notice|see|know|find)",
        r"\b(?:silently|secretly|covertly|stealthily|quietly|invisibly|discreetly) (?:\w+ )?(?:send"
        r"|upload|post|forward|transmit|e-?mail|copy|exfiltrate|share|leak|fetch|download|run"
        r"|execute|install|add|read|collect|record|append)\b[^\n.;]*(?:https?://|~/|/etc/|\.env"
        r"|credential|password|secret|token|\bkeys?\b|conversation|history|`|script|command)",
    )
)
_FORBIDS = re.compile(
    r"\b(?:never|not|don't|don\u2019t|doesn't|won't|cannot|can't|mustn't|shouldn't|avoid|refuse|forbid"
    r"|forbidden|nobody|no one|without|wrong|instead of|rather than|warn|if (?:a|the|any|someone)"
    r"[^.\n]{0,60}(?:asks?|says?|tells?|wants?))\b",
    _I,
)
_SENTENCE_CHARACTERS = 400
_CLAUSE_ENDS = re.compile(r"[.!?;:\n](?=\s|$)|\n")


def _forbidden(text: str, position: int) -> bool:
    """Whether the sentence of `position` says, before it, that this is not to be done."""
    start = max(0, position - _SENTENCE_CHARACTERS)
    for match in _CLAUSE_ENDS.finditer(text, start, position):
        start = match.end()
    return _FORBIDS.search(text, start, position) is not None


def _quoted(text: str, position: int) -> bool:
    return text[position - 1 : position] in ('"', "“", "'", "\u2018", "«", "„")


def _sends_data(text: str) -> Iterator[Hit]:
    for pattern in (*_COMMANDS, *_LINKS):
        yield from ((match.start(), "high") for match in pattern.finditer(text))
    yield from _unless_forbidden(text, _WORDS)


def _hides(text: str) -> Iterator[Hit]:
    for pattern in _HIDING:
        for match in pattern.finditer(text):
            if not _quoted(text, match.start()):
                yield match.start(), "high"
    yield from _unless_forbidden(text, _HIDING_UNLESS_FORBIDDEN)


def _unless_forbidden(text: str, patterns: tuple[re.Pattern[str], ...]) -> Iterator[Hit]:
    for pattern in patterns:
        for match in pattern.finditer(text):
            if not _forbidden(text, match.start()) and not _quoted(text, match.start()):
                yield match.start(), "high"


# --- out of sight ---

_LONG_LINE = re.compile(rf"[^\n]{{{MAX_LINE_CHARACTERS + 1},}}")
_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{400,}")
_MAX_COLUMN = 400
_PUSHED_ASIDE = re.compile(r"(?<![ \t])[ \t]{120,}+(?=\S)")
_PUSHED_DOWN = re.compile(r"(?<!\n)(?:\n[ \t]*+){40,}+(?=\S)")


def _out_of_sight(text: str) -> Iterator[Hit]:
    for pattern in (_LONG_LINE, _BLOB, _PUSHED_ASIDE, _PUSHED_DOWN):
        # Reported where the unseen text begins.
        at_end = pattern in (_PUSHED_ASIDE, _PUSHED_DOWN)
        for match in pattern.finditer(text):
            if pattern is not _PUSHED_ASIDE or not _in_table(text, match):
                yield (match.end() if at_end else match.start()), "high"


def _in_table(text: str, spaces: re.Match[str]) -> bool:
    """Whether these are the blanks that align the columns of a table."""
    line = text[text.rfind("\n", 0, spaces.start()) + 1 : spaces.start()]
    return line.lstrip().startswith("|") and len(spaces.group()) < _MAX_COLUMN


def _too_long(text: str) -> Iterator[Hit]:
    if len(text) > MAX_TEXT_CHARACTERS or text.count("\n") >= MAX_TEXT_LINES:
        yield 0, "high"


WISHES: tuple[Rule, ...] = (
    Rule(
        "sends-data",
        "This sends files, secrets or the conversation to somewhere else, or puts them into an "
        "address that is fetched.",
        _sends_data,
    ),
    Rule(
        "hides-from-person",
        "This asks the agent to hide what it does from the person it works for.",
        _hides,
    ),
    Rule(
        "out-of-sight",
        "A line this long, a block of encoded text, or text behind so much blank space is not "
        "read by a person, but the agent reads it.",
        _out_of_sight,
    ),
    Rule(
        "too-long",
        "The text is longer than a skill may be, so that nobody reads all of it.",
        _too_long,
    ),
)
