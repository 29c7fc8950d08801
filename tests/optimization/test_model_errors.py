import inspect
from collections.abc import Callable

import pytest
from litellm import exceptions as raised

from stash_mcp.errors import ModelError
from stash_mcp.optimization.model_errors import MODEL_EXCEPTIONS, kind_of


def _exception_classes() -> list[type[Exception]]:
    return [
        value
        for value in vars(raised).values()
        if inspect.isclass(value) and issubclass(value, Exception)
    ]


@pytest.mark.parametrize("kind", _exception_classes(), ids=lambda kind: kind.__name__)
def test_no_exception_of_the_library_is_unmapped(kind: type[Exception]) -> None:
    bare: Callable[[type[Exception]], Exception] = kind.__new__
    assert issubclass(kind_of(bare(kind)), ModelError)
    assert issubclass(kind, MODEL_EXCEPTIONS)
