"""Gap passes with a slow oracle in Python on worker processes: speed-up, and the same bits when one is killed.

    python tests/benchmarks/bench_cluster.py [--blocks 2000] [--delay 0.02] [--workers 3] [--namespaces]
    python tests/benchmarks/bench_cluster.py --horses RELEASE [--blocks 600] [--workers 3]
    python tests/benchmarks/bench_cluster.py --horses RELEASE --path [--mount] [--blocks 600] [--workers 3] [--limit 520]

The oracle sleeps, so the waiting is simulated and the figures do not depend on the number of cores; passes here and on the
workers are measured in one run. Each worker is a process with its own port; with --namespaces (as root, with iproute2) each
is also in its own network namespace, behind a bridge, and talks to the scheduler over it.

With --horses, a release of `synthetic_horseseg.py`, the features lie on a disk and then in an S3 server on this machine, and
each worker has a cache of its own, as on a machine of its own. After exact passes, one with a worker that dies, the bench
prints each process's memory and what it has fetched.

With --path, a whole run with its root in the S3 server (`expensive_oracle`, down to lambda = 40) loses a worker while
it solves. With --limit, as root, the driver and each worker may have this many MB, the pages of files that they have read
included. The bench prints the most that each had, the seconds, and whether path.zarr has a serial run's bits.

With --mount, as root and with rclone 1.65 or later, the run is on a disk, its features are in an S3 server of rclone. The
driver and each worker have them mounted, each in a mount namespace of its own, without a cache on the disk.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from equality import assert_same_path
from limited import limited
from s3_server import serving
from workers import Site, held, site

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.config.run_options import ComputeOptions
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems.parallel import HERE
from gapwise.stages.solver.gaps import exact_gaps
from gapwise.stages.solver.oracles import vertices_at
from gapwise.storage.backend import Location, UrlPath, location
from gapwise.storage.backend.cloud import CloudBackend
from gapwise.storage.features import open_features
from gapwise.storage.files import read_json

REPOSITORY = Path(__file__).resolve().parents[2]
BRIDGE, NET = "gapwise0", "10.213.7"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=2000)
    parser.add_argument("--delay", type=float, default=0.02, help="seconds an oracle call sleeps")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--horses", type=Path, metavar="RELEASE")
    parser.add_argument("--path", action="store_true")
    parser.add_argument("--mount", action="store_true")
    parser.add_argument("--limit", type=float, metavar="MB")
    options = parser.parse_args()
    if options.path:
        whole_path(options.horses, options.blocks, options.workers, options.limit, options.mount)
        return
    if options.horses is not None:
        shares(options.horses, options.blocks, options.workers)
        return
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        features = folder / "features"
        arguments = {"n": options.blocks, "delay": options.delay}
        dataset = {"name": "python_oracle", "oracle": "python_task:Pairs", "arguments": arguments}
        featurize(dataset, features, key="bench", map_blocks=map, report=lambda *_: None)
        if options.namespaces:
            cluster = stack.enter_context(namespaces(folder / "site", options.workers))
        else:
            cluster = stack.enter_context(site(folder / "site", options.workers))
        compute = stack.enter_context(Compute(ComputeOptions("cluster", address=cluster.address)))
        measure(cluster, compute, features, folder / "w", options.workers)


def measure(cluster: Site, compute: Compute, features: Path, folder: Path, workers: int) -> None:
    problem = open_problem(features, "train")
    rng = np.random.default_rng(0)
    w, mu, ell = rng.normal(size=problem.d), rng.normal(size=int(problem.local_ptr[-1])), rng.random(problem.n)
    spread = compute.spread(features, folder, python=True)

    def timed(ways):
        start = time.perf_counter()
        gaps = exact_gaps(problem, w, mu, ell, ways)
        return time.perf_counter() - start, gaps

    for ways in (HERE, spread):  # compiled, here and there
        vertices_at(problem, w, range(2 * workers), ways)
    print(f"n = {problem.n}, d = {problem.d}, {workers} workers; load {os.getloadavg()[0]:.1f}")
    alone, expected = timed(HERE)
    print(f"{'serial':28} {alone:7.2f} s")
    together, gaps = timed(spread)
    print(f"{f'{workers} workers':28} {together:7.2f} s   speed-up {alone / together:.2f}   {bits(gaps, expected)}")
    timer = cluster.kill_later(0, 0.5 * together)
    died, gaps = timed(spread)
    timer.join()
    left = compute.cluster.threads()
    print(f"{'one killed in the middle':28} {died:7.2f} s   {left} left          {bits(gaps, expected)}")
    few = [problem.n // 16 * k for k in range(16)]
    start = time.perf_counter()
    vertices_at(problem, w, np.array(few), spread)
    print(f"{f'16 oracle calls on {left}':28} {time.perf_counter() - start:7.3f} s")


def shares(release: Path, images: int, workers: int) -> None:
    """Memory of each process, over a disk and over an object store."""
    dataset = {
        "name": "hdseg",
        "root": str(release),
        "size": "large",
        "pictures": False,
        "precision": "u8",
        "n_train": images,
    }
    with tempfile.TemporaryDirectory(dir="/tmp") as name, serving(Path(name)) as bucket:
        os.environ["GAPWISE_CACHE"] = str(Path(name) / "cache of the driver")
        featurize(dataset, Path(name) / "features", key="bench", map_blocks=map, report=lambda *_: None)
        CloudBackend().send(UrlPath(f"{bucket}/features"), Path(name) / "features")
        for where in (Path(name), location(bucket)):
            made = Site(Path(name) / f"site of {type(where).__name__}")
            try:
                for k in range(workers):
                    made.add(within=["env", f"GAPWISE_CACHE={made.folder / f'cache {k}'}"])
                with Compute(ComputeOptions("cluster", address=made.address)) as compute:
                    print("\nfeatures", "on a disk" if isinstance(where, Path) else "in an object store")
                    held_by_each(made, compute, where / "features", where / "w")
            finally:
                made.close()


def held_by_each(made: Site, compute: Compute, features: Location, folder: Location) -> None:
    problem, rng = open_problem(features, "train", hold=True), np.random.default_rng(0)
    w = np.clip(0.05 * rng.normal(size=problem.d), problem.lower, problem.upper)
    mu, ell = rng.normal(size=int(problem.local_ptr[-1])), rng.random(problem.n)
    size = sum(array.nbytes for array in open_features(features).arrays("train").values()) / 2**20
    print(f"n = {problem.n}, d = {problem.d}, {size:.0f} MB of arrays; load {os.getloadavg()[0]:.1f}")
    spread, expected = compute.spread(features, folder, python=False), exact_gaps(problem, w, mu, ell)
    print(f"{'':28} {'MB: own':>9} {'of files':>9} {'fetched':>9}")

    def show(when: str) -> None:
        found = compute.cluster.client.run(held, str(features))
        rows = {"driver": {**held(str(features)), "fetched": 0.0}, **dict(sorted(found.items()))}
        for k, row in enumerate(rows.values()):
            of = f"worker {k}" if k else f"{when}: driver"
            print(f"{of:>28} {row['RssAnon']:9.0f} {row['RssFile']:9.0f} {row['fetched']:9.0f}")

    show("opened")
    for when in ("one pass", "three passes"):
        for _ in range(1 if when == "one pass" else 2):
            start = time.perf_counter()
            gaps = exact_gaps(problem, w, mu, ell, spread)
            seconds = time.perf_counter() - start
        show(when)
        print(f"{'':28} {seconds:.2f} s, {bits(gaps, expected)}")
    timer = made.kill_later(0, 0.5 * seconds)
    gaps = exact_gaps(problem, w, mu, ell, spread)
    timer.join()
    show("one killed in a pass")
    print(f"{'':28} {bits(gaps, expected)}")


def whole_path(release: Path, images: int, workers: int, limit: float | None, mount: bool) -> None:
    """A run in an object store, or with its features mounted from there, beside a serial one on a disk."""
    words = [
        *("dataset=hdseg", f"dataset.root={release.resolve()}", "dataset.size=large", "dataset.pictures=false"),
        *("dataset.precision=u8", f"dataset.n_train={images}", "solver=expensive_oracle", "path.rule=two_sided"),
        *("path.eps=0.1", "path.kappa=0.7", "path.lambda_min=40", "tracking=none", "checkpoint.every_seconds=1"),
    ]

    def started(root: Location, cache: Path, *more: str, within: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        command = [*within, sys.executable, "-m", "pipeline", *words, f"run.root={root}", *more]
        env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "GAPWISE_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(command, env=env, cwd=cache.parent)

    def done(process: subprocess.Popen[bytes]) -> float:
        start = time.perf_counter()
        if process.wait() != 0:
            raise SystemExit(f"a run ended with {process.returncode}")
        return time.perf_counter() - start

    with tempfile.TemporaryDirectory(dir="/tmp") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        bucket = stack.enter_context(serving(folder))
        alone, root = folder / "alone", folder / "runs" if mount else location(f"{bucket}/runs")
        seconds = {"serial, on a disk": done(started(alone, folder / "no cache", "compute=serial"))}
        done(started(root, folder / "cache of featurize", "run.until=featurize"))
        entry: list[str] = []
        if mount:
            (folder / "buckets").mkdir()
            shutil.move(folder / "runs" / "features", folder / "buckets" / "features")
            entry = stack.enter_context(mounted(folder / "buckets", "features", folder / "runs" / "features"))
        made = Site(folder / "site")
        stack.callback(made.close)
        names = ["driver", *(f"worker-{k}" for k in range(workers))]
        groups = {one: stack.enter_context(limited(one, limit)) for one in names} if limit else {}
        within = {one: [*entry, *(groups[one].within if groups else [])] for one in names}
        for k in range(workers):
            made.add(within=[*within[f"worker-{k}"], "env", f"GAPWISE_CACHE={folder / f'cache {k}'}"])
        more = "compute=cluster", f"compute.address={made.address}"
        driver = started(root, folder / "cache of the driver", *more, within=within["driver"])
        peaks = Peaks({"driver": driver.pid, **{f"worker-{k}": one.pid for k, one in enumerate(made.workers)}})
        threading.Thread(target=kill_in_solve, args=(root, made), daemon=True).start()
        seconds["cluster, features mounted" if mount else "cluster, in an object store"] = done(driver)
        most = peaks.end()
        print(f"n = {images}, {workers} workers, worker-0 killed; load {os.getloadavg()[0]:.1f}; seconds:", seconds)
        for one in names:
            group = f", {groups[one].peak():.0f} of at most {limit:.0f} with pages of files" if groups else ""
            print(f"{one:>10}: {most[one]['RssAnon']:.0f} MB of its own{group}; {most[one]['RssFile']:.0f} mapped")
        made.close()
        assert_same_path(*(next(where.glob("hdseg-*")) for where in (root, alone)))
        print("path.zarr and the traces: same bits")


@contextlib.contextmanager
def mounted(buckets: Path, bucket: str, point: Path) -> Iterator[list[str]]:
    """What a command is started with to see a bucket at `point`, read-only; `buckets`, a folder, is served as S3."""
    point.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    served = ["rclone", "serve", "s3", str(buckets), "--addr", address, "--auth-key", "nobody,nothing"]
    facts = {"TYPE": "s3", "PROVIDER": "Rclone", "ENDPOINT": f"http://{address}", "ACCESS_KEY_ID": "nobody"}
    remote = [
        f"RCLONE_CONFIG_STORE_{name}={value}" for name, value in {**facts, "SECRET_ACCESS_KEY": "nothing"}.items()
    ]
    how = "--read-only --vfs-cache-mode off --buffer-size 0 --vfs-read-chunk-size 4M --max-read-ahead 1M --daemon"
    command = f'env -u AWS_CA_BUNDLE {" ".join(remote)} rclone mount store:{bucket} {point} {how} && exec "$@"'
    with (buckets.parent / "rclone.log").open("w") as log:
        server = subprocess.Popen(served, stdout=log, stderr=log)
    try:
        yield ["unshare", "--mount", "--propagation", "private", "sh", "-c", command, "sh"]
    finally:
        subprocess.run(["pkill", "-f", f"rclone mount store:{bucket} {point}"], check=False)
        server.kill()
        server.wait()


def kill_in_solve(root: Location, made: Site) -> None:
    """Kill the first worker once the solve has committed for the second time."""
    while True:
        heads = [run / "state" / "HEAD.json" for run in root.glob("hdseg-*")]
        if any(head.is_file() and int(read_json(head)["generation"]) >= 2 for head in heads):
            made.kill(0)
            return
        time.sleep(0.5)


class Peaks:
    """The most memory of processes, in MB, looked at ten times a second."""

    def __init__(self, pids: dict[str, int]) -> None:
        self.pids, self.over = pids, threading.Event()
        self.most = {name: {"RssAnon": 0.0, "RssFile": 0.0} for name in pids}
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while not self.over.wait(0.1):
            for name, pid in self.pids.items():
                with contextlib.suppress(OSError):
                    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                        kind, _, value = line.partition(":")
                        if kind in self.most[name]:
                            self.most[name][kind] = max(self.most[name][kind], int(value.split()[0]) / 1024)

    def end(self) -> dict[str, dict[str, float]]:
        self.over.set()
        self.thread.join()
        return self.most


def bits(gaps, expected) -> str:
    same = all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(gaps, expected, strict=True))
    return "same bits" if same else "OTHER BITS"


@contextlib.contextmanager
def namespaces(folder: Path, workers: int) -> Iterator[Site]:
    """A scheduler here and workers in network namespaces, joined by a bridge."""

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    names = [f"{BRIDGE}-{k}" for k in range(workers)]
    made = None
    try:
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("addr", "add", f"{NET}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for k, name in enumerate(names):
            ip("netns", "add", name)
            ip("link", "add", f"gapwise-{k}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"gapwise-{k}", "master", BRIDGE, "up")
            ip("-n", name, "addr", "add", f"{NET}.{k + 2}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        made = Site(folder, host=f"{NET}.1")
        for name in names:
            made.add(within=["ip", "netns", "exec", name])
        yield made
    finally:
        if made is not None:
            made.close()
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)
        subprocess.run(["ip", "link", "del", BRIDGE], check=False)


if __name__ == "__main__":
    main()
