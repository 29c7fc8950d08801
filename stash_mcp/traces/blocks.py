"""Content of a message -> steps. Content is null, a string, or a list of blocks with a `type`;
each block becomes a step of its own, in the order of the message.
"""

from collections.abc import Callable

from pydantic import JsonValue

from stash_mcp.errors import InputError
from stash_mcp.models import Role, Step
from stash_mcp.traces.record import Record

_TEXT_TYPES = {"text", "input_text", "output_text"}

BlockReader = Callable[[Record, str], list[Step] | None]
"""(block, its type) -> steps; None for a block that it does not know."""


def content_steps(message: Record, role: Role, read_block: BlockReader) -> list[Step]:
    """Steps of the message's `content`; a block that `read_block` does not know becomes its text,
    or `[type]` where it has none. An empty string gives no step.
    """
    content = message.values.get("content")
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [Step(role=role, content=content)]
    steps: list[Step] = []
    for index, item in enumerate(_items(message, content)):
        if isinstance(item, str):
            steps.append(Step(role=role, content=item))
            continue
        block = _block(message, f"content[{index}]", item)
        known = read_block(block, block.text("type"))
        steps += [Step(role=role, content=_block_text(block))] if known is None else known
    return steps


def content_text(record: Record, name: str) -> str:
    """A string as it is, null as "", the blocks of a list as lines."""
    value = record.values.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    return "\n".join(
        item if isinstance(item, str) else _block_text(_block(record, f"{name}[{index}]", item))
        for index, item in enumerate(_items(record, value, name))
    )


def thinking_steps(text: str) -> list[Step]:
    """Empty reasoning, as services leave behind when they redact it, is dropped."""
    if not text.strip():
        return []
    return [Step(role="assistant", content=text, metadata={"thinking": True})]


def _items(record: Record, value: JsonValue, name: str = "content") -> list[JsonValue]:
    if isinstance(value, list):
        return value
    raise _wrong_content(record, name)


def _block(record: Record, name: str, item: JsonValue) -> Record:
    if isinstance(item, dict):
        return Record(item, record.line, record.error, record.place(name))
    raise _wrong_content(record, name)


def _wrong_content(record: Record, name: str) -> InputError:
    return record.wrong(
        name, "it is neither text nor content blocks", "Give a string or a list of blocks."
    )


def _block_text(block: Record) -> str:
    kind = block.text("type")
    return block.text("text") if kind in _TEXT_TYPES else f"[{kind}]"
