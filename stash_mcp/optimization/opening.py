"""From a model's name to the model: LiteLLM's providers, or the installed claude command."""

from collections.abc import Sequence

from stash_mcp.models import CLAUDE_CODE, Usage
from stash_mcp.optimization.claude_code import ClaudeCodeModel
from stash_mcp.optimization.llm import ChatModel
from stash_mcp.optimization.memory import Memory
from stash_mcp.optimization.model import Model, RetryPolicy
from stash_mcp.settings import claude_command, command_environment

TIMEOUT_SECONDS = 180.0


def open_model(
    name: str,
    api_base: str | None = None,
    *,
    timeout: float = TIMEOUT_SECONDS,
    max_concurrency: int = 8,
    retry: RetryPolicy | None = None,
    secrets: Sequence[str] = (),
    memory: Memory | None = None,
    usage: Usage | None = None,
) -> Model:
    """The model of this name. timeout: seconds for one request. Nothing is asked of it yet.

    Raises ModelNotFoundError where the name leads nowhere.
    """
    if name.startswith(CLAUDE_CODE):
        return ClaudeCodeModel(
            name,
            api_base,
            command=claude_command(),
            timeout=timeout,
            max_concurrency=max_concurrency,
            retry=retry,
            secrets=secrets,
            memory=memory,
            usage=usage,
            environ=command_environment(),
        )
    return ChatModel(
        name,
        api_base,
        timeout=timeout,
        max_concurrency=max_concurrency,
        retry=retry,
        secrets=secrets,
        memory=memory,
        usage=usage,
    )
