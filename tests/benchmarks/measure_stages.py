"""Seconds of every stage of a whole command as shares of the solve, or seconds and memory with a process for each stage:

    python tests/benchmarks/measure_stages.py --whole +experiment=regpath_conll path.eps=0.02 dataset.root=DATA/conll2000
    python tests/benchmarks/measure_stages.py run.root=FOLDER dataset=hdseg dataset.root=RELEASE ... [--limit 6]

``--whole`` issues the command twice without MLflow, each in a new folder; the first compiles what is not compiled, the
second is the warm job. What no stage takes is the start: imports, keys, the summary.

Everything but the options is passed on to ``python -m pipeline``. After the stages the whole command runs once more with
MLflow: it finds all stages done and shows the run there. Columns: seconds by the clock and of the processor; the largest
resident set of a process, in which pages of memory-mapped features count that the system may drop at any time; and the
most anonymous memory of all processes of the stage together, which it may not, read every `EVERY` seconds.

``--limit`` is a hard bound on the anonymous memory of each process (``RLIMIT_DATA``, in GiB): a stage that asks for more
fails. It counts what is reserved, so the table's figures are smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

STAGES = ("featurize", "init_path", "solve", "verify", "evaluate", "report")
AGAIN = "again, with MLflow"
EVERY = 0.1
LINES = 16
"""Lines of the last command's output to show."""


class Cost(NamedTuple):
    """What one command took."""

    name: str
    seconds: float
    cpu: float
    """seconds of the processor, of all its processes"""
    resident: float
    """GB, the largest of a process"""
    anonymous: float
    """GB, all processes together"""
    ended: int
    """exit code"""
    output: str
    """what it printed"""

    def row(self) -> str:
        """A row of a Markdown table."""
        figures = (f"{self.seconds:.1f}", f"{self.cpu:.1f}", f"{self.resident:.2f}", f"{self.anonymous:.2f}")
        return f"| {' | '.join((self.name, *figures))} |" + (f" exit code {self.ended}" if self.ended else "")


HEAD = "| stage | s | CPU s | largest resident GB | anonymous GB |\n|---|---|---|---|---|"


def processes(root: int) -> list[int]:
    """The process `root` and all below it that live."""
    pids, left = [], [root]
    while left:
        pid = left.pop()
        pids.append(pid)
        try:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                left += [int(child) for child in (thread / "children").read_text().split()]
        except OSError:
            continue  # it has ended
    return pids


def anonymous(pid: int) -> int:
    """Bytes of anonymous memory of a process; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


def measure(name: str, command: list[str], limit: float | None = None) -> Cost:
    """Run `command` to its end; `limit`: GiB of anonymous memory that each of its processes may reserve."""

    def bounded() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (int(limit * 2**30), int(limit * 2**30)))

    began, most, ended = time.perf_counter(), 0, 0
    with tempfile.TemporaryFile() as output:
        started = subprocess.Popen(command, stdout=output, stderr=output, preexec_fn=bounded)
        while not ended:
            most = max(most, sum(anonymous(pid) for pid in processes(started.pid)))
            time.sleep(EVERY)
            ended, status, usage = os.wait4(started.pid, os.WNOHANG)
        started.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        output.seek(0)
        printed = output.read().decode(errors="replace")
    cpu, resident = usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss
    return Cost(name, seconds, cpu, resident / 1e9, most / 1e9, started.returncode, printed)


def measure_stages(
    overrides: list[str], *, limit: float | None = None, stages: Sequence[str] = STAGES, show: Callable[[str], None]
) -> list[Cost]:
    """Measure these stages of a run, and after the last one the whole command with MLflow; stops at the first that fails.

    Each stage is measured with what is missing before it.
    """
    pipeline = [sys.executable, "-m", "pipeline", *overrides]
    commands = {stage: [*pipeline, "tracking=none", f"run.until={stage}"] for stage in stages}
    costs: list[Cost] = []
    show(HEAD)
    if STAGES[-1] in stages:
        commands[AGAIN] = [*pipeline, "tracking=mlflow"]
    for name, command in commands.items():
        costs.append(measure(name, command, limit))
        show(costs[-1].row())
        if costs[-1].ended:
            break
    show("\n".join(costs[-1].output.strip().splitlines()[-LINES:]))
    return costs


def measure_whole(overrides: list[str], *, show: Callable[[str], None]) -> int:
    """Print the stages of a whole command, cold (or as the kernel cache has it) and warm; returns its exit code."""
    for kind in ("first", "again, warm"):
        with tempfile.TemporaryDirectory() as root:
            cost = measure(kind, [sys.executable, "-m", "pipeline", *overrides, "tracking=none", f"run.root={root}"])
            if cost.ended:
                show(cost.output)
                return cost.ended
            (run,) = (file.parent for file in Path(root).glob("*/manifest.json"))
            stages = json.loads((run / "manifest.json").read_text())["stages"]
            path = json.loads((run / "result.json").read_text())["path"]
        solving = sum(row["seconds"] for row in path)
        rows = {name: float(facts["seconds"]) for name, facts in stages.items()}
        rows = {**rows, "start and end": cost.seconds - sum(rows.values()), "all": cost.seconds}
        show(f"\n{kind}: solving {solving:.1f} s by the clock; the command {cost.cpu:.1f} s of the processor")
        show("| stage | s by the clock | share of solving |\n|---|---|---|")
        for name, seconds in rows.items():
            show(f"| {name} | {seconds:.1f} | {seconds / solving:.2f} |")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="+", metavar="KEY=VALUE")
    parser.add_argument("--limit", type=float, help="GiB of anonymous memory of each process")
    parser.add_argument("--stages", nargs="+", default=STAGES, choices=STAGES, help="all by default")
    parser.add_argument("--whole", action="store_true", help="one command, its stages as shares of the solve")
    asked = parser.parse_intermixed_args()
    if asked.whole:
        return measure_whole(asked.overrides, show=lambda text: print(text, flush=True))
    costs = measure_stages(
        asked.overrides, limit=asked.limit, stages=asked.stages, show=lambda text: print(text, flush=True)
    )
    return costs[-1].ended


if __name__ == "__main__":
    sys.exit(main())
