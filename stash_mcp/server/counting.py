"""Numbers, times and sizes in plain words."""

_UNITS = {"KB": 1000, "MB": 1000**2}
_GB = 1000**3


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
    for unit, limit in _UNITS.items():
        # From half of the last digit shown on it would round up to the next unit.
        if bytes < 999.95 * limit:
            return f"{bytes / limit:.1f} {unit}"
    return f"{bytes / _GB:,.1f} GB"
