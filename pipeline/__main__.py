"""Entry point: `python -m pipeline +experiment=regpath_horseseg`, or `gapwise`; `--help` explains the command line.

A first word that names a command of `pipeline.cli` is carried out there; anything else configures a run.
"""

from __future__ import annotations

import atexit
import os
import sys

from pipeline.cli import carry_out, is_command, is_stray, known
from pipeline.errors import BAD_CONFIGURATION, INTERRUPTED
from pipeline.help import asks_for_help, text


def main() -> int:
    """Exit code: 0 done, 1 failed, 2 bad configuration, 130 or 143 interrupted; of a multirun the largest."""
    if asks_for_help(sys.argv[1:]) and not is_command(sys.argv[1:]):
        print(text(), end="")
        return 0
    if sys.argv[1:] == ["--version"]:
        from importlib.metadata import version

        print(f"gapwise {version('gapwise')}")
        return 0
    if is_stray(sys.argv[1:]):
        print(
            f"error: {sys.argv[1]}: no such command; there are {', '.join(known())}. A run is configured by KEY=VALUE; "
            "--help lists keys and commands",
            file=sys.stderr,
        )
        return BAD_CONFIGURATION
    from pipeline.compute.local import pin_threads

    pin_threads()  # before numpy is loaded
    if "DVC_STAGE" in os.environ or os.environ.get("GAPWISE_KERNELS"):
        os.environ.setdefault("NUMBA_CACHE_LOCATOR_CLASSES", "pipeline.compute.kernel_cache.ByContent")
    if is_command(sys.argv[1:]):
        return carry_out(sys.argv[1:])
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


def script() -> None:
    """The console script `gapwise`; without a word it says what it can do, and starts no run."""
    if len(sys.argv) == 1:
        sys.argv.append("--help")
    leave(main())


if __name__ == "__main__":
    leave(main())
