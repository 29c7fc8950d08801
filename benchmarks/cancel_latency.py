"""From `cancel` to the end of the worker's process, at random moments of runs on a slow model.

The workers are forked from a process that has loaded the libraries; see `interrupted_runs`.
"""

import multiprocessing
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.benchmark import Benchmark, Row
from benchmarks.interrupted_runs import Home, preference_pairs, script
from benchmarks.scripted_model import scripted_model
from stash_mcp.demo.embedded import minilm_folder
from stash_mcp.reward.train import train

TARGET_SECONDS = 2.0
_DELAY_SECONDS = 1.5
_LONGEST_BEFORE_CANCEL_SECONDS = 6.0
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Size:
    cancels: int


def run(size: Size) -> list[Row]:
    latencies = _latencies(size.cancels)
    return [
        Row(
            f"from cancel to the worker's end, median (target: under {TARGET_SECONDS:.0f} s)",
            f"{median(latencies):.2f} s",
            "-",
            n=len(latencies),
        ),
        Row("the same, the slowest", f"{max(latencies):.2f} s", "-", n=len(latencies)),
    ]


def _latencies(cancels: int) -> list[float]:
    draw = random.Random(0)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.preloaded"])
    latencies = []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        scripted_model(script, _DELAY_SECONDS) as traffic,
    ):
        checkpoint = Path(folder, "checkpoint")
        pairs = preference_pairs()
        train(pairs, base_model=str(minilm_folder()), output_dir=checkpoint, learning_rate=0.01)
        for number in range(cancels):
            home = Home(Path(folder, str(number)), checkpoint, traffic, seed=number)
            worker = home.work(context)
            worker.join(draw.uniform(0.5, _LONGEST_BEFORE_CANCEL_SECONDS))
            began = time.monotonic()
            home.backend.cancel(home.run_id)
            worker.join(_PATIENCE_SECONDS)
            latencies.append(time.monotonic() - began)
    return latencies


BENCHMARK = Benchmark(run, smallest=Size(1), quick=Size(5), full=Size(50))
