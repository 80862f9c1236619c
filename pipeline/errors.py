"""How a command ends: its exit code, and for an error one line on stderr."""

from __future__ import annotations

import sys

DONE, FAILED, BAD_CONFIGURATION, INTERRUPTED = 0, 1, 2, 128
"""Exit codes. An interrupted command adds the signal's number: 130 after Ctrl-C, 143 after SIGTERM."""

SELF_EXPLANATORY = ("CertificateError", "StateError", "WorkersDiedError")
"""Names of errors whose message suffices, besides ValueError and OSError; their modules are too heavy to import here."""


class ConfigError(ValueError):
    """A configuration that cannot be run: one line that names the key and what was expected. Exit code 2."""


def one_line(error: Exception) -> str:
    """The error's message without line breaks, or its type where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def refuse(error: Exception, code: int, where: str = "") -> int:
    """Print `error` in one line, after `where`; returns `code`."""
    print(f"error: {where}{one_line(error)}", file=sys.stderr)
    return code


def refuse_setup(error: Exception) -> int:
    """Print an error from before the first stage; returns 2 if the configuration is wrong, 1 if data or files are."""
    from gapwise.stages.datasets import DataError

    return refuse(error, FAILED if isinstance(error, DataError | OSError) else BAD_CONFIGURATION)


def explains_itself(error: Exception) -> bool:
    """Whether the message of `error` suffices; for other errors the user gets the traceback."""
    return isinstance(error, ValueError | OSError) or type(error).__name__ in SELF_EXPLANATORY
