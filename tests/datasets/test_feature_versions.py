"""Tiny features of every kind are those of their version: a reader or structure whose features change has another one.

After an edit that is meant to change features: raise `version` of the reader (or, for what a structure derives, its
number in `problems.VERSIONS`), then ``python tests/datasets/test_feature_versions.py`` writes the file anew.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gapwise.stages.datasets import open_dataset, version_of
from gapwise.stages.featurize import featurize
from gapwise.storage.features import open_features

FILE = Path(__file__).with_name("feature_versions.json")
WORDS = {"superpixels": 12, "colour_words": 4, "sift_words": 4}
TEXT = "the DT B-NP\nold JJ I-NP\nman NN I-NP\nran VB O\n\nhe PR B-NP\nran VB O\n\n"
LINES = "N\tw=a\tlen:1.5\nV\tw=b\n\nV\tw=b\tlen:2\n\n"
CASES = {
    "conll": {"root": "", "min_count": 1},
    "columns": {"name": "sequences_csv", "file": "train.txt", "test_file": "train.txt", "template": "template"},
    "lines": {"name": "sequences_csv", "file": "lines", "test_file": "lines", "label_weights": "balanced"},
    "ocr": {"root": ""},
    "usps": {"root": "", "kernel": "rbf"},
    "csv": {"name": "multiclass_arrays", "file": "rows.csv", "bias": 1.0, "validation": {"share": 0.25, "seed": 0}},
    "svmlight": {"name": "multiclass_arrays", "file": "rows.svm"},
    "hard_and_easy": {"n": 4, "classes": 3},
    "ranking": {"file": "queries"},
    "two": {"name": "images", "root": "two", **WORDS},
    "three": {"name": "images", "root": "three", **WORDS},
    "horses_sample": {"n_train": 2, "n_test": 1, "features": "s15", **WORDS},
    "tree_maps": {"file": "maps.npz", "test_file": "maps.npz", "types": 2},
    "python_oracle": {"oracle": "python_task:Pairs"},
}  # fmt: skip
PATHS = {"root", "file", "test_file", "template"}


def make_raw(folder: Path) -> None:
    """Raw data of all cases."""
    rng = np.random.default_rng(0)
    for name in ("train.txt", "test.txt"):
        (folder / name).write_text(TEXT)
    (folder / "template").write_text("U0:%x[0,0]\nU1:%x[-1,1]/%x[0,0]\n")
    (folder / "lines").write_text(LINES)
    head = ("\t".join(map(str, [k, "ab"[k % 2], -1, k // 2, k % 2 + 1, k // 4])) for k in range(8))
    ink = rng.integers(2, size=(8, 128)).astype(str)
    (folder / "letter.data").write_text("".join("\t".join([a, *b]) + "\n" for a, b in zip(head, ink, strict=True)))
    for name in ("zip.train", "zip.test"):
        rows = np.column_stack([np.arange(4), rng.integers(-1000, 1001, size=(4, 256)) / 1000.0])
        np.savetxt(folder / name, rows, fmt="%.3f")
    x, y = rng.integers(0, 9, size=(16, 3)) / 2.0, np.arange(16) % 3
    (folder / "rows.csv").write_text("".join(",".join(map(str, [*a, b])) + "\n" for a, b in zip(x, y, strict=True)))
    pairs = (" ".join(f"{j}:{v}" for j, v in enumerate(row, 1) if v) for row in x)
    (folder / "rows.svm").write_text("".join(f"{b} {a}\n" for a, b in zip(pairs, y, strict=True)))
    queries = (f"{k % 2} qid:{k // 4} 1:{x[k, 0]} 2:{x[k, 1]}\n" for k in range(16))
    (folder / "queries").write_text("".join(queries))
    maps = {"unary": rng.normal(size=(3, 3, 4, 5)), "places": rng.integers(4, size=(3, 3, 2)), "loss_scale": np.ones(3)}
    np.savez(folder / "maps.npz", parent=[-1, 0, 1], **maps)
    for name, classes in (("two", "[a, b]"), ("three", "[a, b, c]")):
        (folder / name / "images").mkdir(parents=True)
        (folder / name / "masks").mkdir()
        (folder / name / "classes.yaml").write_text(f"classes: {classes}\nvoid: 255\n")
        for k in range(3):
            squares = rng.integers(256, size=(5, 6, 3)), rng.integers(2 if name == "two" else 3, size=(5, 6))
            rgb, mask = (np.kron(a, np.ones((8, 8, 1)[: a.ndim], int)).astype(np.uint8) for a in squares)
            mask[:8, :8] = 255
            Image.fromarray(rgb).save(folder / name / f"images/{k}.png")
            Image.fromarray(mask).save(folder / name / f"masks/{k}.png")


def features_of(case: str, raw: Path, store: Path) -> dict[str, str]:
    """The version, and what numbers each array has: four digits, so that libraries may round otherwise."""
    given = {key: str(raw / value) if key in PATHS else value for key, value in {"name": case, **CASES[case]}.items()}
    featurize(given, store, key="k", map_blocks=map, report=lambda *_: None)
    structure = open_dataset(given["name"], given).structure
    stored, found = open_features(store), {"version": version_of(given["name"], structure)}
    for file in sorted(stored.meta["files"]):
        split, name = file.removesuffix(".npy").split("/")
        array = np.asarray(stored.arrays(split)[name])
        sizes = np.abs(array.astype(np.float64)).ravel()
        numbers = f"{sizes.sum():.4g} {sizes @ (np.arange(sizes.size) % 7 + 1.0):.4g}"
        found[file] = f"{array.dtype} {'x'.join(map(str, array.shape))}: {numbers}"
    return found


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make_raw(folder := tmp_path_factory.mktemp("raw"))
    return folder


@pytest.mark.parametrize("case", CASES)
def test_features__are_those_of_their_version(case: str, raw: Path, tmp_path: Path) -> None:
    expected, found = json.loads(FILE.read_text())[case], features_of(case, raw, tmp_path / "store")
    assert found["version"] == expected["version"], "another version: write the file anew, as this module says"
    assert found == expected, "the features changed, so raise the version of the reader or of the structure"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
    with tempfile.TemporaryDirectory() as made:
        make_raw(Path(made))
        table = {case: features_of(case, Path(made), Path(made) / f"store-{case}") for case in CASES}
    FILE.write_text(json.dumps(table, indent=1) + "\n")
