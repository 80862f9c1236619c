"""A thousand faults, drawn with a seed from all kinds: each is survived with the same bits, or told and then mended.

Each fault hits a copy of a run that is complete, solved but not verified, or stopped half-way; then the plain command is
issued. Where it fails, its message is obeyed: what it names is deleted, and the command repeated. A fault counts as wrong if
a command ends with 0 and other results than an undisturbed run, and as lost if what was committed goes without a word.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import resealed
from in_process import Here, here
from real_runs import Bench, Calm, Done, Sandbox, assert_same_results, kill, long
from reseal import reseal

from gapwise.storage.files import remove

pytestmark = pytest.mark.slow

SHARES = 20
"""Parts of the thousand, one test each."""
SHORT = 10
"""Faults of the first share without --faults=full."""
EACH = {
    "SIGKILL": 5, "SIGKILL in a commit": 3, "flip": 13, "overwrite": 5, "cut": 6, "gone": 5, "link": 5, "resealed": 8,
}  # fmt: skip
"""Faults of each kind in a share: together 50."""
PATIENCE = 5
"""Commands after which a fault that still is an error counts as wrong."""


@dataclass
class Runs:
    """The sound runs that are disturbed, and what all of them lead to."""

    bench: Bench
    calm: Calm
    solved: Sandbox
    halfway: Sandbox
    victim: Path

    def any(self, rng: np.random.Generator) -> Sandbox:
        return (self.calm, self.solved, self.halfway)[rng.choice(3, p=[0.4, 0.3, 0.3])]


Fault = Callable[[Here, Runs, np.random.Generator], str]
"""Does its harm to a sandbox; returns what it did, in words."""


def a_file(sandbox: Sandbox, rng: np.random.Generator) -> Path:
    """A file that is not empty; kinds of files are as likely as each other, however many chunks there are."""
    files = [path for path in sorted(sandbox.root.rglob("*")) if path.is_file() and path.stat().st_size]
    kinds = sorted({kind_of(path) for path in files})
    kind = kinds[rng.integers(len(kinds))]
    some = [path for path in files if kind_of(path) == kind]
    return some[rng.integers(len(some))]


def kind_of(path: Path) -> str:
    """Files that serve the same end have the same kind."""
    tree = next((part for part in path.parts if part.endswith((".zarr", ".hydra"))), path.parent.name)
    name = path.name if path.suffix in (".json", ".npy", ".npz") else path.suffix
    return re.sub(r"\d+", "", f"{tree}/{name}")


def flip(sandbox: Here, runs: Runs, rng: np.random.Generator) -> str:
    file = a_file(sandbox, rng)
    content = bytearray(file.read_bytes())
    bit = int(rng.integers(8 * len(content)))
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)
    return f"bit {bit} of {file}"


def overwrite(sandbox: Here, runs: Runs, rng: np.random.Generator) -> str:
    file = a_file(sandbox, rng)
    content = bytearray(file.read_bytes())
    begin, end = sorted(rng.integers(len(content) + 1, size=2))
    content[begin:end] = rng.bytes(int(end - begin))
    file.write_bytes(content)
    return f"bytes {begin}:{end} of {file}"


def cut(sandbox: Here, runs: Runs, rng: np.random.Generator) -> str:
    file = a_file(sandbox, rng)
    file.write_bytes(file.read_bytes()[: int(rng.integers(file.stat().st_size))])
    return f"{file} cut"


def gone(sandbox: Here, runs: Runs, rng: np.random.Generator) -> str:
    file = a_file(sandbox, rng)
    trees = [path for path in file.parents if path.is_relative_to(sandbox.root) and path != sandbox.root]
    what = trees[rng.integers(len(trees))] if trees and rng.random() < 0.3 else file
    remove(what)
    return f"{what} gone"


def link(sandbox: Here, runs: Runs, rng: np.random.Generator) -> str:
    """A link to somebody else's file in the place of a file, of a lock, or of a temporary file."""
    file = a_file(sandbox, rng)
    which = rng.integers(3)
    if which == 1:
        file = file.with_name(f".tmp-{file.name}")
    elif which == 2:
        locks = sorted(sandbox.root.rglob("*lock"))
        file = locks[rng.integers(len(locks))]
    if which != 1:
        remove(file)
    file.symlink_to(runs.victim)
    return f"{file} a link"


def tampered(sandbox: Here, runs: Runs, rng: np.random.Generator) -> str:
    """Tampering that arithmetic finds, with all checksums made again."""
    rows = resealed.CAUGHT_IN_STATE if not (sandbox.run / "path.zarr").exists() else resealed.CAUGHT_IN_PATH
    row = list(rows)[rng.integers(len(rows))]
    name = list(rows[row])[rng.integers(len(rows[row]))]
    rows[row][name](sandbox.run)
    reseal(sandbox.root)
    for file in ("verify.json", "result.json"):  # or a complete run would be taken at its word
        (sandbox.run / file).unlink(missing_ok=True)
    return f"{row} {name} resealed in {sandbox.run}"


