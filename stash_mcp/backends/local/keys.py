"""Models of a run whose key is not set: told when it is started, half a minute before it fails.

Not refused: a worker that lives was perhaps started where the key is set, the model library reads
files of its own, and answers that are remembered need none.
"""

from stash_mcp.models import RunRequest
from stash_mcp.settings import missing_key


def keyless(request: RunRequest) -> tuple[str, ...]:
    """A sentence or two for each variable that is missing."""
    models = [
        (request.task_model, request.task_api_base),
        (request.reflection_model, request.reflection_api_base),
    ]
    wanting: dict[str, list[str]] = {}
    for model, api_base in models:
        name = None if api_base else missing_key(model)
        if name is not None:
            wanting.setdefault(name, []).append(model)
    return tuple(_in_words(name, models) for name, models in wanting.items())


def _in_words(name: str, models: list[str]) -> str:
    return (
        f"{name} is not set here, and {' and '.join(dict.fromkeys(models))} needs it: the run will "
        "fail at its first call, unless a worker that is at work has the key. Cancel it, set "
        f"{name} where this command or the MCP server is started, and start it again."
    )
