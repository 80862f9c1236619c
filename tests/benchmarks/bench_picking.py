"""Which rule picks lambda best: test loss of the model of all blocks at the lambda that each rule picks, over random splits.

    python tests/benchmarks/bench_picking.py [folder of the data sets] [--tasks conll_500 ocr usps ...] [--splits 10]

A split draws n training blocks and divides them into five folds. Every fold gets the path of the other four; the first fold
alone is a held-out fifth. All losses are taken at common lambdas, 8 a decade, and "refit" is the path of all n blocks at a
fifth of eps, whose test losses at these lambdas were not looked at in picking. The table has the mean test loss of each
rule, in percent, with the standard error of its paired difference to `least`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from gapwise import path as solve_path  # noqa: E402
from gapwise.stages.choice.grid import common_grid  # noqa: E402
from gapwise.stages.datasets import Blocks, open_dataset  # noqa: E402
from gapwise.stages.model.predict import predict  # noqa: E402
from gapwise.stages.problems import build, structure  # noqa: E402
from gapwise.stages.problems.protocol import Problem  # noqa: E402
from gapwise.storage.paths import SolvedPath  # noqa: E402

TASKS: dict[str, tuple[str, dict[str, Any], int]] = {
    "conll_500": ("conll", {"root": "conll2000"}, 500),
    "conll_2000": ("conll", {"root": "conll2000"}, 2000),
    "ocr": ("ocr", {"root": "ocr", "size": "large"}, 600),
    "usps": ("usps", {"root": "usps"}, 1000),
}
"""Reader, its options, and n."""
FOLDS = 5
STRIDE = 2
"""Of the 16 lambdas a decade of `common_grid`."""
F1 = "chunk_f1"


def read(folder: Path, name: str, options: Mapping[str, Any]) -> tuple[Blocks, dict[str, Any]]:
    """All blocks, and the meta of their problems."""
    reader = open_dataset(name, {"name": name, **options, "root": str(folder / options["root"])})
    sink = Blocks(reader.structure)
    meta = reader.featurize(sink, map, lambda *_: None)
    return sink, {**meta, "structure": reader.structure}


def blocks_of(sink: Blocks, chosen: np.ndarray, size: int) -> dict[str, np.ndarray]:
    """Arrays of the training blocks with these numbers."""
    mask = np.zeros(size, bool)
    mask[chosen] = True
    return sink.part("train", mask)


class Measured:
    """Losses (lambdas, blocks) of a path's models on some blocks, and chunk F1 where there is one."""

    def __init__(
        self, path: SolvedPath, lams: np.ndarray, problem: Problem, arrays: Mapping[str, Any], name: str
    ) -> None:
        losses, scores, before = [], [], None
        for lam in lams:
            w = path.weights_at(float(lam)).values
            if before is None or not np.array_equal(w, before):
                labels, loss = predict(problem, w)
                score = structure(name).metrics(problem, arrays, labels).get(F1, np.nan)
            losses.append(loss)
            scores.append(score)
            before = w
        self.losses, self.scores = np.array(losses), np.array(scores)


def smooth(values: np.ndarray, width: int) -> np.ndarray:
    """Means over `width` neighbours to either side, of those that there are."""
    return np.array([np.mean(values[max(0, k - width) : k + width + 1]) for k in range(values.size)])


def largest_within(values: np.ndarray, slack: float) -> int:
    """The first (largest) lambda whose value is at most the least plus `slack`."""
    return int(np.argmax(values <= values.min() + slack))


def parabola(lams: np.ndarray, values: np.ndarray) -> int:
    """The lambda nearest to the vertex of a parabola in log lambda through the values within a decade of the least."""
    x, best = np.log10(lams), int(np.argmin(values))
    near = np.abs(x - x[best]) <= 1.0
    if near.sum() < 4:
        return best
    a, b, _ = np.polyfit(x[near], values[near], 2)
    vertex = -b / (2 * a) if a > 0 else x[best]
    return int(np.argmin(np.abs(x - np.clip(vertex, x[near].min(), x[near].max()))))


