"""Commands, most of them on runs: ``gapwise predict RUN …``, or ``python -m pipeline predict RUN …``; one module each.

A module of this package defines its `Command` as COMMAND and imports what is heavy inside its functions.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from gapwise.pipeline.errors import DONE, FAILED, INTERRUPTED, explains_itself, refuse

TRUST = "trust"
"""The argument by which the user allows the code that files name."""


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes
    ----------
    summary : str
        One line for the list of commands.
    arguments : callable
        Adds its arguments to an `argparse.ArgumentParser`; the parser itself refuses bad ones with exit code 2.
    run : callable
        Does the work; returns the exit code. A ValueError or OSError becomes one line on stderr and exit code 1.
    runs_own_code : bool
        Whether its words name code to run. Other commands refuse code that only files name (`user_code.only`), unless they
        have the argument `TRUST` and it is given.
    """

    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    runs_own_code: bool = False


def find_modules_here() -> None:
    """Let modules of the current folder be imported, as by ``python -m gapwise``, unless ``python -P`` forbids it.

    They come last, so that no file of that folder takes the place of an installed package.
    """
    if not sys.flags.safe_path and "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def known() -> list[str]:
    """Names of all commands; imports none of them."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def command(name: str) -> Command:
    """The command called `name`."""
    loaded: Command = import_module(f"{__name__}.{name}").COMMAND
    return loaded


def is_command(words: Sequence[str]) -> bool:
    """Whether a command line names a command, and no configuration of a run."""
    return bool(words) and words[0] in known()


def is_stray(words: Sequence[str]) -> bool:
    """Whether a command line begins with a word that is neither a command nor part of a configuration."""
    return bool(words) and not is_command(words) and "=" not in words[0] and words[0][:1] not in ("-", "+", "~", "")


def carry_out(words: Sequence[str]) -> int:
    """Do what `words` say, the first of which names a command; returns the exit code."""
    from gapwise.stages.problems.user_code import only

    name, *rest = words
    asked = command(name)
    parser = argparse.ArgumentParser(prog=f"gapwise {name}", description=asked.summary, allow_abbrev=False)
    asked.arguments(parser)
    try:
        given = parser.parse_args(rest)
        trusts = asked.runs_own_code or vars(given).get(TRUST, False)
        with only(None if trusts else (), everywhere=True):
            code = asked.run(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever reads, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED + 2
    except Exception as error:
        if explains_itself(error):
            return refuse(error, FAILED, f"{name}: ")
        raise
