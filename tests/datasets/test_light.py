"""Asking what a data set depends on, as every command does, loads no heavy library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"numba", "scipy", "skimage", "sklearn", "cv2", "h5py", "PIL", "matplotlib"}


def files(folder: Path) -> dict[str, dict[str, str]]:
    """Options of every reader, over files that are there and hold nothing."""
    for name in ("train.txt", "test.txt", "letter.data", "usps.npz", "weizmann_horses_160.npz"):
        (folder / name).touch()
    (folder / "data").mkdir()
    for name in ("horse-features.bin", "horse-features-test.bin"):
        (folder / "data" / name).touch()
    for name in ("dev.e", "dev.f", "test.e", "test.f", "dev.wa.nonullalign", "test.wa.nonullalign"):
        (folder / name).touch()
    for name in ("en", "fr"):
        (folder / f"parallel_100k.{name}.gz").touch()
    root = {"root": str(folder)}
    (folder / "train.csv").touch()
    for number, name in enumerate(("train.txt", "test.txt")):  # lists of pictures to one of the readers
        (folder / name).write_text(str(number))
    for name in ("images", "masks"):
        (folder / name).mkdir()
        for number in range(2):
            (folder / name / f"{number}.png").touch()
    (folder / "classes.yaml").write_text("classes: [a, b]")
    text = {name: str(folder / "train.txt") for name in ("file", "test_file")}
    named = dict.fromkeys(("conll", "hansards", "ocr", "usps", "weizmann", "hdseg", "images"), root)
    arrays = {"file": str(folder / "train.csv")}
    return {**named, "horses_sample": {}, "sequences_csv": text, "multiclass_arrays": arrays}


@pytest.mark.parametrize(
    "name",
    [
        "conll", "hansards", "hdseg", "horses_sample", "images", "multiclass_arrays", "ocr", "sequences_csv", "usps",
        "weizmann",
    ],
)  # fmt: skip
def test_source__of_a_reader_loads_no_heavy_library(tmp_path: Path, name: str) -> None:
    code = f"""
import sys
from gapwise.stages.datasets import open_dataset
assert open_dataset({name!r}, {files(tmp_path)[name]!r}).files()
print(*sorted({{module.split(".")[0] for module in sys.modules}}))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(done.stdout.split())
