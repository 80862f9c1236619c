"""Workers beyond this process: the same bits, deaths in the middle of a pass, and errors that say what to do."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny.potts import potts_blocks
from workers import ROOT, Site, die, die_once, held, here, site, square

from gapwise.pipeline.compute import cluster
from gapwise.pipeline.compute.homes import Homes
from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.compute.remote import WorkerError
from gapwise.pipeline.config.run_options import ComputeOptions, SlurmOptions
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.gaps import ExactGaps, exact_gaps
from gapwise.stages.solver.oracles import vertices_at
from gapwise.storage.backend import UrlPath
from gapwise.storage.features import FeatureWriter, open_features

pytestmark = pytest.mark.slow

N = 90
CALLS = {"n": N, "delay": 0.01}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("site"), 3) as made:
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
    rng = np.random.default_rng(5)
    w, mu = rng.normal(size=problem.d), rng.normal(size=int(problem.local_ptr[-1]))
    return exact_gaps(problem, w, mu, rng.random(problem.n), spread)


def same_bits(first: ExactGaps, second: ExactGaps) -> bool:
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(first, second, strict=True))


@pytest.fixture(scope="module")
def expected(problem: Problem) -> ExactGaps:
    return gap_pass(problem, Spread())


@pytest.mark.parametrize("kind", ["threads", "processes", "cluster"])
def test_gap_pass__is_the_same_to_the_bit_by_workers_of_every_kind(
    kind: str, hosts: Site, problem: Problem, features: Path, expected: ExactGaps, tmp_path: Path
) -> None:
    with Compute(ComputeOptions(kind, 2, hosts.address)) as compute:
        spread = compute.spread(features, tmp_path / "w", python=True)
        assert (spread.elsewhere is None) == (kind == "threads")
        assert same_bits(gap_pass(problem, spread), expected)
    assert not (tmp_path / "w").exists()


def test_gap_pass__goes_on_when_a_worker_dies(
    hosts: Site, problem: Problem, features: Path, expected: ExactGaps, tmp_path: Path
) -> None:
    hosts.add()
    with compute_of(hosts) as compute:
        spread = compute.spread(features, tmp_path / "w", python=True)
        assert compute.cluster.threads() == 4
        gap_pass(problem, spread)  # compiled now
        hosts.kill_later(3, 0.1)
        assert same_bits(gap_pass(problem, spread), expected)
        assert compute.cluster.threads() == 3


def test_map__gives_each_place_to_the_same_worker_while_it_lives(tmp_path: Path) -> None:
    places = [(k + 0.5) / 24 for k in range(24)]
    with site(tmp_path / "site", 3) as three, compute_of(three) as compute:

        def homes() -> list[str]:
            return compute.map_tasks(here, range(24), places)

        first = homes()
        assert [first.index(worker) for worker in dict.fromkeys(first)] == [0, 8, 16], "one stretch each"
        assert homes() == first
        three.kill(int(first[0].rsplit("-", 1)[1]))
        second = homes()
        assert second[8:] == first[8:], "nobody gives up its own"
        assert [second.index(worker) for worker in dict.fromkeys(second[:8])] in ([0, 4], [0, 4][::-1])
        three.add()
        while compute.cluster.threads() < 3:
            pass
        third = homes()
        assert third[8:] == first[8:]
        assert set(third[:8]).isdisjoint(first), "the new one has what the dead one had"


def test_workers__read_their_own_blocks_from_an_object_store(s3: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "workers"))
    with site(tmp_path / "site", 2) as two, compute_of(two) as compute:
        monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "driver"))
        features = UrlPath(f"{s3}/{tmp_path.name}/features")
        with FeatureWriter(features) as writer:
            for block in potts_blocks(classes=2, n=16, d_unary=50):
                writer.append("train", **block)
            writer.meta = {"structure": "segmentation", "checked": True}
        problem, arrays = open_problem(features, "train"), open_features(features).arrays("train")
        ranged = sum(arrays[name].nbytes for name in ("unary", "pairwise", "gram")) / 2**20
        w, spread = np.ones(problem.d), compute.spread(features, features.parent / "w", python=False)

        def fetched_by_each() -> list[float]:
            answers = vertices_at(problem, w, range(problem.n), spread)
            expected = vertices_at(problem, w, range(problem.n))
            assert all(a.tobytes() == b.tobytes() for a, b in zip(answers, expected, strict=True))
            return [facts["fetched"] for facts in compute.cluster.client.run(held, str(features)).values()]

        opening = [facts["fetched"] for facts in compute.cluster.client.run(held, str(features)).values()]
        first = fetched_by_each()
        assert sum(first) - sum(opening) == pytest.approx(ranged), "everything once"
        assert max(first) - opening[0] < 0.75 * ranged
        assert fetched_by_each() == first
        two.kill(0)
        (last,) = fetched_by_each()
        assert last - opening[0] == pytest.approx(ranged)


def test_gap_pass__gives_up_a_worker_that_stands_still(
    problem: Problem, features: Path, expected: ExactGaps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "8s")
    with site(tmp_path / "site", 2) as two, compute_of(two) as compute:
        spread = compute.spread(features, tmp_path / "w", python=True)
        gap_pass(problem, spread)  # compiled now
        threading.Timer(0.1, two.workers[0].send_signal, [signal.SIGSTOP]).start()
        assert same_bits(gap_pass(problem, spread), expected)
        assert compute.cluster.threads() == 1


def test_work__that_kills_four_workers_is_an_error_and_other_work_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a worker died of its tasks, or they only waited there, is not known."""
    there, keys = [{f"w{k}": 1} for k in range(9)], itertools.count()
    client = SimpleNamespace(loop=None, cancel=lambda *args, **named: None)
    client.map = lambda fn, items, **named: [SimpleNamespace(key=next(keys)) for _ in items]
    monkeypatch.setattr(cluster, "as_completed", lambda **named: SimpleNamespace(update=lambda futures: None))
    far: Any = SimpleNamespace(client=client, homes=Homes(), _workers=lambda: there[0])
    work = cluster._Work(far, square, range(3), [0.1, 0.2, 0.3])
    for _ in range(3):
        work.send()
        assert sorted(k for _, k, _ in work.running.values()) == [0, 1]
        there.pop(0)
        work.divide()
        assert not work.running
        assert [*work.waiting] == [*there[0]]
    work.send()
    there.pop(0)
    with pytest.raises(WorkerError, match="one part died one after another, w3 the last"):
        work.divide()


