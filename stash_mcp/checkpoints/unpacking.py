"""A reward model's archive into a folder, trusting nothing of it.

It is read once and to its end, so that its checksum counts, into a folder of its own; that takes
its place only after everything of it was checked. Memory and disk are bounded by what a reward
model's archive can need, whatever this one claims.
"""

import contextlib
import gzip
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from stash_mcp.checkpoints.contract import verify_whole_checkpoint
from stash_mcp.checkpoints.folder import staged_folder
from stash_mcp.checkpoints.member_names import Taken, escapes, unusable
from stash_mcp.checkpoints.tar_stream import Member, OversizedHeaderError, members
from stash_mcp.errors import CheckpointError
from stash_mcp.storage.files import PRIVATE_FILE_MODE, os_errors

MAX_UNPACKED_BYTES = 32 * 1024**3
"""Of all files together; a 0.6B model in float32 takes 2.4 GB."""
MAX_FILES = 256

# Folders, and the files of attributes that macOS's tar adds, come on top of the files.
_MAX_MEMBERS = 4 * MAX_FILES
# Weights hardly get smaller, tokenizers do by ten times: what grows more than that is a bomb.
_GROWTH = 20
_FREE_GROWTH_BYTES = 256 * 1024**2
_GZIP = b"\x1f\x8b"
_NAME_CHARACTERS = 200


@dataclass(frozen=True)
class Origin:
    """How messages call an archive and the model in it, and what to do about a refused one.

    name: begins a sentence. model: ends "the reward model ..."; default: the same. again: about one
    that came whole and is not what it must be. damaged: about one that is cut, or has other bytes
    than were written.
    """

    name: str
    model: str = ""
    again: str = (
        "Make the archive again (tar.gz with the one folder reward-model/) and import it again."
    )
    damaged: str = "The archive is damaged: fetch it again from where it was made."

    def refusal(self, problem: str) -> CheckpointError:
        return CheckpointError(f"{self.name} {problem}.", self.again)


def unpack(
    archive: Path,
    into: Path,
    *,
    origin: Origin | None = None,
    max_bytes: int = MAX_UNPACKED_BYTES,
) -> Path:
    """Make the folder `into` from an archive's one top folder, whatever its name; returns it.

    Raises CheckpointError for an archive that is damaged, too large, writes outside its folder or
    holds no sound checkpoint, and if `into` exists. A failure leaves nothing behind. `origin`:
    default, a file of that path.
    """
    if into.exists():
        raise CheckpointError(f"There is something at {into} already.", "Choose another place.")
    if not archive.is_file():
        raise CheckpointError(f"There is no archive at {archive}.", "Check the path.")
    origin = origin or Origin(str(archive))
    with staged_folder(into) as folder:
        with os_errors("unpack", archive), _archive_errors(archive, origin):
            _extract(archive, folder, _Contents(origin, _most(archive, max_bytes)))
        verify_whole_checkpoint(folder, origin.model or origin.name)
    return into


def _most(archive: Path, max_bytes: int) -> int:
    return min(max_bytes, _FREE_GROWTH_BYTES + _GROWTH * archive.stat().st_size)


@contextlib.contextmanager
def _archive_errors(archive: Path, origin: Origin) -> Iterator[None]:
    try:
        yield
    except OversizedHeaderError as error:
        raise origin.refusal(f"holds {error}, which no reward model needs") from error
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        with archive.open("rb") as file:
            fix = origin.damaged if file.read(len(_GZIP)) == _GZIP else origin.again
        raise CheckpointError(
            f"{origin.name} is not a whole tar.gz file: {_first_words(error)}.", fix
        ) from error


def _first_words(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "it ends too early"
    return str(error).rstrip(".")[:_NAME_CHARACTERS]


def _extract(archive: Path, folder: Path, contents: "_Contents") -> None:
    with gzip.open(archive, "rb") as source:
        for member in members(source):
            path = contents.place(member)
            if path is None:
                for _ in member.chunks():
                    pass
            else:
                _write(member, folder / path)


def _write(member: Member, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as target:
        for chunk in member.chunks():
            target.write(chunk)
    path.chmod(PRIVATE_FILE_MODE)


@dataclass
class _Contents:
    """What an archive has held so far, against what it may hold."""

    origin: Origin
    most_bytes: int
    _bytes: int = 0
    _members: int = 0
    _files: int = 0
    _tops: set[str] = field(default_factory=set)
    _taken: Taken = field(default_factory=Taken)

    def place(self, member: Member) -> PurePosixPath | None:
        """Where the member goes below the top folder; None for one that is left out.

        Raises CheckpointError, before anything of the member is read.
        """
        name = repr(member.name[:_NAME_CHARACTERS])
        self._count(member, name)
        path = PurePosixPath(member.name)
        # macOS's tar adds one such file of attributes for each file.
        if path.name.startswith("._") and member.kind == "file":
            return None
        self._check_name(member, path, name)
        inner = PurePosixPath(*path.parts[1:])
        if other := self._taken.clash(path, folder=member.kind == "folder"):
            raise self.origin.refusal(_twice(name, member.name, other))
        if member.kind == "folder":
            return None
        self._files += 1
        if self._files > MAX_FILES:
            raise self._too_much(name)
        return inner

    def _count(self, member: Member, name: str) -> None:
        self._members += 1
        self._bytes += member.size
        if self._members > _MAX_MEMBERS or self._bytes > self.most_bytes:
            raise self._too_much(name)

    def _too_much(self, name: str) -> CheckpointError:
        return self.origin.refusal(
            f"holds more than a reward model does: with {name}, its member {self._members:,}, it "
            f"is {self._bytes:,} bytes unpacked"
        )

    def _check_name(self, member: Member, path: PurePosixPath, name: str) -> None:
        if escapes(member.name):
            raise self.origin.refusal(f"writes outside its folder: {name}")
        if member.kind == "other":
            raise self.origin.refusal(f"holds {name}, which is neither a plain file nor a folder")
        if why := unusable(member.name):
            raise self.origin.refusal(f"holds {name}, {why}")
        if member.kind == "file" and len(path.parts) < 2:
            raise self.origin.refusal(f"holds {name} outside any folder")
        self._tops.update(path.parts[:1])
        if len(self._tops) > 1:
            both = ", ".join(sorted(self._tops))
            raise self.origin.refusal(f"holds more than one top folder: {both}")


def _twice(name: str, given: str, other: str) -> str:
    if PurePosixPath(given).as_posix() == other:
        return f"names {name} twice"
    return f"holds {name} beside {other[:_NAME_CHARACTERS]!r}, which is the same on some systems"
