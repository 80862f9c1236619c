"""The whole command, killed at any moment and started again; and the signals that ask it to stop."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from in_process import here
from real_runs import Bench, Calm, Sandbox, assert_same_path, assert_same_results, ended, kill
from waiting import wait_for

from gapwise.pipeline.stage_graph import flow

pytestmark = pytest.mark.slow

KILLS = {"short": 3, "full": 85}
KILLS_IN_COMMITS = {"short": 3, "full": 15}
LIFE = 8
"""Kills after which a run is left to end, and the next one begins from nothing."""
OPERATIONS = ("fsync", "rename", "replace")
SLOW_COMMIT = 0.02
"""Longest wait, in seconds, of a file operation behind the solve; the longer it is, the fewer commits are made."""


def stage_of(sandbox: Sandbox) -> str:
    """The stage that a killed run was in."""
    manifests = list(sandbox.root.glob("*/manifest.json"))
    if not manifests:
        return "start"
    done = json.loads(manifests[0].read_text())["stages"]
    return next((name for name in flow() if name not in done), "result")


def in_flight(sandbox: Sandbox, number: int) -> bool:
    """Whether generation `number` is being written, and not committed."""
    begun = list(sandbox.root.glob(f"*/state/*g{number:06d}.zarr"))
    return bool(begun) and sandbox.generation < number


@pytest.mark.fault("kill")
def test_kill__at_random_moments_changes_no_bit(
    bench: Bench, calm: Calm, form: str, request: pytest.FixtureRequest
) -> None:
    rng = np.random.default_rng(0)
    hit: Counter[str] = Counter()
    life, longest = 0, calm.seconds
    while hit.total() < KILLS[form]:
        sandbox = bench.sandbox(f"life-{life}")
        reached, complete = 0, False
        for _ in range(LIFE):
            process = sandbox.start()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(rng.uniform(0.2, longest))
            complete = not kill(process)
            longest *= 0.7 if complete else 1.05  # commands take as long as the machine's other work lets them
            if complete:
                break
            hit[stage_of(sandbox)] += 1
            assert sandbox.generation >= reached
            reached = sandbox.generation
            if hit.total() >= KILLS[form]:
                break
        here(sandbox).finish()
        assert_same_results(sandbox, calm)
        life += 1
    stages = ", ".join(f"{count} in {name}" for name, count in hit.items())
    request.node.user_properties.append(("finding", f"{hit.total()} kills: {stages}"))


def killed_in_commits(
    bench: Bench, halfway: Sandbox, calm: Calm, wanted: int, name: str, fatal: Callable[[str], str]
) -> int:
    """Kill solves until `wanted` are dead, by the SABOTAGE that fatal(operation) says; a run that ends has the calm bits."""
    kills = life = 0
    while kills < wanted:
        sandbox = bench.sandbox(f"{name}-{life}", halfway)
        while kills < wanted:
            operation = OPERATIONS[kills % len(OPERATIONS)]
            spoilt = bench.sandbox(sandbox.root.name, SABOTAGE=fatal(operation))
            before = sandbox.generation
            done = spoilt.issue("run.until=solve")
            assert sandbox.generation >= before
            if done.code == 0:
                break
            assert done.code == -signal.SIGKILL, done.err
            kills += 1
        here(sandbox).finish("run.until=verify")
        assert_same_path(sandbox, calm)
        life += 1
    return kills


def operations(bench: Bench, halfway: Sandbox, name: str, how: str = "count") -> dict[str, int]:
    """How often the rest of a solve calls each file operation, as `how` counts; kills beyond that would hit nothing."""
    sandbox = bench.sandbox(f"{name}-counted", halfway)
    file = sandbox.root / "operations.json"
    done = bench.sandbox(sandbox.root.name, SABOTAGE=f"{how} {file}").issue("run.until=solve")
    assert done.code == 0, done.err
    counted: dict[str, int] = json.loads(file.read_text())
    assert min(counted.values()) > 0
    return counted


@pytest.mark.fault("kill in a commit")
def test_kill__at_any_file_operation_of_a_commit_changes_no_bit(
    bench: Bench, halfway: Sandbox, calm: Calm, form: str, request: pytest.FixtureRequest
) -> None:
    rng, calls = np.random.default_rng(1), operations(bench, halfway, "commits")

    def fatal(name: str) -> str:
        return f"kill {name} {rng.integers(1, calls[name] // 2, endpoint=True)}"

    kills = killed_in_commits(bench, halfway, calm, KILLS_IN_COMMITS[form], "commits", fatal)
    request.node.user_properties.append(("finding", f"{kills} kills"))


@pytest.mark.fault("kill behind")
def test_kill__of_a_solve_with_a_commit_in_flight_changes_no_bit(
    bench: Bench, halfway: Sandbox, calm: Calm, form: str, request: pytest.FixtureRequest
) -> None:
    """The thread that writes is killed at any of its file operations, together with the solve that has gone on."""
    rng = np.random.default_rng(2)
    calls = operations(bench, halfway, "behind", f"behind {SLOW_COMMIT} count")

    def fatal(name: str) -> str:
        return f"behind {rng.uniform(0.0, SLOW_COMMIT)} kill {name} {rng.integers(1, calls[name], endpoint=True)}"

    kills = killed_in_commits(bench, halfway, calm, KILLS_IN_COMMITS[form], "behind", fatal)
    request.node.user_properties.append(("finding", f"{kills} kills"))


@pytest.mark.fault("signal behind")
def test_signals__with_a_commit_in_flight_leave_that_and_the_last_state(bench: Bench, calm: Calm) -> None:
    sandbox = bench.sandbox("signals-behind", SABOTAGE="behind 0.2")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process, before = sandbox.start(), sandbox.generation
        wait_for(lambda before=before: in_flight(sandbox, before + 1), process)
        process.send_signal(number)
        done = ended(process)
        assert done.code == code
        assert "Rerun the same command to resume" in done.err
        assert sandbox.generation > before  # the one in flight, and another unless that was the last rebase point
        assert not list(sandbox.run.glob("state/.tmp-*"))
        assert not (sandbox.run / "path.zarr").exists()
    here(bench.sandbox(sandbox.root.name)).finish()
    assert_same_results(sandbox, calm)


@pytest.mark.fault("signal")
def test_signals__commit_and_tell_and_go_on_to_the_same_bits(bench: Bench, calm: Calm) -> None:
    sandbox = bench.sandbox("signals")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process, before = sandbox.start(), sandbox.generation
        wait_for(lambda before=before: sandbox.generation > before, process)
        process.send_signal(number)
        done = ended(process)
        assert done.code == code
        assert "Rerun the same command to resume" in done.err
        assert sandbox.generation > before
        assert not (sandbox.run / "path.zarr").exists()
    here(sandbox).finish()
    assert_same_results(sandbox, calm)
