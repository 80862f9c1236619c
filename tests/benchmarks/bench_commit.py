"""What it costs to commit the state of a solve, and how long the solve pauses for it, at once and behind it.

    python tests/benchmarks/bench_commit.py DATA/ocr [--words 100000] [--points 8] [--every 5] [--keep FOLDER]

The words are those of `bench_any_size`. They are solved once, with the default solver and path, and the state that is
committed last is taken: it is packed as at a rebase point and committed, some times over. Then the solver goes on from that
state at its lambda to the --points-th rebase point, 2 n steps apart, in turns without any commit, with commits written at
once every --every seconds, and with the same written behind the solve (`storage.behind`): seconds by the clock and of the
processor, how long the solve paused where it committed (packing included) and at other rebase points, and GB of memory that
belongs to no file. The three make the same steps. None commits at its end.

With --changes: how many blocks' supports differ between two rebase points at least one pass apart, and at least 30 s apart,
of a path that is solved from its beginning.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure_stages import anonymous
from synthetic_letters import synthetic_letters

from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solve import Session, solve
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Event, Kind
from gapwise.stages.solver.iterate import SPECS
from gapwise.stages.solver.options import BcfwOptions, CacheOptions, PathOptions
from gapwise.stages.solver.state import pool_of
from gapwise.stages.solver.supports import Supports, pack
from gapwise.storage import behind as behind_writes
from gapwise.storage.commits import CommitStore
from gapwise.storage.files import read_json
from gapwise.storage.layout import ArraySpec, read_group
from gapwise.storage.sink import CommitSink

NAMES = ("support_offset", "support_alpha", "support_loss", "support_used", "support_label", "label_offset")
OPTIONS = BcfwOptions(sampler="gap", step="pairwise", cache=CacheOptions(kind="gap"))
"""Those of `solver=bcpfw_gap_cache`."""


def solved_run(data: Path, words: int, folder: Path) -> tuple[Path, Path]:
    """(run, features) of the synthetic words below `folder`; what is there is not made again."""
    letters, root = folder / f"letters-{words}", folder / f"runs-{words}"
    if not (letters / "ocr_letters.npz").is_file():
        synthetic_letters(data / "ocr_letters.npz", words, letters / "ocr_letters.npz")
    command = [sys.executable, "-m", "pipeline", "dataset=ocr", "dataset.size=large", f"dataset.root={letters}"]
    subprocess.run([*command, f"run.root={root}", "tracking=none", "run.until=solve"], check=True)
    heads = root.glob("ocr-*/state/HEAD.json")  # other versions may have left runs there, too
    run = max(heads, key=lambda head: head.stat().st_mtime).parent.parent
    (features,) = (meta.parent for meta in root.glob("features/ocr-*/meta.json"))
    return run, features


class Clock:
    """Seconds since its creation, by the clock and of the processor."""

    def __init__(self) -> None:
        self.began, self.cpu = time.perf_counter(), time.process_time()

    def __str__(self) -> str:
        return f"{time.perf_counter() - self.began:.2f} s, {time.process_time() - self.cpu:.2f} of CPU time"


@contextlib.contextmanager
def memory() -> Iterator[list[float]]:
    """The most GB of anonymous memory of this process, in a list of one, while the block runs."""
    most, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            most[0] = max(most[0], anonymous(os.getpid()) / 1e9)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()


class Pauses:
    """Replaces `CommitSink.offer`, and notes how long each call took."""

    def __init__(self) -> None:
        self.committing: list[float] = []
        self.others: list[float] = []
        self._real: Callable[..., bool] = CommitSink.offer

    def __enter__(self) -> Pauses:
        def offer(sink: CommitSink, *offered: Any) -> bool:
            began, last = time.perf_counter(), sink.last_commit
            held = self._real(sink, *offered)
            (self.others if sink.last_commit == last else self.committing).append(time.perf_counter() - began)
            return held

        CommitSink.offer = offer  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        CommitSink.offer = self._real  # type: ignore[method-assign]

    def __str__(self) -> str:
        def words(pauses: list[float]) -> str:
            return (
                f"{len(pauses)}, {np.median(pauses):.2f} s in the middle, {max(pauses):.2f} at most" if pauses else "0"
            )

        return f"pauses with a commit: {words(self.committing)}; others: {words(self.others)}"


class Over(Exception):
    """Ends a solve."""


def steps_from(
    problem: Problem, supports: Supports, lam: float, points: int, every: float, behind: bool, folder: Path
) -> str:
    """Go from `supports` at lambda to a rebase point; what that took, in words."""
    shutil.rmtree(folder, ignore_errors=True)
    options = dataclasses.replace(OPTIONS, rebase_steps=2 * problem.n)
    path = PathOptions(rule="single", lam=lam, tolerance=0.0)
    left, clocks = iter(range(points)), [Clock()]

    def stop() -> bool:
        clocks.append(Clock())
        if next(left, None) is None:
            raise Over
        return False

    least = behind_writes.BEHIND_BYTES
    behind_writes.BEHIND_BYTES = least if behind else sys.maxsize
    try:
        with memory() as most, Pauses() as pauses, contextlib.suppress(Over):
            solve(
                Task(problem, options, path, initial=supports),
                folder,
                key="",
                session=Session(every_seconds=every, stop=stop),
            )
    finally:
        behind_writes.BEHIND_BYTES = least
    first, last = clocks[1], clocks[-1]
    return f"{last.began - first.began:.2f} s, {last.cpu - first.cpu:.2f} of CPU time; {pauses}; {most[0]:.2f} GB"


class Changes:
    """Shares of blocks whose atoms, or their weights, differ from those some time before."""

    def __init__(self, least: float, unit: str) -> None:
        self.least, self.unit = least, unit
        self.shares: list[float] = []
        self._at, self._before = -math.inf, np.empty(0, np.uint64)

    def note(self, now: float, marks: np.ndarray) -> None:
        """Compare the blocks' marks (n,) with the last ones, if these are old enough."""
        if now - self._at < self.least:
            return
        if self._before.size:
            self.shares.append(float(np.mean(marks != self._before)))
        self._at, self._before = now, marks

    def __str__(self) -> str:
        shares = " ".join(f"{share:.2f}" for share in self.shares)
        return f"blocks that changed in {self.least:g} {self.unit}: {shares or 'too short'}"


