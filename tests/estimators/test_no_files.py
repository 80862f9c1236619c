"""`fit` without a folder makes no file and no folder: a hook watches every call of Python that could."""

from __future__ import annotations

from pathlib import Path

from waiting import python

SCRIPT = """
import os, sys, warnings
from pathlib import Path
from library import blobs
from gapwise.pipeline.api import MulticlassSVM, path, solve

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MAKING = {"os.mkdir", "os.rename", "os.link", "os.symlink", "shutil.copyfile", "shutil.copytree", "shutil.move",
          "tempfile.mkstemp", "tempfile.mkdtemp", "sqlite3.connect"}
made, kernels = [], str(Path(os.environ["GAPWISE_KERNELS"]).resolve())

def watch(event, arguments):
    if event == "open":
        name, mode, flags = arguments
        writes = bool((flags or 0) & WRITING) or any(letter in (mode or "") for letter in "wax+")
    else:
        writes = event in MAKING
        name = arguments[0] if arguments else event
    if not writes or not isinstance(name, (str, bytes, os.PathLike)):
        return
    where = os.path.abspath(os.fsdecode(name))
    # code that numba compiles, and the bytecode of modules, are kept where they always are
    if not where.startswith((kernels, os.devnull)) and "__pycache__" not in where and not where.endswith(".pyc"):
        made.append((event, where))

X, y = blobs()
sys.addaudithook(watch)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    MulticlassSVM(lam=0.1, tolerance=0.1).fit(X, y)
    MulticlassSVM(lam="path", eps=0.5).fit(X, y).predict(X)
    MulticlassSVM(lam=0.01, tolerance=1e-6, max_seconds=1e-6).fit(X, y)
    problem = MulticlassSVM().problem(X, y)
    solve(problem, [0.1, 1.0], tolerance=0.1)
    path(problem, 0.5)
    print(*made, sep="\\n")
    print("in a folder")
    MulticlassSVM(lam=0.1, tolerance=0.1).fit(X, y, run_dir="run")
    print(*made, sep="\\n")
"""


def test_fit__makes_no_file_but_in_a_folder(tmp_path: Path) -> None:
    done = python("-c", SCRIPT, cwd=tmp_path)
    without, within = done.stdout.split("in a folder\n")
    assert without.strip() == ""
    assert "fit.json" in within
    assert "os.mkdir" in within
    assert [file.name for file in tmp_path.iterdir() if file.name != "kernels"] == ["run"]
