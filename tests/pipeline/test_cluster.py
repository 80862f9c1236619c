"""Workers beyond this process: the same bits, deaths in the middle of a pass, and errors that say what to do."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from equality import assert_same_path
from in_process import Here
from waiting import wait_for
from workers import ROOT, Site, site, square

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.compute.remote import WorkerError
from gapwise.pipeline.config.run_options import ComputeOptions
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.exact import ExactGaps, exact_gaps
from gapwise.stages.solver.state import truth_pool

pytestmark = pytest.mark.slow

N = 90
CALLS = {"n": N, "delay": 0.01}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("site"), 2) as made:
        yield made


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("data") / "features"
    options = {"name": "python_oracle", "oracle": "python_task:Pairs", "arguments": CALLS}
    featurize(options, target, key="key", map_blocks=map, report=lambda *_: None)
    return target


@pytest.fixture(scope="module")
def problem(features: Path) -> Problem:
    return open_problem(features, "train")


def compute_of(hosts: Site, stop: Stop | None = None, **more: float) -> Compute:
    return Compute(ComputeOptions("cluster", address=hosts.address, **more), stop)


def gap_pass(problem: Problem, spread: Spread) -> ExactGaps:
    return exact_gaps(problem, np.random.default_rng(5).normal(size=problem.d), truth_pool(problem), spread)


def same_bits(first: ExactGaps, second: ExactGaps) -> bool:
    columns = zip((*first[:4], *first.answers), (*second[:4], *second.answers), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in columns)


def test_gap_pass__is_the_same_to_the_bit_also_when_a_worker_dies(
    hosts: Site, problem: Problem, features: Path, tmp_path: Path
) -> None:
    expected = gap_pass(problem, Spread())
    with compute_of(hosts) as compute:
        spread = compute.spread(features, tmp_path / "w", python=True)
        assert spread.elsewhere is not None
        assert same_bits(gap_pass(problem, spread), expected)
        hosts.add()
        assert compute.cluster.threads() == 3
        hosts.kill_later(2, 0.1)
        assert same_bits(gap_pass(problem, spread), expected)
        assert compute.cluster.threads() == 2
    assert not (tmp_path / "w").exists()


def test_cluster__stops_in_the_middle_of_a_pass(hosts: Site, problem: Problem, features: Path, tmp_path: Path) -> None:
    stop = Stop()
    with compute_of(hosts, stop) as compute:
        spread = compute.spread(features, tmp_path / "w", python=True)
        threading.Timer(0.1, stop.request).start()
        with pytest.raises(Interrupted):
            gap_pass(problem, spread)


def test_cluster__without_a_scheduler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapwise.pipeline.compute.cluster.CONNECT_SECONDS", 1)
    options = ComputeOptions("cluster", address="tcp://127.0.0.1:9")
    with Compute(options) as compute, pytest.raises(OSError, match="no scheduler answers at tcp://127"):
        list(compute.map_blocks(square, [1]))


def with_other_sources(folder: Path) -> str:
    """A path on which Gapwise is another version."""
    shutil.copytree(ROOT / ".src", folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    with (folder / "gapwise" / "stages" / "evaluate.py").open("a") as file:
        file.write("# edited\n")
    return str(folder)


def test_cluster__says_that_features_are_not_seen(hosts: Site, tmp_path: Path) -> None:
    with (
        compute_of(hosts) as compute,
        pytest.raises(WorkerError, match=r"does not see the features in .*run\.root has"),
    ):
        compute.spread(tmp_path / "nowhere", tmp_path / "w", python=True)


def test_cluster__refuses_a_worker_of_another_version_also_late(
    hosts: Site, problem: Problem, features: Path, tmp_path: Path
) -> None:
    other = with_other_sources(tmp_path / "path") + os.pathsep + str(ROOT / "tests" / "support")
    with compute_of(hosts) as compute:
        spread = compute.spread(features, tmp_path / "w", python=True)
        hosts.add(path=other)
        with pytest.raises(WorkerError, match="runs another version of Gapwise"):
            gap_pass(problem, spread)
    message = r"1 of 3 workers .*has sources .* .here .* install the same version"
    with compute_of(hosts) as compute, pytest.raises(WorkerError, match=message):
        compute.spread(features, tmp_path / "w", python=True)
    hosts.kill(-1)


PIPELINE = [
    "dataset=python_oracle", "dataset.oracle=python_task:Pairs", "+dataset.arguments.n=40", "+dataset.arguments.delay=0.004",
    "path=single", "path.lambda=0.1", "path.tolerance=0.1", "path.relative=false", "solver=bcpfw_gap", "tracking=none",
    "checkpoint.every_seconds=1000",
]  # fmt: skip


def test_sweep__does_its_runs_on_the_workers_of_a_cluster(given, hosts: Site, tmp_path: Path) -> None:
    words = ("seed=0,1", "compute=cluster", f"compute.address={hosts.address}", f"run.root={tmp_path / 'far'}")
    done = given("-m", *PIPELINE, *words)
    assert done.code == 0, done.err
    assert "2 runs, 0 complete; 2 workers" in done.err
    near = Here(tmp_path / "near", [*PIPELINE, "seed=1", "compute=serial"])
    near.finish()
    far = tmp_path / "far" / near.run.name
    assert "kind: serial" in next(far.glob("invocations/*/.hydra/config.yaml")).read_text()
    assert_same_path(far, near.run)


def test_run__on_a_cluster_that_goes_away_keeps_its_state_and_ends_with_the_same_bits(
    hosts: Site, tmp_path: Path
) -> None:
    far = Here(tmp_path / "far", [*PIPELINE, "compute=cluster", f"compute.address={hosts.address}"])

    def kill_both() -> None:
        wait_for(lambda: any(far.root.glob("*/.tmp-weights/w-*")) and any(far.root.glob("*/manifest.json")))
        hosts.kill(0)
        hosts.kill(1)

    with ThreadPoolExecutor(1) as other:
        killed = other.submit(kill_both)
        done = far.issue("compute.wait_seconds=2")
        killed.result()
        assert (done.code, "error: compute: no worker at" in done.err) == (1, True), done.err
        assert far.generation > 0, "the point where the pass began is committed"
        other.submit(hosts.add)
        far.finish("compute.wait_seconds=60")
    assert not any(far.root.glob("*/.tmp-weights"))
    near = Here(tmp_path / "near", [*PIPELINE, "compute=serial"])
    near.finish()
    assert_same_path(far.run, near.run)
