"""``gapwise check my_module:Poses``: tries a structure of one's own before a run rests on it.

The words after the name are the class's arguments, ``root=data n=5``. A name without a colon is a data set's, and the
words its options: ``gapwise check ranking file=train.txt test_file=test.txt``. Exit codes: 0 nothing wrong, 1 something
is, 2 there is nothing to try.
"""

from __future__ import annotations

import argparse
import re
import shlex
from typing import TYPE_CHECKING, Any

from gapwise.pipeline.cli import Command, find_modules_here
from gapwise.pipeline.errors import BAD_CONFIGURATION, DONE, FAILED, refuse
from gapwise.records import Record

if TYPE_CHECKING:
    from gapwise.pipeline.structure_check import Report


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="MODULE:CLASS", help="an oracle in Python or a structure; or the name of a data set"
    )
    parser.add_argument(
        "options", nargs="*", metavar="KEY=VALUE", help="arguments of the class, or options of the data set"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="about the longest time of each trial (10)")
    parser.add_argument("--workers", type=int, help="workers to advise on (the cores of this machine)")
    parser.add_argument("--json", action="store_true", help="one object")


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.config.run_options import default_workers
    from gapwise.pipeline.overview.tables import as_json
    from gapwise.pipeline.structure_check import check

    find_modules_here()
    workers = asked.workers or default_workers()
    try:
        name, options, words = dataset_of(asked.name, asked.options)
        report = check(name, options, asked.seconds)
    except (ValueError, OSError) as error:
        return refuse(error, BAD_CONFIGURATION, "check: ")
    print(as_json(report.facts(workers)) if asked.json else "\n".join(lines(report, workers, words)))
    return DONE if report.ok else FAILED


def dataset_of(name: str, words: list[str]) -> tuple[str, Record, list[str]]:
    """The reader and its options for MODULE:CLASS or a data set's name and KEY=VALUE words, and the words of a run's command
    that say the same; ValueError names a bad one."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from gapwise.pipeline.config.settings import dataset_options, dataset_yaml
    from gapwise.stages.problems.user_code import user_object

    strange = [word for word in words if not re.match(r"[\w.]+=", word)]
    if strange:
        raise ValueError(f"{strange[0]}: expected KEY=VALUE, as in n_train=100")
    try:
        given = OmegaConf.from_dotlist(words)
        if ":" in name:
            made = user_object(name)
            compiled = isinstance(made, type) and issubclass(made, tuple)
            reader, key = ("python_structure", "module") if compiled else ("python_oracle", "oracle")
            own = [
                f"dataset={reader}",
                f"dataset.{key}={name}",
                *(_quoted(f"+dataset.arguments.{word}") for word in words),
            ]
            return reader, {"name": reader, key: name, "arguments": OmegaConf.to_container(given, resolve=True)}, own
        file = dataset_yaml(name)
        defaults: Any = OmegaConf.load(file) if file else OmegaConf.create({"name": name})
        merged: Any = OmegaConf.merge(defaults, given)
        return name, dataset_options(merged), [f"dataset={name}", *(_quoted(f"dataset.{word}") for word in words)]
    except OmegaConfBaseException as error:
        raise ValueError(str(error).splitlines()[0]) from error


def lines(report: Report, workers: int, words: list[str]) -> list[str]:
    """What was found, for people; `words`: those of a run's command that name the data set."""
    kind = "oracle in Python" if report.calls_python else "compiled structure"
    out = [f"{report.name}: {kind}, {report.blocks:,} blocks, d = {report.d:,}"]
    out += [f"{'ok' if one.ok else 'wrong':>6}  {one.check}: {one.says}" for one in report.findings]
    once = report.pass_seconds
    if once is not None:
        each = " · ".join(f"{method} {_time(seconds)}" for method, seconds in report.seconds.items())
        out.append(f"{'cost':>6}  a call: {each}")
        slow = report.seconds["max_oracle"] >= 1e-3 and workers > 1
        shared = f", {_time(once / workers)} on {workers} workers" if slow else ""
        out.append(
            f"{'':>6}  an effective pass ({report.blocks:,} calls): {_time(once)}{shared}; a path takes some tens of them"
        )
    out += [f"{'note':>6}  {note}" for note in report.notes]
    if report.ok:
        out.append(f"{'take':>6}  python -m gapwise {' '.join([*words, *report.advice(workers)])}")
    else:
        wrong = sum(not one.ok for one in report.findings)
        out.append(f"{wrong} wrong; what follows from it was not tried")
    return out


def _quoted(word: str) -> str:
    """A word of Hydra's command line, for a shell."""
    key, _, value = word.partition("=")
    return f"{key}={shlex.quote(value)}" if value == shlex.quote(value) else f'{key}="{shlex.quote(value)}"'


def _time(seconds: float) -> str:
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


COMMAND = Command(
    "Tries your own oracle or structure, says what is wrong, what it costs and what to run it with.",
    arguments,
    run,
    runs_own_code=True,
)
