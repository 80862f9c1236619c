"""Whole runs over any number of words: seconds and memory of every stage (`measure_stages`), and what became of the path.

    python tests/benchmarks/bench_any_size.py DATA/ocr [--words 10000 100000 1000000] [--keep FOLDER] [KEY=VALUE ...]

Each size is the OCR chains of `synthetic_letters`, solved with the default solver and path (further KEY=VALUE may replace
them). Before the first size a small run compiles all kernels.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure_stages import measure_stages
from synthetic_letters import synthetic_letters

from gapwise.storage.results import read_path

SMALL = 300
"""Words of the run that compiles."""


def path_of(root: Path) -> str:
    """What became of the path of the one run below `root`, in words."""
    (path,) = root.glob("ocr-*/path.zarr")
    arrays, attrs = read_path(path, ("lambda", "effective_passes"))
    size = sum(file.stat().st_size for file in path.parent.rglob("*") if file.is_file()) / 1e9
    return (
        f"{attrs['status']} at lambda {arrays['lambda'][-1]:.3g}, {arrays['lambda'].size} breakpoints, "
        f"{np.sum(arrays['effective_passes']):.1f} passes; run directory {size:.2f} GB"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--keep", type=Path, help="folder for data and runs; data that are there are used")
    asked, options = parser.parse_known_args()
    folder = asked.keep or Path(tempfile.mkdtemp())
    try:
        for words in [SMALL, *asked.words]:
            data, root = folder / f"letters-{words}", folder / f"runs-{words}"
            if not (data / "letter.data").is_file():
                synthetic_letters(asked.data / "letter.data.gz", words, data / "letter.data")
            print(f"{words:,} words", flush=True)
            choices = [f"dataset.root={data}", f"run.root={root}", f"tracking.uri=sqlite:///{root}/mlflow.db"]
            overrides = ["dataset=ocr", "dataset.size=large", *choices, *options]
            costs = measure_stages(overrides, show=lambda text: print(text, flush=True))
            if costs[-1].ended:
                return costs[-1].ended
            print(path_of(root), flush=True)
            if words == SMALL:
                shutil.rmtree(root)
    finally:
        if asked.keep is None:
            shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
