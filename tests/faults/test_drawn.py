"""Faults that a seed draws: each is survived with the same bits, or told and then mended.

Each fault hits a copy of a run that is complete, solved but not verified, or stopped half-way; then the plain command is
issued. Where it fails, its message is obeyed: what it names is deleted, and the command repeated. A fault counts as wrong if
a command ends with 0 and other results than an undisturbed run, and as lost if what was committed goes without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from in_process import Here
from real_runs import Done, assert_same_results

from gapwise.storage.files import remove

PATIENCE = 5
"""Commands after which a fault that still is an error counts as wrong."""


def a_file(sandbox: Here, rng: np.random.Generator) -> Path:
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


def flip(file: Path, rng: np.random.Generator, victim: Path) -> None:
    content = bytearray(file.read_bytes())
    bit = int(rng.integers(8 * len(content)))
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)


def overwrite(file: Path, rng: np.random.Generator, victim: Path) -> None:
    content = bytearray(file.read_bytes())
    begin, end = sorted(rng.integers(len(content) + 1, size=2))
    content[begin:end] = rng.bytes(int(end - begin))
    file.write_bytes(content)


def cut(file: Path, rng: np.random.Generator, victim: Path) -> None:
    file.write_bytes(file.read_bytes()[: int(rng.integers(file.stat().st_size))])


def gone(file: Path, rng: np.random.Generator, victim: Path) -> None:
    """The file, or all of its folder."""
    remove(file.parent if rng.random() < 0.3 and file.suffix != ".txt" else file)


def link(file: Path, rng: np.random.Generator, victim: Path) -> None:
    """A link to somebody else's file in the place of a file."""
    remove(file)
    file.symlink_to(victim)


def obey(sandbox: Here, done: Done) -> None:
    """Delete what the error names, as its message says."""
    error = re.findall(r"^error: .*", done.err, re.MULTILINE)[-1]
    named = [Path(word) for word in re.findall(rf"{re.escape(str(sandbox.root))}[^\s:;,()]*", error)]
    named = [path for path in (Path(str(path).rstrip(".")) for path in named) if path.exists() or path.is_symlink()]
    if "remove the link" in error:
        named[0].unlink()
    elif "Move the directory away" in error:
        remove(named[0].parent)
    elif named and re.search(r"\bdelete (it|the directory)\b", error):
        remove(named[0])
    elif told := re.search(rf"\bdelete ({re.escape(str(sandbox.root))}\S*)", error):
        remove(Path(told[1]))


def assert_survived(sandbox: Here, calm: Here, before: int) -> None:
    """Issue the command until it ends with 0, obeying its errors."""
    for _ in range(PATIENCE):
        done = sandbox.issue()
        assert "Traceback" not in done.err, done.err
        if done.code == 0:
            assert_same_results(sandbox, calm)
            return
        assert done.code == 1, done.err
        assert before == 0 or sandbox.generation >= before - 1, f"lost: {done.err}"
        before = 0
        obey(sandbox, done)
    raise AssertionError(f"it still is an error after {PATIENCE} commands: {done.err}")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 3))])
@pytest.mark.parametrize("fault", [flip, overwrite, cut, gone, link], ids=lambda fault: fault.__name__)
def test_fault__is_survived_or_told(
    request: pytest.FixtureRequest, calm: Here, copy: Callable[[Here], Here], tmp_path: Path, seed: int, fault: Callable
) -> None:
    rng = np.random.default_rng([seed, *fault.__name__.encode()])
    sandbox = copy(request.getfixturevalue(rng.choice(["calm", "solved", "halfway"])))
    victim = tmp_path / "victim"
    victim.write_text("precious")
    file, before = a_file(sandbox, rng), sandbox.generation
    fault(file, rng, victim)
    assert_survived(sandbox, calm, 0 if "state" in file.parts else before)
    assert victim.read_text() == "precious", "somebody else's file was written"
