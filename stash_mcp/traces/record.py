"""One JSON object of a payload, read field by field, with errors that say where they are."""

from dataclasses import dataclass

from pydantic import JsonValue

from stash_mcp.errors import InputError
from stash_mcp.traces.payload import Row

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Record:
    """`path` leads from the line to this object and is "" for the line itself."""

    values: dict[str, JsonValue]
    line: int
    error: type[InputError]
    path: str = ""

    def wrong(self, name: str, problem: str, fix: str) -> InputError:
        """The error for field `name`, for the caller to raise."""
        return self.error(
            f"Line {self.line}, `{self.place(name)}`: {problem}.", f"{fix} Nothing was stored."
        )

    def place(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if isinstance(value, str):
            return value
        raise self._not(name, "a string")

    def optional_text(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        """False where the field is missing or null."""
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self._not(name, "true or false")

    def integer(self, name: str) -> int:
        value = self.values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise self._not(name, "a whole number")

    def optional_object(self, name: str) -> dict[str, JsonValue] | None:
        value = self.values.get(name)
        if value is None or isinstance(value, dict):
            return value
        raise self._not(name, "an object")

    def record(self, name: str) -> "Record":
        value = self.values.get(name)
        if isinstance(value, dict):
            return Record(value, self.line, self.error, self.place(name))
        raise self._not(name, "an object")

    def records(self, name: str) -> "list[Record]":
        """The objects of an array."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self._not(name, "an array of objects")
        return [self._item(name, index, item) for index, item in enumerate(value)]

    def optional_records(self, name: str) -> "list[Record]":
        return [] if self.values.get(name) is None else self.records(name)

    def _item(self, name: str, index: int, item: JsonValue) -> "Record":
        place = f"{name}[{index}]"
        if not isinstance(item, dict):
            raise self.wrong(place, f"{_shown(item)} is not an object", "Give an object.")
        return Record(item, self.line, self.error, self.place(place))

    def _not(self, name: str, kind: str) -> InputError:
        if name not in self.values:
            return self.wrong(name, "is missing", f"Give {kind}.")
        return self.wrong(name, f"{_shown(self.values[name])} is not {kind}", f"Give {kind}.")


def record_of(row: Row, error: type[InputError]) -> Record:
    """The row as an object; anything else raises `error`."""
    if isinstance(row.value, dict):
        return Record(row.value, row.line, error)
    raise error(
        f"Line {row.line} is {_kind(row.value)}, not an object.",
        "Write each one as a JSON object on a line of its own. Nothing was stored.",
    )


def _shown(value: JsonValue) -> str:
    words = repr(value) if isinstance(value, str) else _kind(value)
    return words if len(words) <= _SHOWN_CHARACTERS else f"{words[:_SHOWN_CHARACTERS]}…"


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value!r:.30}"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"
