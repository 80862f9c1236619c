"""Finished runs of three structures, small enough to be made in a second, with everything that a report can show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from solved import options_of, path_of, solved

from gapwise.stages.evaluate import evaluate
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems import structure
from gapwise.stages.verify import verify
from gapwise.storage.features import FeatureWriter

EVIL = "<script>alert(1)</script>"
"""A label, and a word, that a careless page would run."""


class Finished(NamedTuple):
    """A finished run and its features."""

    run_dir: Path
    features: Path


def finished(folder: Path) -> dict[str, Finished]:
    """Structure to a finished path."""
    made = {"segmentation": pictures(folder), "chain": sentences(folder), "multiclass": digits(folder)}
    return {name: Finished(walked(folder / name, features), features) for name, features in made.items()}


def walked(run: Path, features: Path) -> Path:
    """Solve, verify and evaluate a path, and write the manifest's part that a report reads."""
    problem = open_problem(features, "train")
    solved(problem, run, options_of(), path_of(lambda_min=0.05))
    verify(problem, run)
    evaluate(features, run)
    science = {"dataset": {"name": f"{run.name} & {EVIL}"}, "path": {"eps": 0.1}}
    manifest = {
        "name": run.name,
        "solver": "bcpfw_gap_cache",
        "science": science,
        "stages": {"solve": {"seconds": 1.0}},
    }
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return run


def pictures(folder: Path) -> Path:
    """Four superpixels a picture, 20 x 30 pixels each; three of the test pictures are kept."""
    rng = np.random.default_rng(1)
    regions = np.repeat(np.repeat(np.arange(4, dtype=np.uint16).reshape(2, 2), 20, axis=0), 30, axis=1)
    with FeatureWriter(folder / "pictures") as writer:
        for split, count in (("train", 6), ("test", 3)):
            for _ in range(count):
                labels = (rng.random(4) < 0.5).astype(np.uint8)
                area = np.full(4, 600.0)
                block = {
                    "unary": (rng.normal(size=(4, 3)) + 0.4 * np.where(labels, 1, -1)[:, None]).astype(np.float32),
                    "pairwise": rng.random((3, 2)).astype(np.float32),
                    "edges": np.array([[0, 1], [0, 2], [1, 3]], np.int32),
                    "labels": labels, "area": area, "foreground": area * np.where(labels, 0.9, 0.1),
                }  # fmt: skip
                block |= structure("segmentation").derived(**block)
                if split == "test":
                    block |= {
                        "hw": np.array([[40, 60]], np.int32), "superpixel_map": regions.ravel(),
                        "mask": labels[regions].ravel(), "rgb": rng.integers(255, size=(2400, 3)).astype(np.uint8),
                    }  # fmt: skip
                writer.append(split, **block)
        writer.meta = {"structure": "segmentation", "dataset": "horses_sample"}
    return folder / "pictures"


def sentences(folder: Path, unseen: str = "") -> Path:
    """A file in columns whose words and labels are HTML; every test sentence ends with the word `unseen`, if given."""
    rng = np.random.default_rng(2)
    words, tags = ["dog", "runs", f"x{EVIL}"], ["N", "V", EVIL]
    for split, count in (("train", 8), ("test", 6)):
        lines = []
        for _ in range(count):
            for k in rng.integers(3, size=4):
                lines.append(f"{words[k]} {tags[k if rng.random() < 0.8 else rng.integers(3)]}")
            lines += [f"{unseen} {EVIL}"] if unseen and split == "test" else []
            lines.append("")
        (folder / f"{split}.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / "template").write_text("U00:%x[0,0]\nU01:%x[-1,0]\n", encoding="utf-8")
    files = {"file": folder / "train.txt", "test_file": folder / "test.txt", "template": folder / "template"}
    options = {"name": "sequences_csv", "min_count": 1} | {name: str(file) for name, file in files.items()}
    featurize(options, folder / "sentences", key="k", map_blocks=map, report=lambda *_: None)
    return folder / "sentences"


def digits(folder: Path) -> Path:
    """Three classes of 16 x 16 pictures."""
    rng = np.random.default_rng(3)
    with FeatureWriter(folder / "digits") as writer:
        for split, count in (("train", 9), ("test", 30)):
            labels = rng.integers(3, size=count).astype(np.uint8)
            images = 0.15 * rng.normal(size=(count, 256)) + 0.5 * np.eye(3, 256)[labels]
            writer.put(split, "x", images)
            writer.put(split, "labels", labels)
        writer.meta = {"structure": "multiclass", "classes": 3, "dataset": "usps"}
    return folder / "digits"


BEST = 0.5


def falling(error: float, lack: float, fall: float, lam: float = 0.01, passes: int = 9) -> dict[str, np.ndarray]:
    """Both suboptimalities fall by the factor `fall` each pass; without a dual point where `lack` is nan."""
    k = np.arange(float(passes))
    primal, dual = BEST + error * fall**k, BEST - lack * fall**k
    whole = {"breakpoint": 0 * k, "oracle_calls": 100 * k, "steps": 100 * k}
    return {
        **{name: values.astype(np.int64) for name, values in whole.items()},
        "lambda": 0 * k + lam, "passes": k, "seconds": 0.01 * k, "stale_gap": 0 * k, "dual": dual, "primal": primal,
        "gap": primal - dual, "test_loss": 0.2 + 0.1 * fall**k, "nonuniformity": 0 * k + 1.0,
        "curvature_nonuniformity": 0 * k + 1.0,
    }  # fmt: skip
