"""Two users on one folder of runs: a group with umask 002 shares them; otherwise the second is told whose they are.

``NUMBA_DISABLE_JIT=1 python test_two_users.py FOLDER`` acts as two users whose ids are not root's. Each command is one of a
forked child, because Python itself may lie where only root can read it: by then everything is imported. The outcomes are
printed as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import hydra
import pytest

ROOT = Path(__file__).resolve().parents[2]
GROUP, FIRST, SECOND = 4321, 4321, 4322
WORDS = "P\tw=a\tw=b\nQ\tw=b\n\nQ\tw=c\n\nP\tw=a\tw=d\nP\tw=c\nQ\tw=b\n\nQ\tw=b\nP\tw=d\n"


def data(folder: Path) -> list[str]:
    """Words of the command of a run on little text."""
    files = [f"dataset.file={folder}/words.txt", f"dataset.test_file={folder}/words.txt"]
    return ["dataset=sequences_csv", *files, "path=single", "path.lambda=1", "tracking=none", "compute=serial"]


def issue(folder: Path, root: str, user: int, umask: int, *more: str) -> tuple[int, str]:
    """Exit code and messages of the command of one user."""
    from in_process import Here

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code, err = 99, ""
        try:
            os.setgroups([])
            os.setgid(GROUP)
            os.setuid(user)
            os.umask(umask)
            done = Here(folder / root, data(folder)).issue(*more)
            code, err = done.code, done.err
        except BaseException as error:
            err = f"Traceback: {type(error).__name__}: {error}"
        os.write(writing, err.encode()[:60_000])
        os._exit(code)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def shared(folder: Path, name: str) -> Path:
    """A folder for runs that belongs to a group."""
    root = folder / name
    root.mkdir()
    os.chown(root, FIRST, GROUP)
    root.chmod(0o2775)
    return root


def act(folder: Path) -> None:
    from in_process import Here

    folder.chmod(0o755)
    (folder / "words.txt").write_text(WORDS)
    Here(folder / "root", data(folder)).finish()  # imports everything
    outcomes = {}
    together, apart = shared(folder, "together"), shared(folder, "apart")
    outcomes["begun"] = issue(folder, "together", FIRST, 0o002, "run.until=solve")
    outcomes["finished by the other"] = issue(folder, "together", SECOND, 0o002)
    outcomes["with the features of the other"] = issue(folder, "together", SECOND, 0o002, "path.lambda=2")
    outcomes["answered"] = issue(folder, "together", FIRST, 0o002)
    outcomes["begun for oneself"] = issue(folder, "apart", FIRST, 0o022, "run.until=solve")
    before = {file: file.read_bytes() for file in apart.rglob("*") if file.is_file()}
    outcomes["refused"] = issue(folder, "apart", SECOND, 0o022)
    unchanged = all(file.read_bytes() == content for file, content in before.items())
    outcomes["finished by oneself"] = issue(folder, "apart", FIRST, 0o022)
    features = len(list(together.glob("features/*/meta.json")))
    owners = sorted({file.stat().st_uid for file in together.rglob("*.json")})
    print(json.dumps({"found": outcomes, "features": features, "owners": owners, "unchanged": unchanged}))


def closed() -> list[Path]:
    """Folders above what a run reads (its own modules, Hydra's configuration) that other users may not enter."""
    read = [Path(__file__), Path(hydra.__file__).resolve()]
    return sorted({folder for file in read for folder in file.parents if folder.stat().st_mode & 0o005 != 0o005})


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two other users")
@pytest.mark.skipif(bool(closed()), reason=f"other users may not enter {', '.join(map(str, closed()))}")
def test_users__share_runs_by_a_group_and_are_told_whose_files_they_may_not_write() -> None:
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    with tempfile.TemporaryDirectory() as folder:  # others may look into it, not into pytest's
        done = subprocess.run([sys.executable, __file__, folder], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    for what, (code, err) in said["found"].items():
        assert code == (1 if what == "refused" else 0), (what, err)
        assert "Traceback" not in err
    _, told = said["found"]["refused"]
    assert f"belongs to the user with the number {FIRST}. To share a folder of runs, " in told
    assert "umask 002" in told
    assert Path(told.removeprefix("error: ").partition(":")[0]).name == "lock"
    assert said["features"] == 1, "the second took those of the first"
    assert {FIRST, SECOND} <= set(said["owners"])
    assert said["unchanged"]


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
    act(Path(sys.argv[1]))