def test_map_tasks__goes_on_when_a_process_dies(tmp_path: Path) -> None:
    items = [(str(tmp_path / "died"), k) for k in range(6)]
    with Compute(ComputeOptions("processes", 2)) as compute:
        assert compute.map_tasks(die_once, items) == list(range(6))
        with pytest.raises(RuntimeError, match="died 3 times"):
            compute.map_tasks(die, [0])


@pytest.mark.parametrize("closed", [None, OSError("handle is closed"), ValueError("bad value(s) in fds_to_keep")])
def test_map_tasks__goes_on_when_a_process_dies_before_all_is_sent(
    monkeypatch: pytest.MonkeyPatch, closed: Exception | None
) -> None:
    """The pool knows that it is broken, or has closed its pipes and does not know it yet."""
    send, sent = ProcessPoolExecutor.submit, []

    def send_and_kill(pool: ProcessPoolExecutor, *arguments: Any) -> Future[int]:
        if closed is not None and len(sent) == 1:
            sent.append(None)
            raise closed
        future = send(pool, *arguments)
        sent.append(future)
        if len(sent) == 1:
            for process in list(pool._processes.values()):
                process.kill()
            wait([future])
        return future

    monkeypatch.setattr(ProcessPoolExecutor, "submit", send_and_kill)
    with Compute(ComputeOptions("processes", 2)) as compute:
        assert compute.map_tasks(square, range(4)) == [0, 1, 4, 9]


def test_map_blocks__is_ordered_on_a_cluster(hosts: Site) -> None:
    with compute_of(hosts) as compute:
        assert list(compute.map_blocks(square, range(40))) == [x * x for x in range(40)]


def test_cluster__stops_in_the_middle_of_a_pass(hosts: Site, problem: Problem, features: Path, tmp_path: Path) -> None:
    stop = Stop()
    with compute_of(hosts, stop) as compute:
        spread = compute.spread(features, tmp_path / "w", python=True)
        threading.Timer(0.1, stop.request).start()
        with pytest.raises(Interrupted):
            gap_pass(problem, spread)


