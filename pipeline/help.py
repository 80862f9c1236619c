"""`gapwise --help`: groups, their choices and the keys changed most, with the comments in conf/ as explanation.

The files are read as text, without loading Hydra, so that the answer comes at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gapwise.pipeline.cli import command, known
from gapwise.pipeline.config import CONF, choices

INTRO = """\
usage: gapwise [+experiment=NAME] [GROUP=CHOICE ...] [KEY=VALUE ...]     (or python -m gapwise)
       gapwise -m KEY=VALUE,VALUE ...     one run for each combination
       gapwise COMMAND ...                a command on runs that exist; gapwise COMMAND --help

Solves a structured SVM along its regularization path, verifies every certificate, measures losses and draws figures.
The same command again resumes an interrupted run, or shows the result of a complete one. Printed last: the run's directory.
"""
OUTRO = f"""\
Each key is explained where it is set: {CONF}/config.yaml and {CONF}/GROUP/CHOICE.yaml;
those of every bcfw and bcpfw preset in solver/bcfw.yaml, those of every path in path/regpath.yaml.
--cfg job prints the values that a command would run with; --hydra-help lists Hydra's own options.
"""
GROUPS = ("dataset", "solver", "path", "compute", "tracking", "experiment")
KEYS = {
    "dataset/ocr.yaml": ("root",),
    "solver/bcfw.yaml": ("refresh_every", "batch_size", "max_passes", "max_oracle_calls", "max_seconds"),
    "path/regpath.yaml": ("rule", "eps", "lambda_min", "lambdas", "lambda", "tolerance", "relative", "warm_start"),
    "compute/threads.yaml": ("workers",),
    "config.yaml": (
        *("seed", "dataset.validation", "checkpoint.every_seconds", "run.root", "run.stage", "run.until"),
        *("parts", "sweep.workers", "sweep.cv"),
    ),
}
"""File in conf/ to the keys in it that are shown."""


def asks_for_help(words: list[str]) -> bool:
    """Whether a command line asks for this text."""
    return "--help" in words or "-h" in words


def text() -> str:
    """The whole text."""
    chosen = dict(re.findall(r"^  - (\w+): (\w+)$", (CONF / "config.yaml").read_text(encoding="utf-8"), re.MULTILINE))
    out = [INTRO]
    for word, files in words().items():
        group = word.removeprefix("+")
        out.append(f"{word}=")
        for name, file in files.items():
            out.append(f"  {'*' if chosen.get(group) == name else ' '} {name:<21} {summary(file)}")
    out.append("\n* the default\n\nKeys changed most, with their defaults:")
    for name, keys in KEYS.items():
        group = f"{name.rsplit('/', 1)[0]}." if "/" in name else ""
        explained = {key: (value, comment) for key, value, comment in comments(CONF / name)}
        for key in keys:
            value, comment = explained[key]
            out.append(f"  {f'{group}{key}={value}':<48} {comment}")
    if names := known():
        out.append("\nCommands (gapwise COMMAND --help explains one):")
        out += [f"  {name:<10} {command(name).summary}" for name in names]
    return "\n".join([*out, "", OUTRO])


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
