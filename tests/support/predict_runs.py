"""Finished runs on seven kinds of data, and predictions for the raw input of their test splits by the command.

``NUMBA_DISABLE_JIT=1 python predict_runs.py FOLDER``: one process that compiles nothing makes all of them, because the data
sets' types of array are not among those that the tests compile.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from waiting import python

ROOT = Path(__file__).resolve().parents[2]
WORDS = {"B": ("the", "a"), "I": ("cat", "dog", "cats"), "O": ("sat", "ran", "and")}
TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[1,1]\nB\n"
SINGLE = ("path=single", "path.lambda=0.1", "path.tolerance=0.2", "path.relative=false")
PICTURES = {"n_train": 3, "n_test": 7, "superpixels": 12, "colour_words": 4, "sift_words": 4}
FEW = ("solver.max_passes=8",)


def make(folder: Path) -> None:
    """Make everything below `folder`, in a process of its own."""
    python(__file__, folder, NUMBA_DISABLE_JIT="1")


def text(seed: int, count: int) -> str:
    """Sequences of words, a column that tells nothing, and labels."""
    import numpy as np

    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(count):
        labels = [str(label) for label in rng.choice(list(WORDS), size=rng.integers(2, 6))]
        words = [str(rng.choice(WORDS[label])) for label in labels]
        blocks.append(
            "\n".join(f"{word} X{rng.integers(2)} {label}" for word, label in zip(words, labels, strict=True))
        )
    return "\n\n".join(blocks) + "\n"


def documents(rng: Any, queries: int) -> str:
    """Documents of queries, every other one with two levels of relevance, in SVMlight's format."""
    lines = []
    for query in range(queries):
        for k in range(int(rng.integers(3, 7))):
            relevance = (k == 0) + (query % 2) * (k < 2)
            x = rng.normal(size=3) + relevance
            lines.append(f"{relevance} qid:{10 + query} 1:{x[0]:.6f} 3:{x[1]:.6f} 4:{x[2]:.6f} # doc {k}")
    return "\n".join(lines) + "\n"


def _make(folder: Path) -> None:
    import numpy as np
    from in_process import Here
    from PIL import Image

    from gapwise.stages.datasets.vision.horse_scenes import compose

    (folder / "train.txt").write_text(text(0, 15), encoding="utf-8")
    (folder / "test.txt").write_text(text(1, 6).replace("dog", "élan", 1), encoding="utf-8")
    (folder / "template").write_text(TEMPLATE, encoding="utf-8")
    rng = np.random.default_rng(0)
    digits = {f"y_{split}": np.arange(n, dtype=np.uint8) % 10 for split, n in (("train", 20), ("test", 7))}
    images = {
        f"X_{name[2:]}": (0.6 * np.eye(10, 256)[y] + rng.integers(-400, 401, size=(y.size, 256)) / 1000).astype(
            np.float32
        )
        for name, y in digits.items()
    }
    np.savez(folder / "digits.npz", **digits, **images)
    np.savez(folder / "new.npz", X=images["X_test"])
    for name, queries in (("train", 8), ("test", 5)):
        (folder / f"{name}.svmlight").write_text(documents(rng, queries), encoding="utf-8")
    (folder / "pictures").mkdir()
    for number in range(PICTURES["n_test"]):
        Image.fromarray(compose(0, 1, number).rgb).save(folder / "pictures" / f"{number:03d}.png")

    (folder / "runs").mkdir()
    sequences = [f"dataset.{name}={folder / file}" for name, file in (("file", "train.txt"), ("test_file", "test.txt"))]
    runs = {
        "chain": (
            *("dataset=sequences_csv", *sequences, f"dataset.template={folder}/template"),
            *("path.eps=0.1", "path.lambda_min=0.1", "path.rule=two_sided"),
        ),
        "multiclass": ("dataset=multiclass_arrays", f"dataset.file={folder}/digits.npz", *SINGLE, *FEW),
        "pictures": (
            *("dataset=horses_sample", *(f"dataset.{name}={value}" for name, value in PICTURES.items())),
            *("path=single", "path.lambda=10", "path.tolerance=0.5", *FEW),
        ),
        "held": (
            *("dataset=sequences_csv", *sequences, f"dataset.template={folder}/template", "dataset.validation=0.4"),
            *(*SINGLE, *FEW),
        ),
        "ranking": (
            *("dataset=ranking", f"dataset.file={folder}/train.svmlight", f"dataset.test_file={folder}/test.svmlight"),
            *(*SINGLE, *FEW),
        ),
        "oracle": ("dataset=python_oracle", "dataset.oracle=python_task:Pairs", *SINGLE, *FEW),
    }
    inputs = {"chain": folder / "test.txt", "multiclass": folder / "new.npz", "pictures": folder / "pictures"}
    inputs |= {"ranking": folder / "test.svmlight", "held": folder / "test.txt"}
    for name, command in runs.items():
        sandbox = Here(folder / "runs" / name, [*command, "tracking=none", "compute=serial"])
        sandbox.finish()
        given, run = str(inputs.get(name, "test")), str(sandbox.run)
        for out in (f"{name}-labels.npz", f"{name}-shown"):
            predict(run, given, *(["--trust"] if name == "oracle" else []), out=folder / out)
        if name == "held":
            _predict_with_probabilities(folder, run)
    _predict_elsewhere(folder)


def _predict_with_probabilities(folder: Path, run: str) -> None:
    """Predict the test split of sequences by a run and by its exported model, with probabilities."""
    from gapwise.pipeline.cli import carry_out

    text = str(folder / "test.txt")
    predict(run, text, "--calibrate", "isotonic", out=folder / "held-margins")
    assert carry_out(["export", run, "--calibrate", "isotonic", "-o", str(folder / "held.gapwise")]) == 0
    predict(str(folder / "held.gapwise"), text, "--margins", out=folder / "held-exported-margins")


def predict(*words: str, out: Path) -> None:
    """Give the command, which must succeed."""
    from gapwise.pipeline.cli import carry_out

    assert carry_out(["predict", *words, "-o", str(out)]) == 0


def _predict_elsewhere(folder: Path) -> None:
    """Predict the test split of the chain in other ways: without labels, in two files, and by an exported model alone."""
    from gapwise.pipeline.cli import carry_out

    (run,) = (folder / "runs" / "chain").glob("sequences_csv-*")
    blocks = (folder / "test.txt").read_text(encoding="utf-8").strip("\n").split("\n\n")
    bare = ["\n".join(line.rsplit(" ", 1)[0] for line in block.split("\n")) for block in blocks]
    for name, part in (("bare", bare), ("first", blocks[:2]), ("rest", blocks[2:])):
        (folder / f"{name}.txt").write_text("\n\n".join(part) + "\n", encoding="utf-8")
    predict(str(run), str(folder / "bare.txt"), out=folder / "bare-shown")
    predict(str(run), *(str(folder / f"{name}.txt") for name in ("first", "rest")), out=folder / "joined-shown")
    for form in ("gapwise", "mlflow"):
        assert carry_out(["export", str(run), "--format", form, "-o", str(folder / f"chain.{form}")]) == 0
    hidden = run.parent.rename(folder / "runs" / "hidden")
    for file in (folder / "chain.gapwise").rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)
    predict(str(folder / "chain.gapwise"), str(folder / "test.txt"), out=folder / "exported-shown")
    hidden.rename(run.parent)


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
    _make(Path(sys.argv[1]))
