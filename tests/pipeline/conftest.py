"""What tests of the pipeline share: a command given in this process, and one finished run."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from in_process import Here
from real_runs import Done

from gapwise.pipeline import entry
from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.interrupt import Stop
from gapwise.pipeline.sweep.plan import Asked, Planned, plan


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """given(*words): how `gapwise WORDS` ends, without a process of its own."""

    def give(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["gapwise", *map(str, words)])
        monkeypatch.setattr(gc, "set_threshold", lambda *numbers: None)
        monkeypatch.setattr(sys, "path", [*sys.path])
        capsys.readouterr()
        try:
            with patch.dict(os.environ):
                code = entry.main()
        except SystemExit as left:
            code = left.code
        return Done(code, *capsys.readouterr())

    return give


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """refused(*words): the one line that a command ends with, exit code 1."""

    def refuse(*words: object) -> str:
        capsys.readouterr()
        assert carry_out([str(word) for word in words]) == 1
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), out + err
        return err

    return refuse


@pytest.fixture
def planned(given, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Planned]]:
    """planned(*words): the runs of a sweep whose data have 626 training blocks; none is run. SystemExit if it is refused."""
    asked: list[Asked] = []
    monkeypatch.setattr("gapwise.pipeline.sweep.run.run_batch", lambda jobs: asked.extend(jobs) or 0)
    monkeypatch.setattr("gapwise.pipeline.sweep.plan.count_blocks", lambda settings, source, stop: 626)
    monkeypatch.setattr("gapwise.pipeline.data.source_of", lambda settings: {})

    def plans(*words: str) -> list[Planned]:
        asked.clear()
        done = given(*words)
        if done.code:
            raise SystemExit(done.err)
        return plan(asked, Stop())

    return plans


class Finished(NamedTuple):
    """A finished run that nobody changes: its directory, the folder of all runs, its text, and the words that made it."""

    run: Path
    root: Path
    text: Path
    words: list[str]


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A complete run on four sequences; tests that change it copy it."""
    folder = tmp_path_factory.mktemp("chain")
    text = folder / "train.txt"
    text.write_text("P\tw=a\tw=b\nQ\tw=b\n\nQ\tw=c\n\nP\tw=a\nP\tw=c\nQ\tw=b\n\nQ\tw=b\nP\tw=d\n")
    words = ["dataset=sequences_csv", f"dataset.file={text}", f"dataset.test_file={text}", "path.eps=0.05"]
    words += ["tracking=none", "compute=serial", "checkpoint.every_seconds=0"]
    sandbox = Here(folder / "runs", words)
    sandbox.finish()
    return Finished(sandbox.run, sandbox.root, text, words)
