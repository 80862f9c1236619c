"""SIGTERM within passes over blocks that take seconds: every stage ends soon, and the command goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from real_runs import Place, ended

LABELS, SEQUENCES = 250, 25_000
"""A pass visits 1.6 10⁹ local coordinates, 62,750 of each token."""

LIMIT = 0.6
"""Seconds of CPU after the signal, of all threads: what else the machine does is not counted. A pass takes one and more."""

COMMAND = """
import os, signal, sys, threading, time
from importlib import import_module

module, name, note = sys.argv[1:4]
del sys.argv[1:4]


def stop_soon():
    end = time.process_time() + 0.1
    while time.process_time() < end:
        time.sleep(0.005)
    with open(note, "w") as file:
        file.write(str(time.process_time()))
    os.kill(os.getpid(), signal.SIGTERM)


def watched(*arguments, **options):
    threading.Thread(target=stop_soon, daemon=True).start()
    setattr(import_module(module), name, real)
    return real(*arguments, **options)


from gapwise.pipeline.compute.local import pin_threads

pin_threads()
if os.environ.get("GAPWISE_KERNELS"):
    os.environ.setdefault("NUMBA_CACHE_LOCATOR_CLASSES", "gapwise.pipeline.compute.kernel_cache.ByContent")
real = getattr(import_module(module), name)
setattr(import_module(module), name, watched)

from gapwise.pipeline.entry import leave, main

leave(main())
"""
"""`gapwise`, with a SIGTERM to itself a tenth of a second of CPU after a function has been called for the first time."""

PATH = ["path.eps=0.9"], ["gapwise.stages.solver.path.start start_driver", "gapwise.stages.solver.iterate derive"]
POINT = (
    ["path=single", "path.lambda=1", "solver.max_passes=1"],
    [
        "gapwise.stages.solver.gaps run_driver",
        "gapwise.stages.certify.recompute summed",
        "gapwise.stages.certify.recompute inside_driver",
        "gapwise.stages.evaluate predict",
    ],
)
"""Overrides, and the functions: of init_path and solve; of solve, verify and evaluate."""


@pytest.mark.slow
@pytest.mark.parametrize(("choices", "functions"), [PATH, POINT], ids=["path", "point"])
def test_sigterm__ends_every_stage_soon_and_the_command_goes_on(tmp_path: Path, choices, functions) -> None:
    data, note = tmp_path / "tokens.txt", tmp_path / "note"
    data.write_text("\n".join(f"L{k % LABELS}\tx={k % 7}\n" for k in range(SEQUENCES)))
    files = [f"dataset.file={data}", f"dataset.test_file={data}", "tracking=none"]
    place = Place(tmp_path / "runs", ["dataset=sequences_csv", *files, *choices])
    place.finish("run.until=featurize")
    for function in functions:
        env = {**os.environ, "GAPWISE_RUNS": str(place.root), "GAPWISE_PRECOMPILE": "0"}
        words = [sys.executable, "-c", COMMAND, *function.split(), str(note), *place.command]
        with subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 128 + signal.SIGTERM, f"{function}: {said}"
        assert used.ru_utime + used.ru_stime - float(note.read_text()) <= LIMIT, f"{function}: {said}"
    if choices == POINT[0]:  # a path would also be checked between its solved points, pass by pass
        assert ended(place.start()).code == 0
