"""LiteLLM's exceptions in our words: one table, and what a class alone does not say.

Every class of `litellm.exceptions` has a row, itself or through an ancestor; a test walks them.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import openai
from litellm import exceptions as raised

from stash_mcp.errors import (
    ModelAuthError,
    ModelError,
    ModelNotFoundError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnreachableError,
    RequestRejectedError,
)

WORDS_LIMIT = 600

# Every class of litellm.exceptions, by the nearest ancestor in this table. APIError carries a
# status that says more than its class does; see `kind_of`.
_KINDS: dict[type[Exception], type[ModelError]] = {
    raised.BadRequestError: RequestRejectedError,
    raised.UnprocessableEntityError: RequestRejectedError,
    raised.PaymentRequiredError: ModelAuthError,
    raised.LiteLLMUnknownProvider: ModelNotFoundError,
    raised.EndpointNotSupportedByModelError: ModelNotFoundError,
    raised.UnsupportedEndpointError: ModelNotFoundError,
    raised.AuthenticationError: ModelAuthError,
    raised.PermissionDeniedError: ModelAuthError,
    raised.NotFoundError: ModelNotFoundError,
    raised.RateLimitError: ModelRateLimitError,
    raised.Timeout: ModelServerError,
    raised.InternalServerError: ModelServerError,
    raised.ServiceUnavailableError: ModelServerError,
    raised.BadGatewayError: ModelServerError,
    raised.APIConnectionError: ModelUnreachableError,
    raised.APIResponseValidationError: ModelServerError,
    raised.APIError: ModelServerError,
    raised.BudgetExceededError: ModelAuthError,
    raised.GuardrailRaisedException: RequestRejectedError,
    raised.BlockedPiiEntityError: RequestRejectedError,
    raised.ModifyResponseException: RequestRejectedError,
    raised.SensitiveDataRouteException: RequestRejectedError,
    raised.ModelNotMappedError: ModelNotFoundError,
    raised.OpenAIError: ModelServerError,
    openai.OpenAIError: ModelServerError,
}

MODEL_EXCEPTIONS = tuple(_KINDS)

_STATUSES: dict[int, type[ModelError]] = {
    HTTPStatus.UNAUTHORIZED: ModelAuthError,
    HTTPStatus.FORBIDDEN: ModelAuthError,
    HTTPStatus.PAYMENT_REQUIRED: ModelAuthError,
    HTTPStatus.NOT_FOUND: ModelNotFoundError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: RequestRejectedError,
    HTTPStatus.REQUEST_TIMEOUT: ModelServerError,
    HTTPStatus.TOO_MANY_REQUESTS: ModelRateLimitError,
}

PROBLEMS: dict[type[ModelError], str] = {
    RequestRejectedError: "The model {where} rejected the request",
    ModelAuthError: "The model {where} refused the key",
    ModelNotFoundError: "The model {where} was not found",
    ModelRateLimitError: "The model {where} kept answering that the rate limit is reached",
    ModelUnreachableError: "The model {where} cannot be reached",
    ModelServerError: "The model {where} kept failing",
}

FIXES: dict[type[ModelError], str] = {
    RequestRejectedError: "This conversation scores 0; the words above say why.",
    ModelNotFoundError: "Check the model's name, written as provider/name, and its base URL.",
    ModelRateLimitError: "Wait, or lower max_concurrency, and start the run again.",
    ModelUnreachableError: "Check that the server is running and that the base URL is right.",
    ModelServerError: "Wait until the server answers again, or check that the base URL is the one "
    "of an OpenAI-compatible server; then start the run again.",
}


def kind_of(error: Exception) -> type[ModelError]:
    """Our class for one of LiteLLM's exceptions."""
    if _without_key(error):
        return ModelAuthError
    if _never_connected(error):
        return ModelUnreachableError
    for ancestor in type(error).__mro__:
        kind = _KINDS.get(ancestor)
        if kind is not None:
            generic = ancestor in (raised.APIError, raised.OpenAIError, openai.OpenAIError)
            return _STATUSES.get(_status(error), kind) if generic else kind
    raise TypeError(f"{type(error).__name__} is no exception of the model library") from error


def _status(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _without_key(error: Exception) -> bool:
    """Whether the client library refused to send: it raises its bare base class for that, and
    LiteLLM reports a server's error 500."""
    return any(type(cause) is openai.OpenAIError for cause in _causes(error))


def _never_connected(error: BaseException) -> bool:
    """Whether nothing answered: LiteLLM reports that as a server's error 500."""
    for cause in _causes(error):
        if isinstance(cause, openai.APITimeoutError):
            return False
        if isinstance(cause, (openai.APIConnectionError, ConnectionError)):
            return True
    return False


def retry_after_seconds(error: BaseException | None) -> float | None:
    """Seconds that the server asked to wait: a number, or the time until a date (RFC 9110)."""
    response = getattr(error, "response", None)
    headers = getattr(response, "headers", None) or {}
    extra = getattr(error, "litellm_response_headers", None) or {}
    value = headers.get("retry-after") or extra.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        return _seconds_until(value)


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def providers_words(error: Exception) -> str:
    """The provider's own words, on one line. They may hold a key, and may be long."""
    message = str(getattr(error, "message", None) or error)
    prefix = f"litellm.{type(error).__name__}: "
    while message.startswith(prefix):
        message = message.removeprefix(prefix)
    # LiteLLM puts the traceback of its own parsing into some messages.
    words = " ".join(message.partition("Traceback (most recent call last)")[0].split())
    return words
