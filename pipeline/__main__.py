"""`python -m pipeline` in a checkout: runs the code of this checkout; everything is in `gapwise.pipeline.entry`.

A copy of the tree in which nothing is installed, such as DVC makes for each queued experiment, has `gapwise` as links in
the folder .checkout, which this process and those that it starts find before what is installed.
"""

import contextlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def find_this_checkout() -> None:
    """Make `import gapwise` find this checkout, here and in processes that start from here."""
    spec = find_spec("gapwise")
    if spec is not None and spec.origin and Path(spec.origin).resolve().is_relative_to(ROOT):
        return
    package = ROOT / ".checkout" / "gapwise"
    package.mkdir(parents=True, exist_ok=True)
    for target in (
        *(ROOT / "pipeline" / "api").glob("*.py"),
        *(ROOT / name for name in ("conf", "pipeline", "stages", "storage")),
    ):
        with contextlib.suppress(FileExistsError):  # another process makes them, too
            (package / target.name).symlink_to(target)
    sys.path.insert(0, str(package.parent))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(package.parent), os.environ.get("PYTHONPATH")]))


if __name__ == "__main__":
    find_this_checkout()
    from gapwise.pipeline.entry import leave, main

    leave(main())
