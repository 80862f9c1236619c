"""Entry point: `python -m pipeline +experiment=regpath_horseseg`; `--help` explains the command line."""

from __future__ import annotations

import atexit
import os
import sys

from pipeline.errors import INTERRUPTED
from pipeline.help import asks_for_help, text


def main() -> int:
    """Exit code: 0 done, 1 failed, 2 bad configuration, 130 or 143 interrupted; of a multirun the largest."""
    if asks_for_help(sys.argv[1:]):
        print(text(), end="")
        return 0
    from pipeline.compute.local import pin_threads

    pin_threads()  # before numpy is loaded
    if "DVC_STAGE" in os.environ or os.environ.get("GAPWISE_KERNELS"):
        os.environ.setdefault("NUMBA_CACHE_LOCATOR_CLASSES", "pipeline.compute.kernel_cache.ByContent")
    from pipeline.command import compose_and_run

    return compose_and_run()


def leave(code: int) -> None:
    """End the process; when interrupted at once, because Python would first take compiled code apart for a second."""
    if code > INTERRUPTED:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    leave(main())
