"""Slimmer JSON schemas for the list of tools, which a client loads into a model's context.

pydantic repeats every field's name as a title and writes "may be left out" as "or null". Our
results leave out what has no value, and a parameter that is left out says the same as null.
"""

from typing import Any

Schema = dict[str, Any]
_NULL = {"type": "null"}


def slim(schema: Schema) -> Schema:
    """The same schema without titles and nulls; what could be null is not required."""
    slimmed = {key: _slim(value) for key, value in schema.items() if not _is_title(key, value)}
    properties = schema.get("properties", {})
    if "required" in schema:
        required = [name for name in schema["required"] if not _nullable(properties.get(name, {}))]
        slimmed["required"] = required
    return _without_null(slimmed)


def _slim(value: object) -> object:
    if isinstance(value, dict):
        return slim(value)
    if isinstance(value, list):
        return [_slim(item) for item in value]
    return value


def _is_title(key: str, value: object) -> bool:
    # A property may itself be called "title"; then its value is a schema.
    return key == "title" and isinstance(value, str)


def _nullable(schema: Schema) -> bool:
    return _NULL in schema.get("anyOf", ())


def _without_null(schema: Schema) -> Schema:
    if not _nullable(schema):
        return schema
    others = [branch for branch in schema["anyOf"] if branch != _NULL]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**others[0], **rest} if len(others) == 1 else {**rest, "anyOf": others}
