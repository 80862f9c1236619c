"""`+experiment=practice`: figures against other code, tuning, the page and its numbers, the machinery on tiny data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from configs import composed

from gapwise.pipeline.config.settings import CONF
from gapwise.pipeline.practice import judges, run
from gapwise.pipeline.practice.contest import Asked, Data, Part, by_validation
from gapwise.pipeline.practice.measure import BRIEF, LEAST, MANY, fastest_of, resampled
from gapwise.pipeline.practice.ours import by_estimator
from gapwise.pipeline.practice.page import page, rows_of, sources, summary
from gapwise.pipeline.practice.peers import pairs
from gapwise.pipeline.practice.run import PracticeOptions
from gapwise.pipeline.practice.table import TASKS
from gapwise.stages.problems.chain.metrics import chunk_scores
from gapwise.stages.problems.matching.metrics import scores
from gapwise.storage.files import write_json

ROOT = CONF.parent
NAMES = ["O", "B-NP", "I-NP", "B-VP", "I-VP"]


def test_options__are_those_of_conf_and_refused_by_name() -> None:
    options = PracticeOptions(**composed("+experiment=practice").practice)
    options.check()
    assert options.tasks == [*TASKS]
    for given, said in (
        ({"size": "small"}, r"practice\.size: expected one of tiny, full, got 'small'"),
        ({"only": ["ocr"]}, r"practice\.only: there is no 'ocr'; there are: ocr_small"),
        ({"who": ["crf"]}, r"practice\.who: there is no 'crf'; there are: gapwise"),
        ({"seconds": 0.0}, r"practice\.seconds: expected CPU seconds > 0, got 0\.0"),
    ):
        with pytest.raises(ValueError, match=said):
            PracticeOptions(**given).check()


def test_chunks__are_those_of_the_chain_metrics() -> None:
    rng = np.random.default_rng(0)
    ptr = np.cumsum([0, *rng.integers(1, 9, 200)])
    truth, predicted = rng.integers(0, 5, (2, ptr[-1]))
    sentences = [slice(a, b) for a, b in pairwise(ptr)]
    tags = [[[NAMES[k] for k in labels[s]] for s in sentences] for labels in (truth, predicted)]
    sums = judges.CHUNKS.table(Part(tags[0], tags[0], tags[0]), tags[1]).sum(axis=0)
    f1, error = (figure.of(sums) for figure in judges.CHUNKS.figures)
    assert f1 == pytest.approx(chunk_scores(NAMES, ptr, truth, predicted)["chunk_f1"], abs=1e-15)
    assert error == np.mean(truth != predicted)


def test_links__are_those_of_the_matching_metrics() -> None:
    rng = np.random.default_rng(0)
    kinds = [[{(int(j), int(k)) for j, k in rng.integers(0, 4, (5, 2))} for _ in range(30)] for _ in range(3)]
    sure, possible, predicted = kinds
    truth = list(zip(sure, possible, strict=True))
    sums = judges.ALIGNMENT.table(Part(sure, sure, truth), predicted).sum(axis=0)
    flat = [{(i, j, k) for i, links in enumerate(kind) for j, k in links} for kind in (predicted, sure, possible)]
    expected = scores(*flat)
    measured = [figure.of(sums) for figure in judges.ALIGNMENT.figures]
    assert measured == pytest.approx([expected[name] for name in ("aer", "precision", "recall")])


def test_pixels__count_mixed_superpixels() -> None:
    truth = [np.array([[3.0, 1.0], [0.0, 4.0]]), np.array([[2.0, 2.0]])]
    sums = judges.HORSES.table(Part(truth, truth, truth), [[1, 1], [0]]).sum(axis=0)
    accuracy, iou = (figure.of(sums) for figure in judges.HORSES.figures)
    assert (accuracy, iou) == (7 / 12, 5 / 10)


def test_standard_errors__are_those_of_a_mean() -> None:
    counts = np.stack([np.arange(400) % 4 == 0, np.ones(400), np.zeros(400), np.ones(400)], axis=1).astype(float)
    assert resampled(judges.ERROR, counts)["error"] == pytest.approx(np.sqrt(0.25 * 0.75 / 400), rel=0.1)


def asked(seconds: float, folder: Path) -> Asked:
    units = [[k] for k in range(50)]
    part = Part(units, units, units)
    return Asked(Data(part, part), judges.ERROR, 0, seconds, folder)


def test_tuning__takes_the_setting_that_is_best_on_held_out_units_and_trains_on_all(tmp_path: Path) -> None:
    fitted = []

    def fit(part: Part, setting: dict, folder: Path) -> tuple:
        fitted.append((setting["shift"], {unit[0] for unit in part.x}))
        return lambda x: [[unit[0] + setting["shift"]] for unit in x], 7

    tuned = by_validation(fit, [{"shift": shift} for shift in (2, 1, 0, 3)])(asked(1e3, tmp_path))
    assert [shift for shift, _ in fitted] == [2, 1, 0, 3, 0]
    assert [len(units) for _, units in fitted] == [40, 40, 40, 40, 50]
    assert (tuned.setting, tuned.size, tuned.note) == ("shift = 0 (last of the grid)", 7, "")


def test_tuning__ends_within_its_seconds(tmp_path: Path) -> None:
    def fit(part: Part, setting: dict, folder: Path) -> tuple:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        return lambda x: x, 1

    tuned = by_validation(fit, [{"k": 1}, {"k": 2}])(asked(0.04, tmp_path))
    assert tuned.note == "1 of 2 settings within 0.04 s"


def test_pairs__rank_better_documents_first(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=5), list(rng.normal(size=(40, 12, 5)))
    relevance = [np.digitize(documents @ w, [-1.0, 1.0]).astype(float) for documents in x]
    predict, size = pairs.fit(Part(x[:30], relevance[:30], relevance[:30]), {"C": 1.0}, tmp_path)
    counts = judges.ORDER.table(Part(x[30:], relevance[30:], relevance[30:]), predict(x[30:]))
    ndcg, swapped = (figure.of(counts.sum(axis=0)) for figure in judges.ORDER.figures)
    assert ndcg > 0.95
    assert swapped < 0.05
    assert size > 0


def test_missing__package_is_said() -> None:
    contestant = replace(TASKS["conll"].contestants["crfsuite_lbfgs"], needs=("no_such_module",))
    assert contestant.missing() == 'no_such_module is not installed; pip install "gapwise[practice]" brings it'


def test_brief_predictions__are_timed_together() -> None:
    calls: list[int] = []
    result, seconds = fastest_of(lambda: calls.append(1) or len(calls))
    assert (result, len(calls)) == (1, 1 + LEAST * MANY)
    assert 0.0 <= seconds < BRIEF


def test_page__is_what_its_numbers_say() -> None:
    numbers = json.loads((ROOT / ".github" / "results" / "practice.json").read_text())
    assert numbers["size"] == "full"
    assert (ROOT / ".github" / "results" / "PRACTICE.md").read_text(encoding="utf-8") == page(numbers)


def test_sources__are_those_of_the_records() -> None:
    measured = [{"figures": {}, "source": name} for name in ("b2", "a1", "b2")]
    assert sources({"source": "c3", "records": [*measured, {"left_out": "no data"}]}) == "a1, b2"
    assert sources({"source": "c3", "records": [*measured, {"figures": {}}]}) == "a1, b2, up to c3"
    assert sources({"source": None, "records": []}) == "unknown"


def record(who: str, error: float, se: float, *, ours: bool = False) -> dict:
    return {
        "task": "usps", "who": who, "says": who, "ours": ours, "figures": {"error": error}, "resampled": {"error": se},
        "seconds": 1.0, "predict_seconds": 0.5, "bytes": 1500, "setting": "C = 1", "note": "", "load": 1.0, "day": "today",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mine", "standing"), [(0.05, "first"), (0.0605, "within one standard error"), (0.07, "behind")]
)
def test_summary__says_where_ours_is(mine: float, standing: str) -> None:
    rows = rows_of(
        {"records": [record("gapwise", mine, 0.001, ours=True), record("svc", 0.06, 0.001), record("b", 0.2, 1)]}
    )
    line = summary("usps", rows["usps"])
    assert line is not None
    assert line[4] == standing
    assert line[3] == "0.0600 ± 0.0010, svc"


class Guess:
    """An estimator whose held-out loss is known; it has all of what `by_estimator` asks for."""

    def __init__(self, seed: int, gamma: float, lam: object = "auto") -> None:
        self.gamma, self.lam, self.lambda_ = gamma, lam, 0.5

    def fit(self, x: np.ndarray, y: np.ndarray) -> Guess:
        losses = {1.0: [0.1, 0.3], 2.0: [0.25, 0.2], 3.0: [0.3, 0.25]}[self.gamma]
        self.path_ = {"validated_lambda": pd.Series([1.0, 0.5]), "validated_loss": pd.Series(losses)}
        return self

    def save(self, folder: Path) -> None:
        folder.mkdir()

    def predict(self, x: np.ndarray) -> np.ndarray:
        assert self.lam == "auto"
        return np.full(len(x), self.gamma)


def test_grid__is_chosen_from_by_the_loss_where_lambda_was_chosen(tmp_path: Path) -> None:
    part = Part([np.ones((1, 2))] * 4, [np.ones(1)] * 4, [np.ones(1)] * 4)
    asked = Asked(Data(part, part), TASKS["usps"].judge, 0, 60.0, tmp_path)
    tuned = by_estimator("guess", Guess, [{"gamma": gamma} for gamma in (1.0, 2.0, 3.0)]).tune(asked)
    assert tuned.setting == "gamma = 2, lambda = 0.5"
    assert tuned.predict(part.x)[3].tolist() == [2.0]


def letters(folder: Path) -> None:
    """Words of three letters in the form of the publisher's file, a letter a row of its own pixels and noise."""
    rng, lines = np.random.default_rng(0), []
    for word in range(400):
        for position in range(1, 4):
            letter = int(rng.integers(0, 4))
            pixels = rng.random(128) < 0.1
            pixels[8 * letter : 8 * letter + 8] |= rng.random(8) < 0.7
            after = len(lines) + 2 if position < 3 else -1
            head = [len(lines) + 1, "abcd"[letter], after, word + 1, position, word % 10]
            lines.append("\t".join(map(str, [*head, *pixels.astype(int)])) + "\t")
    folder.mkdir()
    (folder / "letter.data").write_text("\n".join(lines) + "\n")


