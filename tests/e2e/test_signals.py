"""SIGTERM within passes over blocks that take seconds: every stage ends soon, and the command goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from real_runs import Sandbox, ended, long

COMMAND = """
import os, signal, sys, threading, time
from importlib import import_module

module, name, note = sys.argv[1:4]
once = threading.Lock()
del sys.argv[1:4]


def stop_soon():
    end = time.process_time() + 0.1
    while time.process_time() < end:
        time.sleep(0.005)
    with open(note, "w") as file:
        file.write(str(time.process_time()))
    os.kill(os.getpid(), signal.SIGTERM)


def watched(*arguments, **options):
    if once.acquire(blocking=False):  # several threads may call it at the same time
        threading.Thread(target=stop_soon, daemon=True).start()
    setattr(import_module(module), name, real)
    return real(*arguments, **options)


from gapwise.pipeline.compute.local import pin_threads

pin_threads()
real = getattr(import_module(module), name)
setattr(import_module(module), name, watched)

from gapwise.pipeline.entry import leave, main

leave(main())
"""
"""`gapwise`, with a SIGTERM to itself a tenth of a second of CPU after a function has been called for the first time."""

POINT = ["path=single", "path.lambda=1", "solver.max_passes=1"]
HELD = ["path.eps=0.9", "path.max_breakpoints=1", "dataset.validation=0.1", "run.refit=true"]
IN = "gapwise.stages"
EVALUATED = [
    f"{IN}.solver.gaps run_driver",
    f"{IN}.certify.recompute summed",
    f"{IN}.certify.recompute compare_stored",
    f"{IN}.evaluate predict",
]
"""Functions of solve, verify and evaluate; all are written as the module and the name."""
STARTED = [f"{IN}.solver.path.start start_driver", f"{IN}.solver.iterate derive"]
"""Functions of init_path and solve."""
REFITTED = [f"{IN}.featurize join", f"{IN}.refit refit", f"{IN}.refit measure"]
SHOWN = [f"{IN}.reports.page sections_of"]
WHOLE = [f"{IN}.featurize featurize", *STARTED, *EVALUATED, *REFITTED, *SHOWN]


class Case(NamedTuple):
    """A pass visits `sequences` blocks of labels + labels² local coordinates, more than 10⁹ in all."""

    labels: int
    sequences: int
    choices: list[str]
    functions: list[str]
    """In the order in which the run calls them first; each gets a run of the command that ends there."""
    limit: float = 0.6
    """Seconds of CPU after the signal, of all threads: what else the machine does is not counted. A pass takes one and more;
    a visit with 3,000 labels, or the import that the signal comes in, a few tenths."""
    length: int = 1
    """Tokens of a sequence; each label has to occur."""


CASES = {
    "path": Case(250, 25_000, ["path.eps=0.9"], STARTED),
    "point": Case(250, 25_000, POINT, EVALUATED),
}
LARGE = {"1,000 labels": Case(1_000, 1_500, HELD, WHOLE, 1.5), "3,000 labels": Case(3_000, 150, HELD, WHOLE, 1.5, 20)}


@pytest.mark.slow
@pytest.mark.parametrize("case", [*map(CASES.get, CASES), *map(long, LARGE.values())], ids=[*CASES, *LARGE])
def test_sigterm__ends_every_stage_soon_and_the_command_goes_on(tmp_path: Path, case: Case) -> None:
    data, note = tmp_path / "tokens.txt", tmp_path / "note"
    lines = [f"L{k % case.labels}\tx={k % 7}\n" for k in range(case.sequences * case.length)]
    data.write_text("\n".join("".join(lines[k : k + case.length]) for k in range(0, len(lines), case.length)))
    files = [f"dataset.file={data}", f"dataset.test_file={data}", "tracking=none"]
    sandbox = Sandbox(tmp_path / "runs", ["dataset=sequences_csv", *files, *case.choices])
    if WHOLE[0] not in case.functions:
        sandbox.finish("run.until=featurize")
    for function in case.functions:
        note.unlink(missing_ok=True)
        env = {**os.environ, "GAPWISE_RUNS": str(sandbox.root), "GAPWISE_PRECOMPILE": "0"}
        words = [sys.executable, "-c", COMMAND, *function.split(), str(note), *sandbox.command]
        with subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 128 + signal.SIGTERM, f"{function}: {said}"
        assert used.ru_utime + used.ru_stime - float(note.read_text()) <= case.limit, f"{function}: {said}"
    if case is not CASES["path"]:  # a path would also be checked between its solved points, pass by pass
        assert ended(sandbox.start()).code == 0
