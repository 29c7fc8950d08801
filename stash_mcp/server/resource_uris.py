"""The addresses of what can be read: one template each, and the address of one thing."""

from urllib.parse import quote, unquote

RUN = "stash://runs/{run_id}"
REPORT = "stash://runs/{run_id}/report"
CANDIDATE = "stash://runs/{run_id}/candidates/{candidate}/SKILL.md"
TRACE = "stash://traces/{trace_id}"
INSTALLED = "stash://skills/{skill}"
INSTALLED_TEXT = "stash://skills/{skill}/SKILL.md"
SKILL_PATH = "skill://{skill}/{+path}"

MARKDOWN = "text/markdown"
JSON = "application/json"
FOLDER = "inode/directory"

_RUNS = "stash://runs/"


def run_uri(run_id: str) -> str:
    return RUN.replace("{run_id}", _quoted(run_id))


def run_id_of(uri: str) -> str | None:
    """The run whose state or report has this address; None for other addresses."""
    if not uri.startswith(_RUNS):
        return None
    run_id, _, rest = uri.removeprefix(_RUNS).partition("/")
    return unquote(run_id) if rest in ("", "report") else None


def report_uri(run_id: str) -> str:
    return REPORT.replace("{run_id}", _quoted(run_id))


def candidate_uri(run_id: str, number: int) -> str:
    return CANDIDATE.replace("{run_id}", _quoted(run_id)).replace("{candidate}", str(number))


def installed_text_uri(skill: str) -> str:
    return INSTALLED_TEXT.replace("{skill}", _quoted(skill))


def skill_uri(skill: str, path: str = "") -> str:
    """Of a file of a skill, or of a folder of it; without `path` of its own folder."""
    return f"skill://{skill}/{quote(path)}".rstrip("/")


def _quoted(name: str) -> str:
    return quote(name, safe="")
