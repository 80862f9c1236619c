"""`gapwise --help [GROUP|CHOICE|COMMAND]`: groups, choices and keys, with the comments in conf/ as explanation.

The files are read as text, without loading Hydra, so that the answer comes at once.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from gapwise.pipeline.cli import carry_out, command, known
from gapwise.pipeline.config import CONF, choices
from gapwise.pipeline.errors import BAD_CONFIGURATION, DONE, did_you_mean

INTRO = """\
usage: gapwise [+experiment=NAME] [GROUP=CHOICE ...] [KEY=VALUE ...]     (or python -m gapwise)
       gapwise -m KEY=VALUE,VALUE ...     one run for each combination
       gapwise COMMAND ...                a command on runs that exist
       gapwise --help GROUP|CHOICE|COMMAND    explains all choices of a group, one of them with its keys, or a command

Solves a structured SVM along its regularization path, verifies every certificate, measures losses and draws figures.
The same command again resumes an interrupted run, or shows the result of a complete one. Printed last: the run's directory.
"""
OUTRO = """\
--cfg job prints the values that a command would run with; --hydra-help lists Hydra's own options.
"""
GROUPS = ("dataset", "solver", "path", "compute", "tracking", "experiment")
EXPLAINED = ("dataset", "path", "compute", "tracking")
"""Groups whose choices the first page explains; of the others it has the names."""
KEYS = {
    "solver/bcfw.yaml": ("refresh_every", "max_passes", "max_seconds"),
    "path/regpath.yaml": ("rule", "eps", "lambda_min", "lambdas", "lambda", "tolerance"),
    "compute/threads.yaml": ("workers",),
    "config.yaml": (
        *("seed", "dataset.validation", "checkpoint.every_seconds", "run.root", "run.until"),
        *("parts", "sweep.workers", "sweep.cv"),
    ),
}
"""File in conf/ to the keys in it that the first page shows."""
WIDTH = 118


def asks_for_help(words: list[str]) -> bool:
    """Whether a command line asks for one of these texts."""
    return "--help" in words or "-h" in words


def help_on(line: list[str]) -> int:
    """Print what a command line with ``--help`` asks about; returns the exit code."""
    topics = [word.removeprefix("+") for word in line if "=" not in word.rstrip("=") and word not in ("--help", "-h")]
    topic = next((word.rstrip("=") for word in topics if not word.startswith("-")), None)
    if topic in known():
        return carry_out([topic, "--help"])
    if topic is None or topic in GROUPS:
        print(text() if topic is None else group_text(topic), end="")
        return DONE
    chosen = [(group, files[topic]) for group, files in words().items() if topic in files]
    if chosen:
        print("\n".join(choice_text(group, file) for group, file in chosen), end="")
        return DONE
    near = did_you_mean(topic, [*GROUPS, *known(), *(name for files in words().values() for name in files)])
    there = f"groups: {', '.join(GROUPS)}; commands: {', '.join(known())}"
    print(f"error: --help {topic}: no such group, choice or command{near}; {there}", file=sys.stderr)
    return BAD_CONFIGURATION


def text() -> str:
    """The first page: what there is, in fewer than 100 lines."""
    out = [INTRO]
    for word, files in words().items():
        group = word.removeprefix("+")
        if group in EXPLAINED:
            out += [f"{word}=", *_choices(group, files)]
            continue
        out.append(f"{word}=        {len(files)} choices; --help {group} explains them")
        out.append(textwrap.fill(", ".join(files), WIDTH, initial_indent="    ", subsequent_indent="    "))
    out.append(f"\n* the default (of solver: {_default('solver')})\n\nKeys changed most, with their defaults:")
    for name, keys in KEYS.items():
        group = f"{name.rsplit('/', 1)[0]}." if "/" in name else ""
        explained = {key: (value, comment) for key, value, comment in comments(CONF / name)}
        for key in keys:
            value, comment = explained[key]
            out.append(f"  {f'{group}{key}={value}':<38} {comment}")
    if names := known():
        out.append("\nCommands:")
        out += [f"  {name:<10} {command(name).summary}" for name in names]
    return "\n".join([*out, "", OUTRO])


def group_text(group: str) -> str:
    """Every choice of a group with its first sentence, and every key that its files explain."""
    files = words()[f"{'+' if group == 'experiment' else ''}{group}"]
    out = [f"{'+' if group == 'experiment' else ''}{group}=", *_choices(group, files)]
    if _default(group):
        out.append("\n* the default")
    if group != "experiment":
        out.append("\nKeys, with the values that their choice sets:")
        shown: set[tuple[str, str, str]] = set()
        for name, file in files.items():
            new = [row for row in comments(file) if row not in shown]
            shown |= {*new}
            if new:
                out.append(f" {group}={name}")
            out += _explained(group, new)
    return "\n".join([*out, "", f"Files: {CONF / group}\n"])


def choice_text(word: str, file: Path) -> str:
    """A choice of the group that is called `word` on the command line, with every key that its file explains."""
    rows = [] if word.startswith("+") else [*comments(file)]
    return "\n".join([f"{word}={file.stem}", f"  {summary(file)}", *_explained(word, rows), "", f"File: {file}\n"])


def _explained(group: str, rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """One line a key; a file with "@package _global_" writes the group, too."""
    words = ((f"{group}.{key.removeprefix(f'{group}.')}={value}", comment) for key, value, comment in rows)
    return [f"  {word:<38} {comment}" for word, comment in words]


def _choices(group: str, files: dict[str, Path]) -> list[str]:
    """One line a choice, the default marked."""
    default, width = _default(group), max(map(len, files))
    return [f"  {'*' if name == default else ' '} {name:<{width}}  {summary(file)}" for name, file in files.items()]


def _default(group: str) -> str | None:
    """The choice of `group` that conf/config.yaml makes."""
    choice = re.search(rf"^  - {group}: (\w+)$", (CONF / "config.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    return choice and choice[1]


def words() -> dict[str, dict[str, Path]]:
    """The YAML of every choice of every group, by the group's name on the command line."""
    return {f"{'+' if group == 'experiment' else ''}{group}": choices(group) for group in GROUPS}


def summary(file: Path) -> str:
    """The first sentence of the comment that heads a YAML file."""
    lines = file.read_text(encoding="utf-8").splitlines()
    head = []
    for line in lines[lines[0].startswith("# @package") :]:
        if not line.startswith("# "):
            break
        head.append(line[2:])
    return re.split(r"(?<!Alg)(?<!Fig)(?<!App)(?<!\bal)[.] ", " ".join(head))[0].removesuffix(".")


def comments(file: Path) -> Iterator[tuple[str, str, str]]:
    """(dotted key, value, comment) of every key of a YAML file that has a comment behind it."""
    path: list[tuple[int, str]] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"( *)(\w+):(?: ([^#]*))?(?:# (.*))?", line):
            indent, key, value, comment = match.groups()
            path = [*(part for part in path if part[0] < len(indent)), (len(indent), key)]
            if comment:
                yield ".".join(name for _, name in path), (value or "").strip(), comment
