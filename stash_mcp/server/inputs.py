"""What a caller hands in: a file by name, conversations, annotations.

A file is read up to a limit, and refused in words where it cannot be read.
"""

from pathlib import Path

from stash_mcp.backends.base import ImportReport, Side
from stash_mcp.errors import InputError

MAX_INPUT_BYTES = 512 * 1024 * 1024


def read_input(name: str, base: Path, *, limit: int = MAX_INPUT_BYTES) -> bytes:
    """The bytes of the file `name`, relative to the folder `base`; `~` is the home folder.

    Raises InputError where there is no regular file of at most `limit` bytes that can be read.
    """
    path = _path(name, base)
    try:
        _check(path, limit)
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise InputError(
            f"The file {path} cannot be read: {error.strerror or error}.",
            "Check its permissions, or give another file.",
        ) from error
    if len(data) > limit:
        raise _too_large(path, limit)
    return data


def import_any(
    backend: Side, conversations: bytes | None, annotations: bytes | None, format: str
) -> ImportReport:
    """Import conversations, with annotations or without, or annotations on known conversations."""
    if conversations is not None:
        return backend.import_traces(conversations, format=format, annotations=annotations)
    if annotations is None:
        raise InputError(
            "There is nothing to import.", "Give a file or text with conversations, or annotations."
        )
    return ImportReport(
        format="annotations",
        imported=0,
        added=0,
        replaced=0,
        unchanged=0,
        annotations_removed=0,
        annotations_added=backend.import_annotations(annotations),
        trace_ids=(),
    )


def _path(name: str, base: Path) -> Path:
    if not name.strip() or "\0" in name:
        raise InputError("The name of the file is empty or has a NUL in it.", "Give a file's path.")
    try:
        return base / Path(name).expanduser()
    except RuntimeError as error:
        raise InputError(
            f"The home folder in {name} is not known.", "Give the whole path of the file."
        ) from error


def _check(path: Path, limit: int) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder.", "Give one file in it, and call again for others.")
    if not path.exists():
        raise InputError(
            f"There is no file {path}.",
            "Check the path; a relative one starts at the project's folder.",
        )
    # A pipe or a device may never end.
    if not path.is_file():
        raise InputError(f"{path} is not a regular file.", "Save the data to a file first.")
    if path.stat().st_size > limit:
        raise _too_large(path, limit)


def _too_large(path: Path, limit: int) -> InputError:
    return InputError(
        f"The file {path} is larger than {limit // 1024**2} MiB.",
        "Split it between lines and import the parts one after another.",
    )
