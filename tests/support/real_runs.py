"""Real commands in real processes, to be disturbed, repeated and compared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import equality
from waiting import PATIENCE

from gapwise.storage.files import read_json
from gapwise.storage.results import read_path

ROOT = Path(__file__).resolve().parents[2]
SABOTAGE = ROOT / "tests" / "faults" / "sabotage"


@dataclass
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str


@dataclass
class Sandbox:
    """Where one sequence of commands keeps its runs.

    Parameters
    ----------
    root : Path
        Made at the first command.
    command : list of str
        Overrides of the configuration.
    env : dict
        Environment variables besides those of this process.
    """

    root: Path
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)

    def start(self, *more: str, wrap: tuple[str, ...] = (), **options: Any) -> subprocess.Popen[str]:
        """Issue the command with `more` overrides, behind `wrap` if that is given."""
        ours = [str(ROOT / name) for name in (".src", ".", "tests/support")]
        path = os.pathsep.join(part for part in (self.env.get("PYTHONPATH"), *ours) if part)
        env = {**os.environ, "GAPWISE_RUNS": str(self.root), **self.env, "PYTHONPATH": path}
        command = [*wrap, sys.executable, "-m", "pipeline", *self.command, *more]
        self.root.mkdir(exist_ok=True)
        return subprocess.Popen(
            command, cwd=self.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )

    def issue(self, *more: str, wrap: tuple[str, ...] = (), **options: Any) -> Done:
        """Issue the command and wait for its end."""
        return ended(self.start(*more, wrap=wrap, **options))

    def finish(self, *more: str) -> Done:
        """Issue the command, which must succeed."""
        done = self.issue(*more)
        assert done.code == 0, done.err
        return done

    @property
    def run(self) -> Path:
        """The only run directory."""
        (run,) = (path.parent for path in self.root.glob("*/manifest.json"))
        return run

    @property
    def generation(self) -> int:
        """Number of the committed generation; 0 before there is one."""
        heads = list(self.root.glob("*/state/HEAD.json"))
        return int(read_json(heads[0])["generation"]) if heads else 0


def ended(process: subprocess.Popen[str]) -> Done:
    """Wait for the end of a command; if it does not end, it is killed and the test fails."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Done(process.returncode, out, err)


def kill(process: subprocess.Popen[str]) -> bool:
    """Send SIGKILL; returns whether the process was still alive."""
    process.send_signal(signal.SIGKILL)
    return ended(process).code == -signal.SIGKILL


def assert_same_path(sandbox: Sandbox, expected: Sandbox) -> None:
    """Assert that all arrays of solve and the result of verify agree to the bit, and that no scratch file is left."""
    equality.assert_same_path(sandbox.run, expected.run)
    assert (sandbox.run / "verify.json").read_bytes() == (expected.run / "verify.json").read_bytes()
    left = [path for path in sandbox.run.rglob("*") if path.name.startswith((".tmp-", ".old-"))]
    assert not left, left


def assert_same_results(sandbox: Sandbox, expected: Sandbox) -> None:
    """Assert that two complete runs left the same path, measures, metrics.json and result.json."""
    assert_same_path(sandbox, expected)
    a, b = (read_path(side.run / "path.zarr", None)[0].keys() for side in (sandbox, expected))
    assert a == b
    for name in ("metrics.json", "predictions.npz"):
        assert (sandbox.run / name).read_bytes() == (expected.run / name).read_bytes(), name
    assert files_of(sandbox.run / "predictions") == files_of(expected.run / "predictions")
    assert timeless(sandbox.run / "result.json") == timeless(expected.run / "result.json")
    assert sorted(path.name for path in (sandbox.run / "figures").iterdir()) == sorted(
        path.name for path in (expected.run / "figures").iterdir()
    )
    assert [path for path in sandbox.root.rglob(".*") if path.name.startswith((".tmp-", ".old-"))] == []


def files_of(folder: Path) -> dict[str, bytes]:
    """Contents of all files below a folder, by name."""
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    assert files
    return {name: file.read_bytes() for name, file in files.items()}


def timeless(file: Path) -> Any:
    """result.json without its seconds, and without its seal, which covers them."""
    result = json.loads(file.read_text(encoding="utf-8"))
    del result["seal"]
    for record in result["path"]:
        del record["seconds"]
    return result
