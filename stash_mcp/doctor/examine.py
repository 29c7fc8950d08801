"""All checks, in the order in which a person would mend things."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from stash_mcp.agents.surroundings import Surroundings
from stash_mcp.doctor import agents, installation, installing, library, machine, services
from stash_mcp.doctor.report import Check, problem
from stash_mcp.errors import StashSkillsError, VariableError
from stash_mcp.settings import Settings, StashAccess


@dataclass(frozen=True)
class Questions:
    """What takes time or money and is only looked at when asked for.

    models: names to call once each, at `api_base` if it is given. gpu: look at the device anew.
    """

    models: tuple[str, ...] = ()
    api_base: str | None = None
    gpu: bool = False


def examine(
    settings: Settings,
    surroundings: Surroundings,
    stash: Callable[[], StashAccess],
    questions: Questions,
    clock: Callable[[], datetime],
    faults: Sequence[VariableError] = (),
) -> tuple[Check, ...]:
    """Every check. A check that cannot be made is a problem of its own; none stops another.

    faults: of variables that `settings` takes for unset.
    """
    going_on = installing.state(settings.home, clock())
    torch = installation.version("torch")
    checks: list[tuple[str, Callable[[], Check | Sequence[Check]]]] = [
        ("environment", lambda: [problem("environment", row.problem, row.fix) for row in faults]),
        ("python", lambda: installation.python(surroundings)),
        ("versions", installation.versions),
        ("local pipeline", lambda: installation.local_part(surroundings, going_on)),
        ("demo", lambda: installation.demo_part(surroundings)),
        ("home", lambda: machine.home(settings)),
        ("disk", lambda: machine.disk(settings)),
        ("gpu", lambda: machine.gpu(settings, ask=questions.gpu, torch=torch)),
        ("library", lambda: library.library_and_worker(settings, clock)),
        ("agents", lambda: agents.set_up(settings)),
        ("skills folders", lambda: agents.skills_folders(settings)),
        ("keys", services.keys),
        ("models", lambda: services.models(questions.models, questions.api_base)),
        ("stash", lambda: services.stash(stash())),
    ]
    return tuple(found for name, check in checks for found in _made(name, check))


def _made(name: str, check: Callable[[], Check | Sequence[Check]]) -> Sequence[Check]:
    try:
        found = check()
    except StashSkillsError as error:
        return [problem(name, error.problem, error.fix)]
    return [found] if isinstance(found, Check) else found
