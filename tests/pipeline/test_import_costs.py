"""What a command or an estimator must not load: each library takes longer than what people wait for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fake_runs import fake_run
from waiting import python

STORES = {"dask", "distributed", "hydra", "mlflow", "omegaconf", "xarray", "zarr"}
DRAWING = {"PIL", "cv2", "jinja2", "matplotlib", "skimage"}
COMPUTING = {"h5py", "numba", "pandas", "scipy", "sklearn"}


def options_of_readers(folder: Path) -> dict[str, dict[str, str]]:
    """Options of readers, over files that are there and hold nothing."""
    for name in ("train.txt", "test.txt", "letter.data", "usps.npz", "weizmann_horses_original.tar"):
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


def loaded(steps: Mapping[str, str]) -> dict[str, set[str]]:
    """The libraries that are loaded after each of these pieces of code, in one process, by their names."""
    libraries = sorted({"numpy", "sklearn.metrics", *STORES, *DRAWING, *COMPUTING})
    tell = f"print({{name!r}}, *(m for m in {libraries} if m in sys.modules), file=sys.stderr)"
    code = "\n".join(["import sys", *(f"{step}\n{tell.format(name=name)}" for name, step in steps.items())])
    done = python("-c", code, NUMBA_DISABLE_JIT="1")
    words = [line.split() for line in done.stderr.splitlines()]
    return {word[0]: set(word[1:]) for word in words if word[0] in steps}


def test_commands__load_what_they_need(tmp_path: Path) -> None:
    """The package, the list of stages, `ls` and `show` load no library; what a data set depends on, numpy alone."""
    fake_run(tmp_path)
    fake_run(tmp_path, "toy-bcfw-00000002", done=("featurize",))
    look = "from gapwise.pipeline.cli import carry_out"
    at_once = {
        "package": "import gapwise",
        "stages": "from gapwise.pipeline.stage_graph import stages; stages()",
        "figures": "from gapwise.stages.reports.sweep_figures import FIGURES",
        "ls": f"{look}; assert carry_out(['ls', '--root', {str(tmp_path)!r}]) == 0",
    }
    (tmp_path / "data").mkdir()
    opened = "from gapwise.stages.datasets import open_dataset; assert open_dataset"
    readers = {
        name: f"{opened}({name!r}, {options!r}).files()"
        for name, options in options_of_readers(tmp_path / "data").items()
    }
    found = loaded({**at_once, **readers})
    assert {name: found[name] for name in at_once} == {name: set() for name in at_once}
    assert {name: found[name] for name in readers} == {name: {"numpy"} for name in readers}


def test_estimator__loads_no_store_and_draws_nothing() -> None:
    """Of scikit-learn only what its base class loads, which is more than one would think: pandas is among it."""
    fit = "gapwise.MulticlassSVM().fit([[x % 7.0, -x % 3.0] for x in range(12)], [x % 2 for x in range(12)])"
    found = loaded({"import": "import gapwise; gapwise.MulticlassSVM", "fit": fit, "path": "gapwise.open_path"})
    assert found["import"] == found["fit"] == {"numba", "numpy", "pandas", "scipy", "sklearn"}
    assert found["path"] - found["fit"] == {"xarray"}