def marks_of(supports: Supports) -> np.ndarray:
    """uint64, (n,): a number that changes with a block's labellings, their order or their weights."""
    first = supports.label_offset[:-1]
    offset = np.arange(supports.label.size) - np.repeat(first, np.diff(supports.label_offset))
    labels = np.add.reduceat(
        supports.label.astype(np.uint64) * (offset.astype(np.uint64) * 2 + 1) ** np.uint64(5), first
    )
    rank = np.arange(supports.alpha.size) - np.repeat(supports.offset[:-1], np.diff(supports.offset))
    atoms = (labels * np.uint64(0x9E3779B97F4A7C15)) ^ supports.alpha.view(np.uint64)
    atoms *= rank.astype(np.uint64) * 2 + 1
    marks: np.ndarray = np.add.reduceat(atoms, supports.offset[:-1])
    return marks


def changes(problem: Problem) -> None:
    """Solve the path, and print how many blocks change between rebase points."""
    kinds = [Changes(1.0, "passes"), Changes(30.0, "s")]

    def watch(event: Event) -> None:
        if event.kind is not Kind.BOUNDARY:
            return
        solver = event.engine.solver
        marks = marks_of(pack(solver.iterate.state.pool, problem.label_ptr))
        kinds[0].note(solver.oracle_calls / problem.n, marks)
        kinds[1].note(solver.counts.seconds, marks)

    Engine.begin(Task(problem, OPTIONS, PathOptions())).run([watch])
    print("\n".join(map(str, kinds)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=8)
    parser.add_argument("--every", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder for data and runs; what is there is used")
    parser.add_argument("--changes", action="store_true", help="how many blocks change, and nothing else")
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = asked.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        run, features = solved_run(asked.data, asked.words, folder)
        problem, state = open_problem(features, "train"), run / "state"
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        if asked.changes:
            changes(problem)
            return
        specs = [ArraySpec(*spec) for spec in SPECS]
        arrays, attrs = read_group(state / read_json(state / "HEAD.json")["name"])
        supports, lam = Supports(*(arrays[name] for name in NAMES)), float(attrs["method"]["counts"]["lam"])
        pool = pool_of(problem, supports)
        size = sum(arrays[spec.name].nbytes for spec in specs) / 1e6
        print(f"n = {problem.n:,}: {supports.alpha.size:,} labellings, {size:.1f} MB; load {os.getloadavg()[0]:.1f}")
        store = CommitStore(scratch / "state", {})
        for _ in range(asked.turns + 1):
            clock = Clock()
            pack(pool, problem.label_ptr)
            print(f"pack    {clock}", flush=True)
            clock = Clock()
            store.commit(specs, arrays, {}, None)
            print(f"commit  {clock}", flush=True)
        newest = scratch / "state" / read_json(scratch / "state" / "HEAD.json")["name"]
        written = [file.stat().st_size for file in newest.rglob("*") if file.is_file()]
        print(f"on disk {sum(written) / 1e6:.1f} MB in {len(written)} files")
        del pool, arrays
        for _ in range(asked.turns):
            for how, every, behind in (
                ("no commit", math.inf, True),
                ("at once", asked.every, False),
                ("behind", asked.every, True),
            ):
                steps = steps_from(problem, supports, lam, asked.points, every, behind, scratch / "steps")
                print(f"{how:10} {steps}; load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
