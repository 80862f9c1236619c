"""What the hidden first cell of a page that runs commands imports: a folder of its own, and `%%bash` with whole output."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from IPython import get_ipython

CLONE = Path(__file__).resolve().parents[2]


def workspace(*linked: str) -> None:
    """Go to a new folder in which the named parts of the clone are visible."""
    os.chdir(tempfile.mkdtemp())
    os.environ.pop("GAPWISE_RUNS", None)  # pages say where runs lie without it
    for name in linked:
        os.symlink(CLONE / name, Path(name).name)
    get_ipython().register_magic_function(bash, "cell")


def bash(_line: str, cell: str) -> None:
    """Run a cell by bash; each of its two streams is shown in one piece, and a failure ends the page."""
    done = subprocess.run(["bash", "-ec", cell], capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    done.check_returncode()
