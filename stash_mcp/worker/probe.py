"""`python -m stash_mcp.worker.probe`: what the doctor asks of the heavy libraries.

Answers in lines that begin with the doctor's mark, since libraries print others. It may be ended
at any time.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from stash_mcp.doctor.probing import MARK
from stash_mcp.errors import EmptyReplyError, StashSkillsError
from stash_mcp.models import Message
from stash_mcp.redaction import redact
from stash_mcp.settings import secret_values

_QUESTION = (Message(role="user", content="Answer with the one word: yes"),)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m stash_mcp.worker.probe")
    what = parser.add_subparsers(dest="what", required=True)
    what.add_parser("gpu")
    models = what.add_parser("models")
    models.add_argument("names", nargs="+")
    models.add_argument("--seconds", type=float, required=True)
    models.add_argument("--api-base")
    given = parser.parse_args(arguments)
    if given.what == "gpu":
        _say(_device())
    else:
        asyncio.run(_ask_all(given.names, given.api_base, given.seconds))
    return 0


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()


def _device() -> dict[str, str]:
    # Imported where it is used: each question loads a library of its own, for seconds.
    import torch

    from stash_mcp.reward.device import best_device

    device = best_device()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return {"kind": device.type, "name": name, "torch": str(torch.__version__)}


async def _ask_all(names: Sequence[str], api_base: str | None, seconds: float) -> None:
    await asyncio.gather(*(_ask(name, api_base, seconds) for name in names))


async def _ask(name: str, api_base: str | None, seconds: float) -> None:
    started = time.monotonic()
    said: dict[str, str] = {}
    try:
        # It is reached; a tiny question may well get an empty answer.
        with contextlib.suppress(EmptyReplyError):
            await _reply(name, api_base, seconds)
    except StashSkillsError as error:
        secrets = secret_values()
        said = {"problem": redact(error.problem, secrets), "fix": redact(error.fix, secrets)}
    _say({"model": name, "seconds": time.monotonic() - started, **said})


async def _reply(name: str, api_base: str | None, seconds: float) -> None:
    from stash_mcp.optimization.model import RetryPolicy
    from stash_mcp.optimization.opening import open_model

    model = open_model(name, api_base, timeout=seconds, retry=RetryPolicy(attempts=1))
    await model.ask(_QUESTION)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
