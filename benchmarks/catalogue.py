"""The benchmarks by name. Each is imported only when it runs: some load heavy libraries."""

import importlib

from benchmarks.benchmark import Benchmark, Effort, Row
from stash_mcp.errors import MissingExtraError

NAMES = (
    "server_start",
    "server_stop",
    "import_throughput",
    "library_hammer",
    "http_calls",
    "skill_scan",
    "skill_replace",
    "install_latency",
    "exactly_once",
    "batch_concurrency",
    "run_wall_time",
    "in_sample_gain",
    "interrupted_runs",
    "cancel_latency",
    "reward_scoring",
    "reward_training",
)
_OURS = ("benchmarks", "stash_mcp")


def rows_of(name: str, effort: Effort) -> list[Row]:
    """The rows of one benchmark, or one that says which part of the installation it lacks."""
    try:
        benchmark: Benchmark[object] = importlib.import_module(f"benchmarks.{name}").BENCHMARK
        return benchmark.rows(effort)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(_OURS):
            raise
        return [Row(f"skipped: {error.name} is not installed (the extra `local` has it)")]
    except MissingExtraError as error:
        return [Row(f"skipped: {error}")]
