"""Runs whose models are answered by the installed `claude` command: whether it is there, and how
much of the person's money it may take where they named no bound themselves.
"""

import shutil
from collections.abc import Iterable

from stash_mcp.backends.prices import can_be_capped
from stash_mcp.errors import InputError
from stash_mcp.models import CLAUDE_CODE, RunRequest

DEFAULT_CAP_USD = 5.0


def check_command(models: Iterable[str], command: str) -> None:
    """Raise InputError where one of the models needs the command and it is not there."""
    needing = [model for model in models if model.startswith(CLAUDE_CODE)]
    if needing and shutil.which(command) is None:
        raise InputError(
            f"'{needing[0]}' is answered by the command '{command}', which is not on the PATH of "
            "this process.",
            "Install Claude Code, set STASH_MCP_CLAUDE to the command's path, or name another "
            "model.",
        )


def capped(request: RunRequest) -> tuple[RunRequest, tuple[str, ...]]:
    """The request with a bound on its cost, and what the plan says of it."""
    models = (request.task_model, request.reflection_model)
    asks_it = any(model.startswith(CLAUDE_CODE) for model in models)
    if not asks_it or request.max_cost_usd is not None:
        return request, ()
    if not can_be_capped(request):
        note = (
            "What the claude command spends is bounded by the calls alone: the other model has "
            "no known price."
        )
        return request, (note,)
    note = (
        f"Stops at {DEFAULT_CAP_USD:g} US dollars, as the claude command counts them; "
        "max_cost_usd sets another bound."
    )
    return request.model_copy(update={"max_cost_usd": DEFAULT_CAP_USD}), (note,)
