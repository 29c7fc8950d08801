"""Slimmer JSON schemas for the list of tools, which a client loads into a model's context.

pydantic repeats every field's name as a title and writes "may be left out" as "or null". Our
results leave out what has no value, and a parameter that is left out says the same as null.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

Schema = dict[str, Any]
LARGEST = 2**63 - 1
"""Of the whole numbers that the library can hold: a bound that says nothing to a reader."""
_NULL = {"type": "null"}
_PARTS = "#/$defs/"


def slim(schema: Schema) -> Schema:
    """The same schema without titles, nulls and empty defaults; what could be null is not
    required.
    """
    slimmed = {key: _slim(value) for key, value in schema.items() if not _is_idle(key, value)}
    properties, required = schema.get("properties", {}), schema.get("required")
    # A property may itself be called "required", "title" or "default", and is a schema then.
    if isinstance(required, list):
        slimmed["required"] = [name for name in required if not _nullable(properties.get(name, {}))]
    return _without_null(slimmed)


def slim_result(schema: Schema) -> Schema:
    """`slim` for an answer, which a client checks and nobody fills in.

    It allows more than it names: the server adds its notices, and a later version more fields. A
    part of the answer that is used once stands where it is used, without the docstring of its
    class, and does not repeat which of its fields are always there.
    """
    whole = slim(schema)
    parts = {name: _open(part) for name, part in whole.pop("$defs", {}).items()}
    required = whole.get("required")
    answer = _open(whole)
    uses = Counter(_references([answer, parts]))
    inline = {name: part for name, part in parts.items() if uses[name] == 1}
    shared = {name: part for name, part in parts.items() if uses[name] > 1}
    answer = _inlined({"$defs": shared, **answer} if shared else answer, inline)
    return {**answer, "required": required} if required else answer


def _slim(value: object) -> object:
    if isinstance(value, dict):
        return slim(value)
    if isinstance(value, list):
        return [_slim(item) for item in value]
    return value


def _is_idle(key: str, value: object) -> bool:
    return (
        (key == "title" and isinstance(value, str))
        or (key == "default" and value in ("", []))
        or (key == "maximum" and value == LARGEST)
    )


def _nullable(schema: Schema) -> bool:
    return _NULL in schema.get("anyOf", ())


def _without_null(schema: Schema) -> Schema:
    if not _nullable(schema):
        return schema
    others = [branch for branch in schema["anyOf"] if branch != _NULL]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**others[0], **rest} if len(others) == 1 else {**rest, "anyOf": others}


def _open(model: Schema) -> Schema:
    """The schema of one class, without its docstring and what it demands."""
    demands = ("additionalProperties", "description", "required")
    return {key: value for key, value in model.items() if key not in demands}


def _references(value: object) -> Iterator[str]:
    """The names of the parts that are referred to, each as often as it is."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].removeprefix(_PARTS)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _references(item)


def _inlined(value: Any, parts: Mapping[str, Schema]) -> Any:
    if isinstance(value, list):
        return [_inlined(item, parts) for item in value]
    if not isinstance(value, dict):
        return value
    part = parts.get(value.get("$ref", "").removeprefix(_PARTS))
    if part is None:
        return {key: _inlined(item, parts) for key, item in value.items()}
    # What stands beside the reference, such as a description, is about this use.
    return _inlined({**part, **{k: v for k, v in value.items() if k != "$ref"}}, parts)
