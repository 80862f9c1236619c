"""`+experiment=practice`: every contestant of every task, one after the other, each split in a process of its own.

A record is one JSON file; what has one is not measured again, so the same command goes on after a kill. The page is made
again after every record.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import typed
from gapwise.pipeline.errors import DONE, FAILED, refuse, refuse_setup
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.practice.measure import NO_DATA
from gapwise.pipeline.practice.table import SIZES, TASKS
from gapwise.records import Record
from gapwise.storage.backend import location
from gapwise.storage.files import LockedError, locked, read_json, write_json

if TYPE_CHECKING:
    from gapwise.pipeline.practice.table import Task

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Seconds are those of one core, without threads that wait for one another."""
PAGE, NUMBERS = "PRACTICE.md", "practice.json"


@dataclass
class PracticeOptions:
    """The group `practice`."""

    size: str = "full"
    only: list[str] = field(default_factory=list)
    who: list[str] = field(default_factory=list)
    seconds: float = 600.0
    record: str | None = None

    def check(self) -> None:
        """Raises ValueError naming the key."""
        if self.size not in SIZES:
            raise ValueError(f"practice.size: expected one of {', '.join(SIZES)}, got {self.size!r}")
        if not self.seconds > 0:
            raise ValueError(f"practice.seconds: expected CPU seconds > 0, got {self.seconds}")
        contestants = dict.fromkeys(who for task in TASKS.values() for who in task.contestants)
        for key, given, known in (("only", self.only, TASKS), ("who", self.who, contestants)):
            if unknown := [name for name in given if name not in known]:
                raise ValueError(f"practice.{key}: there is no {unknown[0]!r}; there are: {', '.join(known)}")

    @property
    def tasks(self) -> list[str]:
        """Tasks in the order of the table."""
        return [name for name in TASKS if name in (self.only or TASKS)]


def practice(cfg: DictConfig) -> int:
    """Carry out what `cfg` asks for; returns the exit code."""
    from gapwise.pipeline.sweep.run import interrupted

    with Stop(ends_process=True) as stop:
        try:
            options: PracticeOptions = typed("practice", cfg.practice, PracticeOptions())
            root = location(cfg.run.root)
            if not isinstance(root, Path):
                raise ConfigError(f"run.root: expected a folder of this machine, got {root}")
        except ValueError as error:
            return refuse_setup(error)
        folder = (root / "practice" / options.size).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        failed = False
        try:
            with locked(folder / "lock"), stop.at_once():
                for name in options.tasks:
                    for fault in _task(name, TASKS[name], options, folder):
                        _write(folder, options)
                        failed |= bool(fault)
        except (Interrupted, KeyboardInterrupt):
            there = len(records_of(folder))
            return interrupted(stop, f"{there} record" + "s" * (there != 1) if there else "")
        except LockedError as error:
            return refuse(error, FAILED)
        _write(folder, options)
        print(f"practice: {folder / PAGE}", flush=True)
        return FAILED if failed else DONE


def _task(name: str, task: Task, options: PracticeOptions, folder: Path) -> Iterator[str]:
    """Measure what has no record yet; yields what went wrong after each split, or nothing."""
    for who, contestant in task.contestants.items():
        if options.who and who not in options.who:
            continue
        left_out = folder / name / f"{who}.left_out.json"
        left_out.unlink(missing_ok=True)
        if missing := contestant.missing():
            write_json(_made(left_out), {"task": name, "who": who, "says": contestant.says, "left_out": missing})
            continue
        used = [0.0]
        for split in task.splits(options.size):
            record = _made(folder / name / f"{who}-{split}.json")
            if not record.is_file():
                if sum(used) + used[-1] > options.seconds:
                    break
                print(f"practice: {name}, {contestant.says}, split {split}", file=sys.stderr, flush=True)
                words = [name, who, str(split), options.size, str(folder), str(options.seconds), str(record)]
                code, said = _child(["-m", "gapwise.pipeline.practice.measure", *words])
                if code:
                    print(f"practice: left out {name}, {contestant.says}: {said}", file=sys.stderr, flush=True)
                    about = {"task": name, "who": who, "says": contestant.says, "left_out": said}
                    write_json(left_out, about)
                    yield "" if code == NO_DATA else said
                    if code == NO_DATA:
                        return
                    break
                yield ""
            used.append(float(read_json(record)["seconds"]))


def _made(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _child(words: Sequence[str]) -> tuple[int, str]:
    """The exit code of a Python process, and what it said last; ends it, and what it started, if this one is interrupted."""
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, **dict.fromkeys(ONE_THREAD, "1")},
    )  # fmt: skip
    try:
        _, said = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return process.returncode, "ended at the limit of CPU seconds"
    return process.returncode, (said.strip().splitlines() or [""])[-1].removeprefix("error: ")


def records_of(folder: Path) -> list[Record]:
    """All records, in the order of the table, and by split."""
    records = []
    for name, task in TASKS.items():
        for who in task.contestants:
            left_out = folder / name / f"{who}.left_out.json"
            files = [folder / name / f"{who}-{split}.json" for split in range(task.folds)]
            records += [read_json(file) for file in (*files, left_out) if file.is_file()]
    return records


def _write(folder: Path, options: PracticeOptions) -> None:
    """The numbers and the page; copies where they are recorded."""
    from gapwise.pipeline.practice.page import page
    from gapwise.pipeline.source_code import commit
    from gapwise.stages.reports.papers.page import machine

    about = {"size": options.size, "seconds": options.seconds, **machine(), "source": commit()}
    numbers = {**about, "records": records_of(folder)}
    write_json(folder / NUMBERS, numbers)
    (folder / PAGE).write_text(page(numbers), encoding="utf-8")
    if options.record is not None:
        for name in (NUMBERS, PAGE):
            shutil.copy(folder / name, _made(Path(options.record) / name))
