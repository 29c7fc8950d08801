"""`logs`."""

from collections.abc import Iterator
from typing import Annotated

import typer

from stash_mcp.backends.base import Backend
from stash_mcp.cli.characters import visible
from stash_mcp.cli.following import POLL_SECONDS
from stash_mcp.cli.jobs import JobId
from stash_mcp.cli.printing import print_json, print_text
from stash_mcp.cli.session import Json, Session, session_of
from stash_mcp.server.jobs import find_job


def register(app: typer.Typer) -> None:
    app.command("logs")(logs)


def logs(
    context: typer.Context,
    job_id: JobId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job is over.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the worker's log of a run or a training."""
    session = session_of(context)
    find_job(session.backend, job_id)
    texts = _until_over(session, job_id) if follow else _Log(session.backend, job_id).unread()
    if as_json:
        print_json(session.out, {"id": job_id, "log": "".join(texts)})
        return
    is_empty = True
    for text in texts:
        is_empty = False
        session.out.file.write(visible(text))
        session.out.file.flush()
    if is_empty:
        print_text(session.err, f"There is no log of {job_id}: it has not begun, or was pruned.")


def _until_over(session: Session, job_id: str) -> Iterator[str]:
    log = _Log(session.backend, job_id)
    while True:
        # The job before its log: once its end is seen, what it wrote until then is too.
        is_over = find_job(session.backend, job_id).status.is_final
        yield from log.unread()
        if is_over:
            return
        session.sleep(POLL_SECONDS)


class _Log:
    """Read in parts of bounded size."""

    def __init__(self, backend: Backend, job_id: str) -> None:
        self._backend = backend
        self._job_id = job_id
        self._offset = 0

    def unread(self) -> Iterator[str]:
        while True:
            part = self._backend.read_log(self._job_id, offset=self._offset)
            self._offset = part.next_offset
            if not part.text:
                return
            yield part.text