FAULTS: dict[str, Fault] = {
    "flip": flip, "overwrite": overwrite, "cut": cut, "gone": gone, "link": link, "resealed": tampered,
}  # fmt: skip


def obey(sandbox: Here, done: Done) -> None:
    """Delete what the error names, as its message says."""
    error = re.findall(r"^error: .*", done.err, re.MULTILINE)[-1]
    named = [Path(word) for word in re.findall(rf"{re.escape(str(sandbox.root))}[^\s:;,()]*", error)]
    named = [path for path in (Path(str(path).rstrip(".")) for path in named) if path.exists() or path.is_symlink()]
    if "remove the link" in error:
        named[0].unlink()
    elif "If path.zarr has changed" in error:
        remove(named[0] / "path.zarr")
        if (sandbox.root / "obeyed").exists():  # "if that fails as well"
            remove(named[0] / "state")
        (sandbox.root / "obeyed").touch()
    elif "Move the directory away" in error:
        remove(named[0].parent)
    elif named and re.search(r"\bdelete (it|the directory)\b", error):
        remove(named[0])
    elif told := re.search(rf"\bdelete ({re.escape(str(sandbox.root))}\S*)", error):
        remove(Path(told[1]))


def outcome(sandbox: Here, runs: Runs, before: int) -> str:
    """Issue the command until it ends with 0, obeying its errors; what came of it."""
    for tried in range(PATIENCE):
        done = sandbox.issue()
        assert "Traceback" not in done.err, done.err
        if done.code == 0:
            for path in sandbox.root.rglob(".tmp-*"):
                if path.is_symlink():  # `link` put it where nothing had to be written
                    path.unlink()
            assert_same_results(sandbox, runs.calm)
            return "the same bits" if tried == 0 else "exit 1, then the same bits"
        assert done.code == 1, done.err
        assert "error: " in done.err, done.err
        assert before == 0 or sandbox.generation >= before - 1, f"lost: {done.err}"
        before = 0
        obey(sandbox, done)
    raise AssertionError(f"it still is an error after {PATIENCE} commands: {done.err}")


def killed(runs: Runs, number: str, rng: np.random.Generator, kind: str) -> str:
    """Real processes: one is killed, and the command issued again."""
    like = runs.halfway if rng.random() < 0.7 or kind != "SIGKILL" else None
    sandbox = runs.bench.sandbox(f"killed-{number}", like)
    before = sandbox.generation
    if kind == "SIGKILL":
        process = sandbox.start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.1, 1.0) * runs.calm.seconds)
        was_alive = kill(process)
    else:
        calls = {"fsync": 120, "rename": 6, "replace": 8}
        name = list(calls)[rng.integers(len(calls))]
        spoilt = runs.bench.sandbox(sandbox.root.name, SABOTAGE=f"kill {name} {rng.integers(1, calls[name])}")
        was_alive = spoilt.issue("run.until=solve").code == -signal.SIGKILL
    assert sandbox.generation >= before, "lost"
    here(sandbox).finish()
    assert_same_results(sandbox, runs.calm)
    shutil.rmtree(sandbox.root)
    return "the same bits" if was_alive else "done before the kill, the same bits"


@pytest.fixture(scope="module")
def runs(bench: Bench, calm: Calm, solved: Sandbox, halfway: Sandbox, folder: Path) -> Runs:
    (folder / "victim").write_text("precious")
    return Runs(bench, calm, solved, halfway, folder / "victim")


@pytest.mark.timeout(7200)  # fifty faults take 90 s of CPU time, but the cores may be shared with others
@pytest.mark.fault("thousand")
@pytest.mark.parametrize("share", [0, *map(long, range(1, SHARES))])
def test_faults__drawn_from_all_kinds_are_survived_or_told(
    runs: Runs, form: str, drawn: Counter[tuple[str, str]], share: int, request: pytest.FixtureRequest
) -> None:
    rng = np.random.default_rng([share, 7])
    kinds = [kind for kind, count in EACH.items() for _ in range(count)]
    kinds = [str(kind) for kind in rng.permutation(kinds if form == "full" else [*FAULTS] * (SHORT // len(FAULTS)))]
    wrong = []
    for number, kind in enumerate(kinds):
        what = kind
        try:
            if kind not in FAULTS:
                way = killed(runs, f"{share}-{number}", rng, kind)
            else:
                sandbox = here(runs.bench.sandbox(f"fault-{share}-{number}", runs.any(rng)))
                before = sandbox.generation
                what = FAULTS[kind](sandbox, runs, rng)
                way = outcome(sandbox, runs, 0 if "/state" in what else before)
                shutil.rmtree(sandbox.root)
            assert runs.victim.read_text() == "precious", "somebody else's file was written"
        except Exception as error:
            way = "lost or wrong"
            wrong.append(f"fault {number}, {what}: {type(error).__name__}: {error}")
        drawn[kind, way] += 1
    request.node.user_properties.append(("finding", f"{len(kinds)} faults, {len(wrong)} lost or wrong"))
    assert not wrong, "\n".join(wrong)
