"""Processes that compile while the first stages work, never in anybody's way; and that compiling is said and counted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numba
import precompile_parts
import psutil
import pytest
from configs import composed
from numba.core import event
from tiny import segmentation
from waiting import python

from gapwise.pipeline.cli.predict import saying_that_it_compiles
from gapwise.pipeline.compiling import WHAT, Compiling
from gapwise.pipeline.config.settings import read
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.precompile import Precompile, choices, mark_of, worthwhile
from gapwise.stages.datasets import specimen
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems import build

SAMPLE = [
    *(
        "+experiment=regpath_horseseg",
        "dataset.n_train=2",
        "dataset.n_test=1",
        "dataset.n_validation=1",
        "dataset.superpixels=20",
    ),
    *("dataset.colour_words=2", "dataset.sift_words=2", "dataset.colour_samples=20", "dataset.sift_samples=20"),
]


class Said:
    def __init__(self) -> None:
        self.activities: list[str] = []

    def report(self, done: int, total: int, activity: str) -> None:
        self.activities.append(activity)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The main job's, on a machine with two cores, with a cache of its own."""
    monkeypatch.setenv("GAPWISE_KERNELS", str(tmp_path / "kernels"))
    for name in ("NUMBA_DISABLE_JIT", "GAPWISE_PRECOMPILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    return read(composed(*SAMPLE))


def begun(settings, part: Callable[..., None], stop: Stop | None = None) -> tuple[Precompile, Said]:
    said = Said()
    return Precompile(settings, said, stop or Stop(), part), said  # type: ignore[arg-type]


def types_of(options: dict) -> numba.types.Type:
    example = specimen(options)
    return numba.typeof(build(example.structure, example.arrays, example.meta))


def test_specimen__has_the_types_of_what_is_featurized(tmp_path: Path) -> None:
    options = dict(read(composed(*SAMPLE)).dataset)
    featurize(options, tmp_path / "store", key="", map_blocks=map, report=lambda *_: None)
    assert types_of(options) == numba.typeof(open_problem(tmp_path / "store", "train")) == numba.typeof(segmentation())


SCRIPT = """
import sys, tempfile
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from solved import options_of, path_of
from tiny import TINY
from gapwise.pipeline.precompile import STAGES, warm_up
from gapwise.stages.model.predict import losses_of, predict
from gapwise.stages.solve import Task, solve
from gapwise.stages.verify import verify

method, rule = sys.argv[1:]
problem, options = TINY["multiclass"](), options_of(method=method)
path = path_of(rule=rule, eps=0.3)
for stage in STAGES:
    warm_up(stage, problem, options, path)
late, compiles = [], Dispatcher.compile
def compile(self, signature):
    late.append(self.py_func.__qualname__)
    return compiles(self, signature)
Dispatcher.compile = compile
with tempfile.TemporaryDirectory() as folder:
    solve(Task(problem, options, path), Path(folder), key="k")
    assert not late, f"solve: {late}"
    assert verify(problem, Path(folder))["certified"]
    predict(problem, problem.lower if problem.lower.size else __import__("numpy").zeros(problem.d))
    losses_of(problem, problem.truth)
assert not late, late
"""


@pytest.mark.slow
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_warm_up__leaves_nothing_to_compile() -> None:
    python("-c", SCRIPT, "accelerated", "two_sided")


def test_wait_for__returns_when_the_stage_is_said_and_never_again_begins(settings) -> None:
    first, said = begun(settings, precompile_parts.at_once)
    with first:
        for stage in ("featurize", "init_path", "solve", "verify", "evaluate"):
            first.wait_for(stage)
    assert set(said.activities) == {WHAT}
    assert first.seconds > 0.0
    mark = mark_of(settings)
    assert mark is not None
    assert mark.exists()
    again, said = begun(settings, precompile_parts.never)
    with again:
        again.wait_for("solve")
    assert not said.activities


def test_wait_for__a_process_that_died_waits_for_nothing(settings) -> None:
    precompile, _ = begun(settings, precompile_parts.dies)
    with precompile:
        precompile.wait_for("evaluate")
        precompile.wait_for("solve")
    mark = mark_of(settings)
    assert mark is not None
    assert not mark.exists()


def test_wait_for__ends_when_a_stop_is_requested_and_leaves_no_process(settings) -> None:
    stop = Stop()
    precompile, _ = begun(settings, precompile_parts.never, stop)
    assert psutil.Process().children(recursive=True)
    with precompile:
        precompile.wait_for("featurize")  # nobody compiles for it
        stop.request()
        with pytest.raises(Interrupted):
            precompile.wait_for("solve")
    assert not [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]


def test_start__that_the_machine_refuses_costs_nothing(settings, monkeypatch) -> None:
    def refuse(self: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", refuse)
    precompile, said = begun(settings, precompile_parts.never)
    with precompile:
        precompile.wait_for("solve")
    assert not said.activities
    mark = mark_of(settings)
    assert mark is not None
    assert not mark.exists(), "nothing was compiled"


def test_worthwhile__only_where_it_can_help(settings, monkeypatch) -> None:
    assert worthwhile(settings)
    for words in (["compute=serial"], ["run.until=solve"], ["run.managed=true"]):
        assert not worthwhile(read(composed(*SAMPLE, *words))), words
    monkeypatch.setenv("GAPWISE_PRECOMPILE", "0")  # as in a sweep's worker
    assert not worthwhile(settings)
    monkeypatch.delenv("GAPWISE_PRECOMPILE")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert not worthwhile(settings)


def test_mark__depends_on_what_is_called_and_not_on_numbers(settings) -> None:
    mark = mark_of(settings)
    for words, same in (
        (["path.eps=0.01", "dataset.n_train=3", "seed=4"], True),
        (["solver=bcfw"], False),
        (["path.rule=paper"], False),
    ):
        assert (mark_of(read(composed(*SAMPLE, *words))) == mark) is same, words
    assert choices({"degree": 2.0}) == choices({"degree": 1.0}) != choices({"step": "fw"})


def test_compiling__is_said_while_it_lasts_and_counted_once() -> None:
    said, began = Said(), time.monotonic()
    with Compiling(said) as compiling:  # type: ignore[arg-type]
        time.sleep(1.2)
        assert said.activities == []
        with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
            time.sleep(3.3)
        assert set(said.activities) == {WHAT}
    assert 3.3 <= compiling.seconds < time.monotonic() - began - 1.1  # not twice, and not what was before


def test_predict__says_once_that_it_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    with saying_that_it_compiles(needed=True) as compiling:
        assert isinstance(compiling, Compiling)
        for _ in range(2):
            compiling._progress.report(0, 0, WHAT)
    assert capsys.readouterr().err == f"predict: {WHAT}\n"
