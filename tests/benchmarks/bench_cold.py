"""What a first use costs: `python tests/benchmarks/bench_cold.py [--times 3] [--command]`.

CPU seconds of whole processes, as multiples of `import sklearn.svm, numba`: the least of `--times` for each. *Cold* begins
with an empty folder of kernels, *warm* with the folder that the cold fit has left; both import the estimator and fit a toy,
of 60 rows in three classes or of 40 sentences. ``--command`` also runs README's first command with an empty folder and
tells how many of its seconds went into compiling, as its summary says.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

REFERENCE = "import sklearn.svm, numba"

FITS = {
    "MulticlassSVM": """
import gapwise, numpy as np
X = np.random.default_rng(0).normal(size=(60, 4))
gapwise.MulticlassSVM().fit(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0))
""",
    "ChainSVM": """
import gapwise
from pathlib import Path
text = Path(".github/docs/text/train.txt").read_text().split("\\n\\n")[:40]
sentences = [[line.split() for line in lines.splitlines()] for lines in text]
X = [[{"word": word} for word, _ in sentence] for sentence in sentences]
gapwise.ChainSVM().fit(X, [[label for _, label in sentence] for sentence in sentences])
""",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--command", action="store_true")
    asked = parser.parse_args()
    unit = min(cpu(REFERENCE, "") for _ in range(asked.times))
    print(f"{REFERENCE:<28} {unit:6.2f} s")
    for name, code in FITS.items():
        pairs = []
        for _ in range(asked.times):
            with tempfile.TemporaryDirectory() as kernels:
                pairs.append((cpu(code, kernels), cpu(code, kernels)))
        for kind, spent in zip(("cold", "warm"), map(min, zip(*pairs, strict=True)), strict=True):
            print(f"{name + ', ' + kind:<28} {spent:6.2f} s, {spent / unit:5.2f} times that")
    if asked.command:
        print(f"{'the first command':<28} compiling {compiling()} s by the clock")
    print(f"load {os.getloadavg()[0]:.1f}")


def cpu(code: str, kernels: str) -> float:
    """CPU seconds of a process that runs `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run([sys.executable, "-W", "ignore", "-c", code], kernels)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compiling() -> str:
    """Seconds of compiling in the summary of README's first command."""
    with tempfile.TemporaryDirectory() as name:
        places = [f"run.root={name}/runs", "tracking=none"]
        said = run([sys.executable, "-m", "pipeline", "+experiment=regpath_horseseg", *places], f"{name}/kernels")
    found = re.search(r"compiling (\S+) of it", said)
    return found.group(1) if found else "under 1"


def run(command: list[str], kernels: str) -> str:
    """What a process in the folder of the clone prints."""
    environment = {**os.environ, "GAPWISE_KERNELS": kernels}
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
