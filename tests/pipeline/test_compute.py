"""Parallel maps: the same results in the same order wherever they are computed, and never too many at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from workers import ROOT, die, die_once, square

from gapwise.pipeline.compute.local import WINDOW, Compute
from gapwise.pipeline.config.run_options import ComputeOptions
from gapwise.pipeline.interrupt import Interrupted, Stop

KINDS = ("serial", "threads", "processes")


def fail_at_three(x: int) -> int:
    if x == 3:
        raise ValueError("image 3: no mask")
    return x


@pytest.fixture(scope="module", params=KINDS)
def compute(request: pytest.FixtureRequest) -> Iterator[Compute]:
    with Compute(ComputeOptions(request.param, 2)) as made:
        yield made


def test_map_blocks__is_ordered(compute: Compute) -> None:
    assert list(compute.map_blocks(square, range(40))) == [x * x for x in range(40)]
    assert list(compute.map_blocks(square, [])) == []
    if compute.kind == "processes":  # several items a task
        assert compute.cluster.map(square, range(40)) == [x * x for x in range(40)]


def test_map_blocks__takes_items_as_it_needs_them(compute: Compute) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for x in range(1000):
            taken.append(x)
            yield x

    results = compute.map_blocks(square, items())
    assert next(results) == 0
    assert len(taken) <= WINDOW * 2
    assert next(results) == 1
    assert len(taken) == {"serial": WINDOW, "threads": WINDOW * 2 + 1, "processes": WINDOW * 2}[compute.kind]


def test_map_blocks__passes_the_error_on(compute: Compute) -> None:
    with pytest.raises(ValueError, match="image 3: no mask"):
        list(compute.map_blocks(fail_at_three, range(6)))


def test_map_ranges__is_ordered_and_closes_over_arrays(compute: Compute) -> None:
    data = list(range(100))
    ranges = [(k, k + 10) for k in range(0, 100, 10)]
    assert compute.map_ranges(lambda a, b: sum(data[a:b]), ranges) == [sum(data[a:b]) for a, b in ranges]


def test_map_ranges__passes_an_error_on_at_once_and_begins_nothing_more() -> None:
    begun, go_on = [], threading.Event()

    def work(start: int, stop: int) -> None:
        begun.append(start)
        if start == 1:
            raise ValueError("block 1")
        go_on.wait(20)

    with Compute(ComputeOptions("threads", 2)) as compute:
        try:
            with pytest.raises(ValueError, match="block 1"):
                compute.map_ranges(work, [(k, k + 1) for k in range(9)])
        finally:
            go_on.set()
        compute.map_ranges(lambda a, b: None, [(0, 1), (1, 2)])  # behind all that is left
        assert len(begun) < 9


def test_processes__are_replaced_when_one_dies(tmp_path: Path) -> None:
    with Compute(ComputeOptions("processes", 2)) as compute:
        items = [(str(tmp_path / "died"), k) for k in range(5)]
        assert list(compute.map_blocks(die_once, items)) == [0, 1, 2, 3, 4]
        assert (tmp_path / "died").exists()
        with pytest.raises(OSError, match="died one after another"):
            list(compute.map_blocks(die, range(2)))


def test_exit__leaves_no_process_and_no_thread() -> None:
    before = threading.active_count()
    with Compute(ComputeOptions("processes", 1)) as compute:
        (first, *_) = compute.map_blocks(os_pid, range(2))
        assert first != os.getpid()
        compute.map_ranges(lambda a, b: None, [(0, 1), (1, 2)])
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (alive(first) or threading.active_count() > before):
        time.sleep(0.05)
    assert not alive(first)
    assert threading.active_count() <= before


def os_pid(x: int) -> int:
    return os.getpid()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_stop__ends_map_blocks_and_a_map_in_the_middle() -> None:
    stop = Stop()
    with Compute(ComputeOptions("processes", 1), stop) as compute:
        results = compute.map_blocks(square, range(100))
        next(results)
        threading.Timer(0.2, stop.request).start()
        with pytest.raises(Interrupted):
            compute.cluster.map(time.sleep, [0.5] * 40)
        with pytest.raises(Interrupted):
            list(results)


ORPHANS = """
import time
from workers import square
from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.config.run_options import ComputeOptions
if __name__ == "__main__":
    with Compute(ComputeOptions("processes", 2)) as compute:
        compute.cluster.map(square, range(8))
        print("up", flush=True)
        time.sleep(600)
"""


def test_processes__end_with_a_main_process_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(ORPHANS)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])}
    with subprocess.Popen([sys.executable, str(script)], env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    assert len(children) >= 2
    assert not psutil.wait_procs(children, timeout=60)[1]
