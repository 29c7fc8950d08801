"""The embedded task model's server process, given its model's file, threads and `reuse`.

Says `ready <address>` as its first line when it answers, and goes at the end of its standard
input, so that it never outlives the process that started it.
"""

import os
import sys

import xllamacpp

from stash_mcp.demo.embedded import MODEL_NAME, READY

_CONTEXT_TOKENS = 4096
_REPLY_TOKENS = 64
_QUIET = -1


def main(gguf: str, threads: str, *options: str) -> None:
    server = xllamacpp.Server(_params(gguf, int(threads), "reuse" in options))
    sys.stdout.write(f"{READY}{server.listening_address}\n")
    sys.stdout.flush()
    # Nobody reads our output from here on; what the library may write must not fill the pipe.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdin.buffer.read()
    # Past the library's threads, which may be busy with a reply that nobody waits for.
    os._exit(0)


def _params(gguf: str, threads: int, reuse_prefix: bool) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = gguf
    params.model_alias = {MODEL_NAME}
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.cache_prompt = reuse_prefix
    # Kept states of older prompts would take up to 8 GiB, and make replies depend on more.
    params.cache_ram_mib = 0
    # One slot: on two cores several gain nothing, and make greedy replies depend on each other.
    params.n_parallel = 1
    params.n_ctx = _CONTEXT_TOKENS
    params.n_predict = _REPLY_TOKENS
    params.sampling.temp = 0.0
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.verbosity = _QUIET
    return params


if __name__ == "__main__":
    main(*sys.argv[1:])
