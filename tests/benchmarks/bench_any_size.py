"""A run over any number of blocks, stage by stage: seconds, CPU seconds and memory of each, as processes of their own.

    python tests/benchmarks/bench_any_size.py DATA/ocr [--words 10000 100000 1000000] [--keep FOLDER] [KEY=VALUE ...]

Each size is the OCR chains of `synthetic_letters`. The commands are those that a person would give, with the default solver
and path (further KEY=VALUE may replace them): each stage by itself without MLflow, then `python -m pipeline` with MLflow,
which finishes the run, then the same again, which answers from the finished run. Before the first size a small run
compiles all kernels. Memory is the largest resident set of the process, which includes pages of memory-mapped files; *own*
is the largest part of it that belongs to no file, looked at every 20 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from synthetic_letters import synthetic_letters

STAGES = ("featurize", "init_path", "solve", "verify", "evaluate", "report")
CLONE = Path(__file__).resolve().parents[2]


def command(arguments: list[str], *, clone: Path = CLONE) -> dict[str, float]:
    """Seconds, CPU seconds, and GB of memory of one command; RuntimeError with its output if it fails."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline", *arguments],
            cwd=clone, env={**os.environ, "PYTHONPATH": str(clone)}, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        own, status, usage = 0, 0, None
        while usage is None:
            with contextlib.suppress(OSError, StopIteration):
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
                own = max(own, int(next(line for line in lines if line.startswith("RssAnon")).split()[1]))
            pid, status, found = os.wait4(process.pid, os.WNOHANG)
            if pid:
                usage = found
            else:
                time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if process.returncode:
            raise RuntimeError(f"{arguments}: exit code {process.returncode}\n{output.read().decode()}")
    return {
        "seconds": time.perf_counter() - began,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss * 1024 / 1e9,
        "own": own * 1024 / 1e9,
    }


def path_of(root: Path) -> str:
    """What became of the path of the one run below `root`, in words."""
    from storage.results import read_path

    (found,) = root.glob("ocr-*/path.zarr")
    arrays, attrs = read_path(found, ("lambda", "effective_passes"))
    size = sum(file.stat().st_size for file in found.parent.rglob("*") if file.is_file()) / 1e9
    return (
        f"{attrs['status']} at lambda {arrays['lambda'][-1]:.3g}, {arrays['lambda'].size} breakpoints, "
        f"{np.sum(arrays['effective_passes']):.1f} passes; run directory {size:.2f} GB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument(
        "--keep", type=Path, help="folder for data and runs, which stay there; data that are there are used"
    )
    parser.add_argument("--clone", type=Path, default=CLONE, help="the checkout to measure")
    parser.add_argument("--stages", nargs="+", default=[*STAGES, "all", "again"])
    asked, options = parser.parse_known_args()
    folder = asked.keep or Path(tempfile.mkdtemp())
    try:
        for words in [300, *asked.words]:
            data, root = folder / f"letters-{words}", folder / f"runs-{words}"
            if not (data / "ocr_letters.npz").is_file():
                synthetic_letters(asked.data / "ocr_letters.npz", words, data / "ocr_letters.npz")
            common = ["dataset=ocr", f"dataset.root={data}", "dataset.size=large", f"run.root={root}", *options]
            for stage in asked.stages:
                one = ["tracking=none", f"run.stage={stage}"]
                if stage in ("all", "again"):
                    one = ["tracking=mlflow", f"tracking.uri=sqlite:///{root}/mlflow.db"]
                found = command([*common, *one], clone=asked.clone)
                numbers = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
                load = os.getloadavg()[0]
                print(f"{words:>9,} words  {stage:10} {numbers}  (load {load:.1f})", flush=True)
                if stage == "solve":
                    print(f"{'':24} {path_of(root)}", flush=True)
            if words == 300:
                shutil.rmtree(root)
    finally:
        if asked.keep is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
