"""How a command ends: its exit code, and for an error one line on stderr."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable

DONE, FAILED, BAD_CONFIGURATION, INTERRUPTED = 0, 1, 2, 128
"""Exit codes. An interrupted command adds the signal's number: 130 after Ctrl-C, 143 after SIGTERM."""

INTERRUPTED_WORDS = "Interrupted; "
"""How the last line of every interrupted command begins (`pipeline.saved`)."""

SELF_EXPLANATORY = ("CertificateError", "StateError", "WorkerError")
"""Names of errors whose message suffices, besides ValueError and OSError; their modules are too heavy to import here."""


class ConfigError(ValueError):
    """A configuration that cannot be run: one line that names the key and what was expected. Exit code 2."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word that is nearest to a mistyped one, as the rest of a clause; empty if none is near."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def one_line(error: Exception) -> str:
    """The error's message without line breaks, or its type where it has none; whose file it is that may not be used."""
    if isinstance(error, PermissionError) and isinstance(error.filename, str):
        return f"{error.filename}: {error.strerror}{_owner(error.filename)}"
    return " ".join(str(error).split()) or type(error).__name__


def _owner(file: str) -> str:
    """Who owns a file, or the nearest folder above it, and how it can be shared."""
    import os
    from pathlib import Path

    for path in (Path(file), *Path(file).absolute().parents):
        try:
            user = path.stat().st_uid
        except OSError:  # not there, or not to be looked at
            continue
        try:
            owner = path.owner()
        except KeyError:  # as in a container, or where another machine knows the names
            owner = f"the user with the number {user}"
        if user == os.getuid():
            return "; it is yours, so give yourself the right to read and write it"
        return (
            f"; {path} belongs to {owner}. To share a folder of runs, let a group write to it (chmod g+ws) and let "
            "everybody use umask 002; otherwise give a folder of your own, as run.root=FOLDER or in $GAPWISE_RUNS"
        )
    return ""


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
