"""Entry point: `gapwise +experiment=regpath_horseseg`; `--help` explains the command line.

A first word that names a command of `gapwise.pipeline.cli` is carried out there; anything else configures a run.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading

from gapwise import parts
from gapwise.pipeline.config.removed import check_parts
from gapwise.pipeline.errors import BAD_CONFIGURATION, FAILED, INTERRUPTED, ConfigError, did_you_mean, refuse


def main() -> int:
    """Exit code: 0 done, 1 failed, 2 bad configuration, 130 or 143 interrupted; of a multirun the largest.

    A character that the terminal's encoding lacks is printed as an escape.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a program that calls this may have replaced it
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.argv[1:] = parts.use(sys.argv[1:])
        if (own := parts.folder()) is not None:
            check_parts(own)
    except (NotADirectoryError, ConfigError) as error:
        return refuse(error, BAD_CONFIGURATION)
    from gapwise.pipeline import cli  # looks for parts
    from gapwise.pipeline.help import asks_for_help, help_on

    if asks_for_help(sys.argv[1:]) and not cli.is_command(sys.argv[1:]):
        return help_on(sys.argv[1:])
    if sys.argv[1:] == ["--version"]:
        import gapwise

        print(f"gapwise {gapwise.__version__}")
        return 0
    if cli.is_stray(sys.argv[1:]):
        from gapwise.pipeline.config.removed import hint

        if says := hint(sys.argv[1]):
            print(f"error: {says}", file=sys.stderr)
            return BAD_CONFIGURATION
        near = did_you_mean(sys.argv[1], [*cli.known(), "--help"])
        print(
            f"error: {sys.argv[1]}: no such command{near}; there are {', '.join(cli.known())}. "
            "A run is configured by KEY=VALUE; --help lists keys and commands",
            file=sys.stderr,
        )
        return BAD_CONFIGURATION
    from gapwise.pipeline.compute.local import pin_threads

    pin_threads()  # before numpy is loaded
    if cli.is_command(sys.argv[1:]):
        return cli.carry_out(sys.argv[1:])
    cli.find_modules_here()  # whoever configures a run may name their own
    from gapwise.pipeline.command import compose_and_run

    return compose_and_run()


def leave(code: int) -> None:
    """End the process at once, because Python would first take compiled code apart, for a second.

    Threads that Python waits for are waited for, except after an interrupt. Output that cannot be written, unless nobody
    reads it any more, makes 0 a 1.
    """
    if code <= INTERRUPTED:
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            pass
        except OSError as error:
            code = code or FAILED
            os.write(2, f"error: the output cannot be written: {error}\n".encode())
    os._exit(code)


def script() -> None:
    """The console script `gapwise`; without a word it says what it can do, and starts no run."""
    if len(sys.argv) == 1:
        sys.argv.append("--help")
    leave(main())