def test_records__are_not_measured_again_and_bound_the_folds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    splits = []

    def child(words: Sequence[str]) -> tuple[int, str]:
        splits.append(words[4])
        write_json(Path(words[-1]), {"seconds": 40.0})
        return 0, ""

    monkeypatch.setattr(run, "_child", child)
    options = PracticeOptions(who=["gapwise"], seconds=100.0)
    for _ in range(2):
        list(run._task("ocr_small", TASKS["ocr_small"], options, tmp_path))
        assert splits == ["0", "1"]


@pytest.mark.slow
def test_practice__measures_says_who_is_left_out_and_goes_on(tmp_path: Path) -> None:
    letters(tmp_path / "ocr")
    given = ("practice.size=tiny", "practice.only=[ocr_small,usps]", "practice.who=[gapwise,crfsuite_pa,liblinear]")
    command = [sys.executable, "-m", "pipeline", "+experiment=practice", *given, "practice.record=here"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_RUNS": str(tmp_path / "runs"), "GAPWISE_DATA": str(tmp_path)}

    def carried_out() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)

    done = carried_out()
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs" / "practice" / "tiny"
    assert done.stdout.splitlines()[-1] == f"practice: {folder / 'PRACTICE.md'}"
    numbers = json.loads((folder / "practice.json").read_text())
    assert (tmp_path / "here" / "PRACTICE.md").read_text(encoding="utf-8") == page(numbers)
    measured = {r["who"]: r["figures"]["letter error"] for r in numbers["records"] if "figures" in r}
    assert [*measured] == ["gapwise", "crfsuite_pa", "liblinear"]
    assert max(measured.values()) < 0.5  # of four letters 0.75 is chance
    (left_out,) = (r for r in numbers["records"] if "left_out" in r)
    assert left_out["task"] == "usps"
    assert "dataset.root: must be given" in left_out["left_out"]
    (folder / "ocr_small" / "liblinear-0.json").unlink()
    again = carried_out()
    assert again.returncode == 0, again.stderr
    assert [line for line in again.stderr.splitlines() if "ocr_small" in line] == [
        "practice: ocr_small, LIBLINEAR (LinearSVC), split 0"
    ]
    assert json.loads((folder / "practice.json").read_text())["records"][:2] == numbers["records"][:2]
