"""A dask scheduler and workers in separate processes, as a user starts them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Site:
    """A scheduler and its workers; the workers' output is in `folder`."""

    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.workers: list[subprocess.Popen[str]] = []
        words = ["scheduler", "--host", host, "--port", "0", "--dashboard-address", ":0"]
        self.scheduler = self._start("scheduler", words)
        self.address = self._said("scheduler", r"Scheduler at:\s+(tcp://\S+)")

    def add(self, count: int = 1, path: str | None = None, within: Sequence[str] = ()) -> None:
        """More workers, ready to work: with `path` instead of the usual PYTHONPATH, `within` a command that starts them."""
        first = len(self.workers)
        for k in range(first, first + count):
            words = ["worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
            location = ["--local-directory", str(self.folder), "--death-timeout", "60", "--name", f"worker-{k}"]
            self.workers.append(self._start(f"worker-{k}", words + location, path, within))
        for k in range(first, first + count):
            self._said(f"worker-{k}", r"(Registered to)")

    def kill(self, k: int) -> None:
        """SIGKILL worker k."""
        self.workers[k].kill()
        self.workers[k].wait()

    def kill_later(self, k: int, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self.kill, [k])
        timer.start()
        return timer

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def _start(
        self, name: str, words: list[str], path: str | None = None, within: Sequence[str] = ()
    ) -> subprocess.Popen[str]:
        usual = os.pathsep.join([str(ROOT / ".src"), str(ROOT / "tests" / "support")])
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": usual if path is None else path}
        with (self.folder / f"{name}.log").open("w") as log:
            return subprocess.Popen(
                [*within, sys.executable, "-m", "dask", *words],
                env=env,
                stdout=log,
                stderr=log,
                text=True,
                cwd=self.folder,
            )

    def _said(self, name: str, pattern: str, seconds: float = 60.0) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = (self.folder / f"{name}.log").read_text()
            if match := re.search(pattern, text):
                return match.group(1)
            time.sleep(0.05)
        raise TimeoutError(f"{name}: nothing like {pattern!r} in\n{text}")


@contextlib.contextmanager
def site(folder: Path, workers: int) -> Iterator[Site]:
    """A scheduler with this number of workers; all are killed at the end."""
    made = Site(folder)
    try:
        made.add(workers)
        yield made
    finally:
        made.close()


def square(x: int) -> int:
    return x * x


def die_once(item: tuple[str, int]) -> int:
    """Ends its process the first time it sees item 2."""
    flag, number = Path(item[0]), item[1]
    if number == 2 and not flag.exists():
        flag.touch()
        os._exit(1)
    return number


def die(x: int) -> int:
    os._exit(1)
