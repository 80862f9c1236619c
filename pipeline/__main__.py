"""`python -m pipeline` in a checkout: runs the code of this checkout; everything is in `gapwise.pipeline.entry`.

The folder .src has the packages under their own names, as links. This process and those that it starts find it before what
is installed, because DVC queues experiments in copies of the tree in which nothing is installed.
"""

import os
import sys
from pathlib import Path

SOURCES = str(Path(__file__).resolve().parents[1] / ".src")

if __name__ == "__main__":
    sys.path.insert(0, SOURCES)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SOURCES, os.environ.get("PYTHONPATH")]))
    from gapwise.pipeline.entry import leave, main

    leave(main())