def picks(lams: np.ndarray, folds: list[Measured], breakpoints: np.ndarray, n: int) -> dict[str, int]:
    """Position of the picked lambda by rule; lambdas fall."""
    per_block = folds[0].losses
    one, error = per_block.mean(axis=1), per_block.std(axis=1, ddof=1) / np.sqrt(per_block.shape[1])
    means = np.array([fold.losses.mean(axis=1) for fold in folds])
    many, errors = means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(len(folds))
    solved = np.unique([int(np.argmin(np.abs(np.log(lams / lam)))) for lam in breakpoints])
    picked = {
        "1/n": int(np.argmin(np.abs(np.log(lams * n)))),
        "breakpoints": int(solved[np.argmin(one[solved])]),
        "least": int(np.argmin(one)),
        "one standard error": largest_within(one, error[np.argmin(one)]),
        "half a standard error": largest_within(one, error[np.argmin(one)] / 2),
        "mean of 1/4 decade": int(np.argmin(smooth(one, 1))),
        "mean of 1 decade": int(np.argmin(smooth(one, 4))),
        "parabola": parabola(lams, one),
        "5 folds, least": int(np.argmin(many)),
        "5 folds, one standard error": largest_within(many, errors[np.argmin(many)]),
        "5 folds, mean of 1/4 decade": int(np.argmin(smooth(many, 1))),
        "5 folds, mean of 1 decade": int(np.argmin(smooth(many, 4))),
        "5 folds, parabola": parabola(lams, many),
    }
    if not np.isnan(folds[0].scores).any():
        picked |= {
            "F1": int(np.argmax(folds[0].scores)),
            "5 folds, F1": int(np.argmax(np.mean([fold.scores for fold in folds], axis=0))),
        }
    return picked


def split(
    sink: Blocks,
    meta: Mapping[str, Any],
    test: tuple[Problem, Mapping[str, Any]],
    size: int,
    n: int,
    seed: int,
    eps: float,
) -> tuple[dict[str, float], dict[str, float]]:
    """Test loss and F1 of each rule on one split."""
    order = np.random.default_rng(seed).permutation(size)[:n]
    name, parts, paths = meta["structure"], [], []
    for k in range(FOLDS):
        held, rest = order[k::FOLDS], np.delete(order, np.s_[k::FOLDS])
        arrays = blocks_of(sink, held, size)
        paths.append(solve_path(build(name, blocks_of(sink, rest, size), meta), eps, verify=False))
        parts.append((build(name, arrays, meta), arrays))
    whole = solve_path(build(name, blocks_of(sink, order, size), meta), eps / 5, verify=False)
    lams = common_grid([*paths, whole])[::STRIDE]
    folds = [Measured(path, lams, *part, name) for path, part in zip(paths, parts, strict=True)]
    tested = Measured(whole, lams, *test, name)
    losses = tested.losses.mean(axis=1)
    picked = picks(lams, folds, paths[0]["lambda"].values, n) | {"hindsight": int(np.argmin(losses))}
    return {rule: 100 * float(losses[k]) for rule, k in picked.items()}, {
        rule: 100 * float(tested.scores[k]) for rule, k in picked.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parents[3] / "shared" / "data")
    parser.add_argument("--tasks", nargs="+", default=[*TASKS], choices=[*TASKS])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--eps", type=float, default=0.1)
    args = parser.parse_args()
    for task in args.tasks:
        begun = time.process_time()
        reader, options, n = TASKS[task]
        sink, meta = read(args.folder, reader, options)
        name, arrays = meta["structure"], sink.arrays("test")
        test = build(name, arrays, meta), arrays
        size = build(name, sink.arrays("train"), meta).n
        rows: dict[str, list[float]] = defaultdict(list)
        scores: dict[str, list[float]] = defaultdict(list)
        for seed in range(args.splits):
            losses, f1 = split(sink, meta, test, size, n, seed, args.eps)
            for rule, value in losses.items():
                rows[rule].append(value)
                scores[rule].append(f1[rule])
            print(f"{task} {seed}: {time.process_time() - begun:.0f} s of CPU", file=sys.stderr, flush=True)
        print(f"\n{task}, eps {args.eps:g}, {args.splits} splits, {time.process_time() - begun:.0f} s of CPU")
        print("| rule | test loss, % | less `least` | F1, % |\n|---|---|---|---|")
        least = np.array(rows["least"])
        for rule, values in rows.items():
            less = np.array(values) - least
            error = less.std(ddof=1) / np.sqrt(less.size)
            print(
                f"| {rule} | {np.mean(values):.3f} | {less.mean():+.3f} ± {error:.3f} | {np.mean(scores[rule]):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
