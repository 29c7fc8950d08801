"""Keeping prompts under a stated size."""


def shorten(text: str, limit: int) -> str:
    """`text` cut in its middle to at most `limit` characters, with a mark that says how much.

    Conversations say what they are about at their start and how they ended at their end.
    """
    if len(text) <= limit:
        return text
    mark = f"\n[... {len(text) - limit:,} or more characters left out ...]\n"
    room = limit - len(mark)
    if room <= 0:
        return text[:limit]
    head = (room + 1) // 2
    tail = room - head
    return text[:head] + mark + (text[-tail:] if tail else "")
