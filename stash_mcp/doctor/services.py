"""What is reached over the network: models, one tiny call each, and Stash."""

from collections.abc import Sequence

from pydantic import ValidationError

from stash_mcp.backends.extras import has_extra
from stash_mcp.doctor.probing import ProbeFailed, probe
from stash_mcp.doctor.report import Check, not_checked, ok, problem, warning
from stash_mcp.errors import StashSkillsError
from stash_mcp.models import Frozen
from stash_mcp.settings import StashAccess, key_names
from stash_mcp.stash import Limits, open_client

# Together below the minute after which some clients give a call up.
MODEL_SECONDS = 20.0
_LOADING_SECONDS = 35.0
_STASH_LIMITS = Limits(connect_seconds=5, read_seconds=10, total_seconds=12, attempts=1)
_WITHOUT_A_CALL = ("builtin/", "agent")


class ModelAnswer(Frozen):
    """What the process says of one model; problem and fix: None where it answered."""

    model: str
    seconds: float
    problem: str | None = None
    fix: str | None = None


def keys() -> Check:
    """Names of the keys that are set; never what they are."""
    found = key_names()
    # Stash's own key opens no model.
    present = [name for name in found.present if not name.endswith("STASH_API_KEY")]
    if present:
        said = f"Set: {', '.join(present)}."
    else:
        said = "No model's key is set; builtin/comments, agent and servers of your own need none."
    if found.unfilled:
        names = ", ".join(found.unfilled)
        return warning(
            "keys",
            f"{said} Not filled in by the client that started this: {names}.",
            "Set them where the client is started, or write ${NAME:-} in its configuration.",
        )
    if present:
        return ok("keys", said)
    return warning(
        "keys",
        said,
        "For a hosted model, set its provider's key (such as ANTHROPIC_API_KEY) where the client "
        "or the shell is started.",
    )


def models(names: Sequence[str], api_base: str | None) -> list[Check]:
    """One tiny call of each; all at once, in a process of its own."""
    if not names:
        fix = "Name them, to make one tiny call of each (models=[...], --models NAME)."
        return [not_checked("models", "None was named.", fix)]
    asked = [name for name in dict.fromkeys(names) if not name.startswith(_WITHOUT_A_CALL)]
    checks = [
        ok(f"model {name}", "Needs no call.") for name in dict.fromkeys(names) if name not in asked
    ]
    return checks + (_asked(asked, api_base) if asked else [])


def _asked(names: Sequence[str], api_base: str | None) -> list[Check]:
    if not has_extra("local"):
        said = "The local pipeline, which calls models, is not installed."
        return [not_checked(f"model {name}", said) for name in names]
    place = ["--api-base", api_base] if api_base else []
    try:
        rows = probe(
            ["models", "--seconds", str(MODEL_SECONDS), *place, "--", *names],
            MODEL_SECONDS + _LOADING_SECONDS,
        )
        answers = [ModelAnswer.model_validate(row) for row in rows]
    except (ProbeFailed, ValidationError) as error:
        return [problem("models", f"They could not be asked: {error}", "Try it once more.")]
    return [_check(answer) for answer in answers]


def _check(answer: ModelAnswer) -> Check:
    name = f"model {answer.model}"
    if answer.problem is None:
        return ok(name, f"Answered after {answer.seconds:.1f} s.")
    return problem(name, answer.problem, answer.fix or "Check its name and its key.")


def stash(access: StashAccess) -> Check:
    """Whether the service answers and the account may use it; asked only where there is a key."""
    if access.api_key is None:
        fix = "To use Stash, set STASH_API_KEY (and STASH_URL, unless it is the usual one)."
        why = access.key_from[:1].upper() + access.key_from[1:]
        return not_checked("stash", f"{why}.", fix)
    try:
        with open_client(access, _STASH_LIMITS) as client:
            formats = client.formats()
    except StashSkillsError as error:
        return problem("stash", error.problem, error.fix)
    return ok(
        "stash", f"{access.base_url} answers; the account is enabled ({len(formats)} formats)."
    )