def test_cluster__without_workers_waits_and_then_says_so(
    problem: Problem, features: Path, expected: ExactGaps, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with site(tmp_path / "site", 1) as lonely, compute_of(lonely, wait_seconds=60.0) as compute:
        spread = compute.spread(features, tmp_path / "w", python=True)
        lonely.kill_later(0, 0.2)
        threading.Timer(3.0, lonely.add).start()
        with caplog.at_level(logging.WARNING):
            assert same_bits(gap_pass(problem, spread), expected)
        assert "no worker is left" in caplog.text
        assert "a worker has joined" in caplog.text
        lonely.kill(1)
        compute.cluster.options.wait_seconds = 1.0
        with pytest.raises(WorkerError, match=r"no worker at tcp://.* for 1 s .*dask worker tcp://"):
            gap_pass(problem, spread)


def test_cluster__without_a_scheduler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapwise.pipeline.compute.cluster.CONNECT_SECONDS", 1)
    options = ComputeOptions("cluster", address="tcp://127.0.0.1:9")
    with Compute(options) as compute, pytest.raises(OSError, match="no scheduler answers at tcp://127"):
        list(compute.map_blocks(square, [1]))


def without_gapwise(folder: Path) -> str:
    """A path on which Gapwise cannot be found, wherever it is installed."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gapwise':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    return str(folder)


def with_other_sources(folder: Path) -> str:
    """A path on which Gapwise is another version."""
    shutil.copytree(ROOT / ".src", folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    with (folder / "gapwise" / "stages" / "evaluate.py").open("a") as file:
        file.write("# edited\n")
    return str(folder)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (without_gapwise, "cannot import Gapwise .pip install it there"),
        (with_other_sources, "has sources .* .here .* install the same version"),
        (lambda folder: str(ROOT), "cannot import 'python_task'.* .set PYTHONPATH"),
    ],
)
def test_cluster__says_what_a_worker_lacks(
    path: Callable[[Path], str], message: str, features: Path, tmp_path: Path
) -> None:
    with site(tmp_path / "site", 0) as lame:
        lame.add(path=path(tmp_path / "path"))
        with compute_of(lame) as compute, pytest.raises(WorkerError, match=f"1 of 1 workers .*{message}"):
            compute.spread(features, tmp_path / "w", python=True)


def test_cluster__says_that_features_are_not_seen(hosts: Site, tmp_path: Path) -> None:
    with (
        compute_of(hosts) as compute,
        pytest.raises(WorkerError, match=r"does not see the features in .*run\.root has"),
    ):
        compute.spread(tmp_path / "nowhere", tmp_path / "w", python=True)


def test_cluster__refuses_a_worker_of_another_version_that_joins_late(
    problem: Problem, features: Path, tmp_path: Path
) -> None:
    with site(tmp_path / "site", 1) as mixed, compute_of(mixed) as compute:
        spread = compute.spread(features, tmp_path / "w", python=True)
        mixed.add(path=with_other_sources(tmp_path / "path") + os.pathsep + str(ROOT / "tests" / "support"))
        mixed.kill(0)
        with pytest.raises(WorkerError, match="runs another version of Gapwise"):
            gap_pass(problem, spread)


def test_slurm__writes_the_job_script() -> None:
    pytest.importorskip("dask_jobqueue")
    from gapwise.pipeline.compute.slurm import slurm_cluster

    slurm = SlurmOptions(
        "short", "grant", "00:30:00", 4, "8GB", directives=["--constraint=avx2"], prologue=["module load x"]
    )
    with slurm_cluster(ComputeOptions("slurm", 8, slurm=slurm)) as cluster:
        script, address = cluster.job_script(), cluster.scheduler_address
        pages = [listener.getsockname()[0] for listener in cluster.scheduler.http_server._sockets.values()]
    assert pages == ["127.0.0.1"]
    assert "--no-dashboard --dashboard-address 127.0.0.1:0" in script
    for line in ("-p short", "-A grant", "-t 00:30:00", "--cpus-per-task=4", "--mem=8G", "--constraint=avx2"):
        assert f"#SBATCH {line}\n" in script
    assert script.index("module load x") < script.index("distributed.cli.dask_worker")
    assert f"distributed.cli.dask_worker {address} --name dummy-name --nthreads 1" in script
    assert "--nworkers 4" in script
