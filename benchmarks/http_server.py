"""The HTTP server with a watch on its event loop, as a process: `python -m benchmarks.http_server`.

With --idle an app that offers nothing, in the same loop and server: what the machine alone does to
an event loop. The first line of standard output is the URL.
"""

import argparse
import asyncio
import sys
from dataclasses import replace

from starlette.applications import Starlette

from benchmarks.loop_lag import Monitored
from stash_mcp.server.http import open_server, serve_app
from stash_mcp.server.leaving import leave_on_signals
from stash_mcp.server.listening import HttpOptions, listen
from stash_mcp.server.logs import log_plainly
from stash_mcp.settings import http_token, load_settings

_OPTIONS = HttpOptions(port=0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--idle", action="store_true")
    leave_on_signals()
    log_plainly()
    if parser.parse_args().idle:
        listener = listen(_OPTIONS)
        _say(_OPTIONS.url(listener.getsockname()[1]))
        asyncio.run(serve_app(Monitored(Starlette()), listener, _OPTIONS))
    server = open_server(load_settings(), _OPTIONS, http_token())
    _say(server.url)
    replace(server, app=Monitored(server.app)).run()


def _say(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
