"""Names of an archive's members, as paths that are safe and distinct on every system."""

import unicodedata
from dataclasses import dataclass, field
from pathlib import PurePosixPath

_MAX_PATH_CHARACTERS = 1000
_MAX_PART_BYTES = 255
_DEVICES = {"con", "prn", "aux", "nul"} | {
    f"{port}{number}" for port in ("com", "lpt") for number in "123456789¹²³"
}


def escapes(name: str) -> bool:
    """Whether it leads out of the folder it is unpacked in, on any system."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or bool(set(name) & set("\\:\0"))


def unusable(name: str) -> str | None:
    """Why it can be no name on some system, as the end of a sentence; None if it can be."""
    if len(name) > _MAX_PATH_CHARACTERS:
        return "a name longer than systems allow"
    for part in PurePosixPath(name).parts:
        # Lone surrogates, which stand for bytes that are no UTF-8, are not printable either.
        if not part.isprintable() or set(part) & set('<>"|?*'):
            return "a name with characters that no file name can have everywhere"
        if len(part.encode()) > _MAX_PART_BYTES:
            return "a name longer than systems allow"
        if part != part.rstrip(". "):
            return "a name that ends with a dot or a blank, which Windows drops"
        if part.partition(".")[0].rstrip().lower() in _DEVICES:
            return "a name that Windows keeps for a device"
    return None


@dataclass
class Taken:
    """The paths so far. Two that differ in case or in Unicode form alone are one file on macOS and
    Windows, so they count as one here."""

    _known: dict[str, tuple[str, bool]] = field(default_factory=dict)

    def clash(self, path: PurePosixPath, *, folder: bool) -> str | None:
        """Take the path and the folders above it; the earlier spelling that it cannot stand
        beside, or None."""
        above = [p for p in path.parents if p.parts]
        for each in reversed(above):
            if other := self._take(each.as_posix(), folder=True):
                return other
        return self._take(path.as_posix(), folder=folder)

    def _take(self, name: str, *, folder: bool) -> str | None:
        key = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        known = self._known.get(key)
        self._known.setdefault(key, (name, folder))
        # A folder may be named again, in the same spelling.
        return None if known is None or (folder and known == (name, True)) else known[0]
