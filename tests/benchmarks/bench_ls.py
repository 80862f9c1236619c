"""How long `gapwise ls` takes as a whole process, Python's start included, over many runs on a disk.

    python tests/benchmarks/bench_ls.py            # 200 runs, 7 times; median and range

A third of the runs is interrupted, so that logs and commits are read as well; each log has an hour's lines.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from fake_runs import LOG, fake_run  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--times", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        log = LOG + LOG.splitlines(keepends=True)[-1] * 720
        for k in range(asked.runs):
            fake_run(root, f"toy-bcfw-{k:08d}", done=None if k % 3 else ("featurize", "init_path"), log=log)
        for words in (["ls"], ["ls", "--json"], ["status"]):
            print(f"gapwise {' '.join(words):<10} {asked.runs} runs: {timed([*words, '--root', name], asked.times)}")
    print(f"load {os.getloadavg()[0]:.1f}")


def timed(words: list[str], times: int) -> str:
    """Median and range of the seconds of whole processes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "pipeline", *words], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        spent.append(time.perf_counter() - began)
    return f"{statistics.median(spent):.2f} s ({min(spent):.2f} to {max(spent):.2f})"


if __name__ == "__main__":
    main()
