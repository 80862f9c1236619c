"""Alignments are drawn with the links of each kind in their colour."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from gapwise.stages.datasets.alignment.sentences import encoded
from gapwise.stages.reports import alignments
from gapwise.stages.reports.page.sections import worst_alignments
from gapwise.stages.reports.paint import BLUE, GREEN, GRID, ORANGE

COUNTS, COLUMN = np.array([3, 0, 2], np.int16), np.array([0, 1, 2, 1, 2], np.int16)


def run(french: str = "x y z") -> SimpleNamespace:
    """Two copies of a sentence pair; the second word has no candidate, the third one not the first column."""
    links = {"sure": [[0, 0], [1, 1]], "possible": [[0, 0], [1, 1], [0, 2]]}
    pair = {"counts": COUNTS, "column": COLUMN, "text": encoded(["a b c", french]), "number": np.array([101])}
    pair |= {name: np.array(pairs, np.int16) for name, pairs in links.items()}
    blocks = {name: np.concatenate([array, array]) for name, array in pair.items()}
    blocks |= {f"{name}_ptr": len(array) * np.arange(3) for name, array in pair.items()}
    labels = np.array([1, 3, 0, 0, 1, 0], np.uint8)  # words with two links: 00, 02 and 21
    predictions = {"labels": np.tile(labels, 2), "label_ptr": 6 * np.arange(3)}
    return SimpleNamespace(test_blocks=blocks, predictions=predictions, predicting="by the best λ")


def test_pair__is_a_grid_of_predicted_and_true_links():
    pair = alignments.Aligned(run(), 1)
    assert pair.predicted == {(0, 0), (0, 2), (2, 1)}
    assert pair.mistakes == 2  # 21 is wrong, 11 is missed
    axes = Figure().subplots()
    alignments.draw_pair(axes, pair)
    where: dict[str, set[tuple[int, int]]] = {}
    for square in axes.patches:
        look = to_hex(square.get_facecolor()) if square.get_fill() else "frame"
        where.setdefault(look, set()).add((int(square.get_y() + 0.5), int(square.get_x() + 0.5)))
    true = {GRID: {(0, 0), (1, 1), (0, 2)}, "frame": {(0, 0), (1, 1)}}
    assert where == {**true, GREEN: {(0, 0)}, BLUE: {(0, 2)}, ORANGE: {(2, 1)}}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    drawing = alignments.figure(run())
    assert drawing is not None
    drawing[0](figure := Figure())
    assert Counter(axes.get_title(loc="center") for axes in figure.axes) == {"sentence 101": 2}


def test_section__shows_the_worst_pairs_and_their_mistakes_in_words() -> None:
    text = str(worst_alignments(run("x <b> z")))
    assert text.count("<svg") == text.count("&lt;b&gt;</text>") == 2  # whatever the words are, the page stays whole
    assert "Wrong links: c – &lt;b&gt;. Missed: b – &lt;b&gt;." in text
    assert "0.0% of the 2 test sentence pairs" in text
    assert (
        "precision is 0.667, recall 0.500, and the alignment error rate 0.400" in text
    )  # A = 3, A ∩ P = 2, S = 2, A ∩ S = 1
