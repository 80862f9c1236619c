"""Figure and report show alignments with the links of each kind in their colour."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from gapwise.stages.datasets.alignment.links import encoded
from gapwise.stages.reports.alignments import Aligned
from gapwise.stages.reports.page.sections import alignments as section
from gapwise.stages.reports.paint import BLUE, GREEN, ORANGE
from gapwise.stages.reports.run_figures import alignments

COUNTS, COLUMN = np.array([3, 0, 2], np.int16), np.array([0, 1, 2, 1, 2], np.int16)


def run(french: str = "x y z") -> SimpleNamespace:
    """Two copies of a sentence pair; the second word has no candidate, the third one not the first column."""
    links = {"sure": [[0, 0], [1, 1]], "possible": [[0, 0], [1, 1], [0, 2]]}
    pair = {"counts": COUNTS, "column": COLUMN, "text": encoded(["a b c", french]), "number": np.array([101])}
    pair |= {name: np.array(pairs, np.int16) for name, pairs in links.items()}
    blocks = {name: np.concatenate([array, array]) for name, array in pair.items()}
    blocks |= {f"{name}_ptr": len(array) * np.arange(3) for name, array in pair.items()}
    labels = np.array([1, 3, 0, 0, 1, 0], np.uint8)  # words with two links: 00, 02 and 21
    return SimpleNamespace(
        test_blocks=blocks,
        predictions={"labels": np.tile(labels, 2), "label_ptr": 6 * np.arange(3)},
        has_features=True,
        predicting="by the best λ",
    )


def test_figure__shows_predicted_and_missed_links():
    pair = Aligned(run(), 1)
    assert pair.predicted == {(0, 0), (0, 2), (2, 1)}
    assert pair.mistakes == 2  # 21 is wrong, 11 is missed
    figure = Figure()
    alignments.paint(figure, run())
    squares = figure.axes[0].patches
    assert Counter(to_hex(square.get_facecolor()) for square in squares if square.get_fill()) == {
        GREEN: 1, BLUE: 1, ORANGE: 1, "#edf2f7": 1
    }  # fmt: skip
    assert sum(not square.get_fill() for square in squares) == 2
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]


def test_section__shows_the_worst_pairs_as_grids_of_links() -> None:
    text = str(section.content(run("x <b> z")))
    drawing = text.split("<svg", 1)[1].split("</svg>")[0]
    root = ElementTree.fromstring(f"<svg{drawing}</svg>")  # whatever the words are, the page stays whole
    assert [label.text for label in root.findall("text")] == ["a", "b", "c", "x", "<b>", "z"]
    squares = root.findall("rect")
    where = {
        "maybe": {(0, 0), (1, 1), (0, 2)},
        "sure": {(0, 0), (1, 1)},
        GREEN: {(0, 0)},
        BLUE: {(0, 2)},
        ORANGE: {(2, 1)},
    }
    least = {axis: min(float(square.get(axis)) for square in squares) for axis in "xy"}
    for look, links in where.items():
        drawn = [square for square in squares if look in (square.get("class"), square.get("fill"))]
        shown = {tuple(int((float(cell.get(axis)) - least[axis]) // 16) for axis in "yx") for cell in drawn}
        assert shown == links, look
    assert "Wrong links: c – &lt;b&gt;. Missed: b – &lt;b&gt;." in text
    assert "0.0% of the 2 test sentence pairs" in text
    assert (
        "precision is 0.667, recall 0.500, and the alignment error rate 0.400" in text
    )  # A = 3, A ∩ P = 2, S = 2, A ∩ S = 1
