"""Numbers, times and sizes in plain words."""

_UNITS = ("KB", "MB", "GB")


def count(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """`48 s`, `3 min 5 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(bytes: int) -> str:
    """`812 bytes`, `1.5 MB`; a kilobyte is 1,000 bytes."""
    if bytes < 1000:
        return count(bytes, "byte")
    amount = float(bytes)
    for unit in _UNITS:
        amount /= 1000
        if amount < 999.95:
            break
    return f"{amount:,.1f} {unit}"
