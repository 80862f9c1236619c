"""``gapwise completion bash``: a script for the shell that completes commands, their options, names of runs and choices.

The shell asks `gapwise` itself at every tab, through argcomplete. Values of `python -m pipeline` are completed by Hydra's
own script, which the script names.
"""

from __future__ import annotations

import argparse
import os

from gapwise.pipeline.cli import Command, command, known

HEAD = """\
# Completion of gapwise. Use: eval "$(gapwise completion {shell})" in the start-up file of {shell}.
# Every key of a configuration, after python -m pipeline: eval "$(python -m pipeline --shell-completion install={shell})"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(asked: argparse.Namespace) -> int:
    from argcomplete import shellcode

    print(HEAD.format(shell=asked.shell) + shellcode(["gapwise"], shell=asked.shell))
    return 0


def complete() -> None:
    """Answer the shell that waits for completions of its COMP_LINE, and end the process."""
    from argcomplete import autocomplete

    words = os.environ.get("COMP_LINE", "").split()[1:]
    autocomplete(typed_so_far(words), always_complete_options=False, exit_method=os._exit)


def typed_so_far(words: list[str]) -> argparse.ArgumentParser:
    """The parser of the command that `words` begin with; before there is one, commands and choices of groups."""
    parser = argparse.ArgumentParser(prog="gapwise", add_help=False)
    if words and words[0] in known():
        parser.add_argument("command", choices=known())
        command(words[0]).arguments(parser)
    else:
        first = parser.add_argument("word", nargs="*")
        first.completer = _first_words  # type: ignore[attr-defined]
    return parser


def _first_words(prefix: str, **_: object) -> list[str]:
    from gapwise.pipeline.help import words

    return [*known(), *(f"{group}={name}" for group, names in words().items() for name in names)]


COMMAND = Command("Prints a script for tab completion in bash, zsh or fish.", arguments, run)
