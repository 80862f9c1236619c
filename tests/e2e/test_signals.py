"""SIGTERM within a pass over blocks that takes seconds: it ends soon, and the command goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import Here

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


@pytest.mark.slow
def test_sigterm__ends_a_pass_over_many_blocks_soon_and_the_command_goes_on(tmp_path: Path) -> None:
    """A pass visits blocks of 10⁹ local coordinates in all, which takes a second and more."""
    data, note, labels = tmp_path / "tokens.txt", tmp_path / "note", 250
    data.write_text("\n".join(f"L{k % labels}\tx={k % 7}\n" for k in range(20_000)))
    files = [f"dataset.file={data}", f"dataset.test_file={data}", "tracking=none", "run.until=verify"]
    choices = ["path=single", "path.lambda=1", "solver.max_passes=1"]
    sandbox = Here(tmp_path / "runs", ["dataset=sequences_csv", *files, *choices])
    env = {**os.environ, "GAPWISE_RUNS": str(sandbox.root), "GAPWISE_PRECOMPILE": "0"}
    words = [sys.executable, "-c", COMMAND, "gapwise.stages.solver.exact", "run_driver", str(note), *sandbox.command]
    with subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 128 + signal.SIGTERM, said
    assert used.ru_utime + used.ru_stime - float(note.read_text()) <= 0.6, said
    sandbox.finish()
