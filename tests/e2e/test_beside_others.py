"""Gapwise works in a folder with somebody else's pipeline.py, stages.py, storage.py and conf/, installed from a wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    "+experiment=regpath_horseseg", "tracking=none", "path.lambda_min=0.1", "dataset.n_train=4", "dataset.n_test=2",
    "dataset.n_validation=2", "dataset.superpixels=20", "dataset.colour_words=8", "dataset.sift_words=8",
    "dataset.colour_samples=50", "dataset.sift_samples=50",
)  # fmt: skip


@dataclass
class Sandbox:
    """A folder with modules that must not be imported, and the Python that is used in it."""

    folder: Path
    python: Path

    def do(self, *command: str | Path, **env: str) -> str:
        """What a command prints."""
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [str(word) for word in command], cwd=self.folder, capture_output=True, text=True, timeout=500, check=False,
            env={**own, "NUMBA_DISABLE_JIT": "1", "MPLBACKEND": "agg", **env},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *words: str, **env: str) -> Path:
        """The directory of a run, made by the console script."""
        said = self.do(self.python.parent / "gapwise", *words, **env)
        return self.folder / said.splitlines()[-1].removeprefix("run: ")


def copy_of_the_sources(folder: Path) -> None:
    """Copy the packages, and the links that give them their names."""
    for name in (".src", "conf", "pipeline", "stages", "storage"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of this tree, because building leaves files beside the sources."""
    source, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    copy_of_the_sources(source)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    words = ["wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(made), str(source)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, timeout=300)
    (built,) = made.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of a virtual environment with the wheel, and with the packages that this one has."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    words = ["install", "-q", "--no-deps", "--no-index", "--no-cache-dir", str(wheel)]
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, *words], check=True, timeout=300)
    # .pth files of the folders below are not read, so that no editable install is seen
    packages = dict.fromkeys(
        [sysconfig.get_path("purelib"), *(path for path in sys.path if path.endswith("-packages"))]
    )
    (site / "packages.pth").write_text("\n".join(packages))
    return folder / "bin" / "python"


def test_wheel__has_one_name_beside_the_one_for_hydra_and_the_configuration(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {
        "gapwise", "hydra_plugins",
    }  # fmt: skip
    for room in ("conf", "pipeline", "stages", "storage"):
        installed = (".py", ".yaml", ".html", ".css", ".js")
        files = [file for file in (ROOT / room).rglob("*") if file.is_file() and file.suffix in installed]
        assert files
        for file in files:
            name = f"gapwise/{file.relative_to(ROOT).as_posix()}".replace("gapwise/pipeline/api", "gapwise")
            assert name in names, name


def test_run__and_predict(wheel_python: Path, tmp_path: Path) -> None:
    for name in ("pipeline", "stages", "storage"):
        (tmp_path / f"{name}.py").write_text(f"raise AssertionError('{name}.py is somebody else\\'s')\n")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("theirs: true\n")
    sandbox = Sandbox(tmp_path, wheel_python)
    run = sandbox.run(*SMALL)
    assert (run / "report.html").is_file()
    pixels = np.random.default_rng(0).integers(256, size=(40, 60, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    sandbox.do(wheel_python, "-m", "gapwise", "predict", run, "picture.png", "-o", "masks")
    assert {file.name for file in (tmp_path / "masks").iterdir()} == {
        "picture.png",
        "picture-overlay.png",
        "labels.csv",
    }
    with Image.open(tmp_path / "masks" / "picture.png") as mask:
        assert mask.size == (60, 40)


def test_checkout__that_is_not_installed_runs_its_own_code(tmp_path: Path) -> None:
    """As a copy that DVC makes for a queued experiment does; also in the processes that it starts."""
    copy_of_the_sources(tmp_path)
    (tmp_path / "pipeline" / "cli" / "toy.py").write_text(
        "import subprocess, sys\n"
        "from gapwise.pipeline.cli import Command\n"
        "def run(asked):\n"
        "    code = 'import gapwise.stages.solve as solve; print(solve.__file__)'\n"
        "    return subprocess.run([sys.executable, '-c', code]).returncode\n"
        "COMMAND = Command('A toy.', lambda parser: None, run)\n"
    )
    said = Sandbox(tmp_path, Path(sys.executable)).do(sys.executable, "-m", "pipeline", "toy")
    assert Path(said.strip()).resolve() == tmp_path.resolve() / "stages" / "solve.py"
