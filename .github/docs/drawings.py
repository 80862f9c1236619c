"""The drawings of the site, made from solves and scenes that come with the project.

``python .github/docs/drawings.py`` writes the committed pictures into ``.github/figures``: hero.png, stages.png, tagged.png.
Those of the primer are made whenever the site is built.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import gapwise
from gapwise.stages.datasets.vision.horse_scenes import compose
from gapwise.stages.reports.bounds import whole_axis

HERE = Path(__file__).resolve().parent
FIGURES = HERE.parent / "figures"
BLUE, ORANGE, GREEN, PURPLE, GREY, LIGHT = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#6b7280", "#d6e6f2"
"""Colours that people of every kind of colour vision tell apart (Okabe and Ito)."""
LABEL_COLOURS = {"QTY": ORANGE, "ITEM": BLUE, "PLACE": GREEN, "DAY": PURPLE}
SHARP = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "savefig.dpi": 160}


def sentences(name: str) -> tuple[list[list[str]], list[list[str]]]:
    """Words and labels of text/NAME.txt, a list a sentence."""
    blocks = (HERE / "text" / f"{name}.txt").read_text(encoding="utf-8").strip().split("\n\n")
    pairs = [[line.split() for line in block.splitlines()] for block in blocks]
    return [[word for word, _ in pair] for pair in pairs], [[label for _, label in pair] for pair in pairs]


def attributes(words: list[str]) -> list[dict[str, str]]:
    """What a tagger may look at, token by token."""
    padded = ["<s>", *(word.lower() for word in words), "</s>"]
    return [
        {"word": padded[t + 1], "before": padded[t], "after": padded[t + 2], "ending": word[-3:]}
        for t, word in enumerate(words)
    ]


def draw_tags(ax: Axes, words: list[str], labels: list[str], *, y: float = 0.0, width: float = 0.118) -> None:
    """A sentence whose labelled words have a coloured box."""
    x = 0.0
    for word, label in zip(words, labels, strict=True):
        size = width * (0.35 + 0.125 * len(word))
        kind = label.partition("-")[2]
        if kind:
            box = {"facecolor": LABEL_COLOURS[kind], "alpha": 0.3, "edgecolor": "none"}
            ax.add_patch(plt.Rectangle((x - 0.004, y - 0.16), size, 0.42, **box))
            if label.startswith("B"):
                ax.text(x, y - 0.36, kind, fontsize=7, color=GREY, va="center")
        ax.text(x + size / 2 - 0.004, y + 0.05, word, va="center", ha="center", fontsize=10)
        x += size + (0.0 if kind else 0.004)
    ax.set(xlim=(-0.02, max(x, 1.0)), ylim=(y - 0.5, 0.5))
    ax.axis("off")


def note(ax: Axes, text: str, x: float, y: float, shift: tuple[int, int], colour: str) -> None:
    """Words beside a point, so many points away from it."""
    ax.annotate(text, (x, y), shift, textcoords="offset points", color=colour, fontsize=9)


def tagged() -> Figure:
    """A sentence of the test file as the tagger labels it."""
    X, y = sentences("train")
    new, _ = sentences("test")
    model = gapwise.ChainSVM(constraints="bio").fit([attributes(x) for x in X], y)
    figure, ax = plt.subplots(figsize=(8.5, 0.9), layout="constrained")
    draw_tags(ax, new[0], model.predict([attributes(new[0])])[0])
    return figure


def outlined(ax: Axes, picture: np.ndarray, mask: np.ndarray, colour: str = ORANGE) -> None:
    """A picture, what is found in it, and its outline."""
    ax.imshow(picture)
    shown = np.zeros((*mask.shape, 4))
    shown[mask > 0] = (*mpl.colors.to_rgb(colour), 0.45)
    ax.imshow(shown)
    if 0 < mask.sum() < mask.size:
        ax.contour(mask, [0.5], colors=[colour], linewidths=1.6)
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)


def iou(predicted: np.ndarray, true: np.ndarray) -> float:
    return float((predicted & true).sum() / max((predicted | true).sum(), 1))


def hero(n: int = 100, shown: int = 114) -> Figure:
    """One scene at five values of lambda, the proven band, and the loss that chose lambda."""
    scenes = [compose(0, 0, k) for k in (*range(n), shown)]
    model = gapwise.SegmentationSVM(lam="path", n_jobs=-1).fit(
        [s.rgb for s in scenes[:n]], [s.mask for s in scenes[:n]]
    )
    path, scene = model.path_, scenes[-1]
    arrays = {str(name): variable.values for name, variable in path.variables.items()}
    high, low = 1.5 * float(arrays["lambda"][0]), 0.3 * float(arrays["lambda"][-1])
    lams, bound = whole_axis(arrays, path.attrs, high, low)
    chosen = np.array([0.05 * high, 0.008 * high, 40 * model.lambda_, model.lambda_, 1.1 * float(arrays["lambda"][-1])])
    chosen = np.sort(np.where(np.arange(5) == 2, np.sqrt(chosen[1] * model.lambda_), chosen))[::-1]
    figure = plt.figure(figsize=(8.6, 5.0), layout="constrained")
    grid = figure.add_gridspec(3, 5, height_ratios=[1.5, 1.3, 1.1])
    for k, (lam, letter) in enumerate(zip(chosen, "abcde", strict=True)):
        ax = figure.add_subplot(grid[0, k])
        mask = model.predict([scene.rgb], lam=float(lam))[0]
        outlined(ax, scene.rgb, mask)
        best = lam == model.lambda_
        text = f"{letter} · λ = {lam:,.3g}{' (chosen)' if best else ''}\nIoU {iou(mask > 0, scene.mask > 0):.2f}"
        ax.set_title(text, fontsize=9, fontweight="bold" if best else "normal")
    ax = figure.add_subplot(grid[1, :])
    ax.fill_between(lams, 0, bound, color=LIGHT)
    ax.plot(lams, bound, color=BLUE)
    ax.plot(arrays["lambda"], 0 * arrays["lambda"], "|", color=BLUE, ms=9, clip_on=False)
    eps = float(path.attrs["eps"])
    ax.axhline(eps, color=GREY, ls="--", lw=1)
    ax.text(0.9 * high, 1.02 * eps, f"asked for: {eps:g}", va="bottom", ha="left", fontsize=8, color=GREY)
    ax.set(xscale="log", ylim=(0, 1.35 * eps), xlim=(high, low), ylabel="distance to the\noptimum, at most")
    ax.tick_params(axis="x", which="both", labelbottom=False)
    lower = figure.add_subplot(grid[2, :], sharex=ax)
    lower.plot(path["validated_lambda"].values, path["validated_loss"].values, color=GREEN, marker=".", ms=4)
    lower.set(ylim=(0, None), ylabel="loss of held-\nout scenes")
    lower.set_xlabel("λ, falling: from simple models to flexible ones; ticks: the values that were solved")
    for axis in (ax, lower):
        axis.axvline(model.lambda_, color=ORANGE, lw=1.5)
    note(lower, "chosen λ", model.lambda_, 0.42, (4, 0), "black")
    plain = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    for lam, letter in zip(chosen, "abcde", strict=True):
        ax.text(lam, 1.2 * eps, letter, ha="center", va="bottom", fontsize=9, color=GREY, bbox=plain, zorder=3)
        ax.plot([lam], [1.17 * eps], marker="v", color=GREY, ms=4, zorder=4)
    return figure


def stages() -> Figure:
    """What flows from one stage of a run to the next."""
    boxes = [
        ("data", "text, pictures,\narrays, your class"),
        ("featurize", "features on disk,\nshared by runs"),
        ("solve", "a model for\nevery λ"),
        ("verify", "separate code\nrechecks each"),
        ("evaluate", "losses; the λ\nthat is chosen"),
        ("report", "report.html,\npredict, export"),
    ]
    figure, ax = plt.subplots(figsize=(8.6, 1.5), layout="constrained")
    for k, (title, text) in enumerate(boxes):
        colour = LIGHT if 0 < k < 5 else "#f3f4f6"
        ax.add_patch(mpl.patches.FancyBboxPatch((k, 0), 0.72, 0.8, boxstyle="round,pad=0.05", fc=colour, ec="none"))
        ax.text(k + 0.36, 0.62, title, ha="center", va="center", fontweight="bold", fontsize=9)
        ax.text(k + 0.36, 0.24, text, ha="center", va="center", fontsize=7.5)
        if k:
            ax.annotate("", (k - 0.06, 0.4), (k - 0.22, 0.4), arrowprops={"arrowstyle": "->", "color": GREY})
    ax.set(xlim=(-0.1, 5.85), ylim=(-0.1, 0.95))
    ax.axis("off")
    return figure


def hinge() -> Figure:
    """The hinge of one example: the largest of several straight lines."""
    w = np.linspace(-2, 3, 200)
    rivals = [(1.0, -0.9, "one label wrong"), (2.0, -1.3, "two labels wrong"), (0.7, 0.35, "another label wrong")]
    figure, ax = plt.subplots(figsize=(6.2, 2.9), layout="constrained")
    lines = [np.zeros_like(w), *(loss + slope * w for loss, slope, _ in rivals)]
    ax.plot(w, np.max(lines, axis=0), color=BLUE, lw=3, zorder=3)
    beside = {
        "one label wrong": (-1.95, (0, -30)),
        "two labels wrong": (-1.0, (10, 2)),
        "another label wrong": (1.75, (8, -16)),
    }
    for values, (_, _, name) in zip(lines[1:], rivals, strict=True):
        x, shift = beside[name]
        ax.plot(w, values, color=GREY, lw=1)
        note(ax, name, x, float(np.interp(x, w, values)), shift, GREY)
    ax.axhline(0, color=GREY, lw=1)
    ax.text(2.1, 0.08, "the true labels: 0", fontsize=8, color=GREY)
    note(ax, "hinge: the largest of them", 0.78, 0.98, (-10, 34), BLUE)
    ax.set(ylim=(-1, 4.5), xlabel="w, along one direction", ylabel="loss + score − score of the truth")
    return figure


def closing(lam: float = 0.5) -> Figure:
    """Primal and dual value of the tagger over passes: what lies between them is the gap."""
    X, y = sentences("train")
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for passes in range(1, 11):
            path = (
                gapwise.ChainSVM(lam=lam, max_passes=passes, tolerance=1e-6, verify=False, solver="bcfw")
                .fit([attributes(x) for x in X], y)
                .path_
            )
            rows.append((passes, float(path["primal"][0]), float(path["dual"][0])))
    passes, primal, dual = np.array(rows).T
    figure, ax = plt.subplots(figsize=(6.2, 2.9), layout="constrained")
    ax.fill_between(passes, dual, primal, color=LIGHT)
    ax.plot(passes, primal, color=BLUE)
    ax.plot(passes, dual, color=GREEN)
    note(ax, "objective of the model", passes[1], primal[1], (8, 6), BLUE)
    note(ax, "lower bound (dual value)", passes[1], dual[1], (8, -12), GREEN)
    ax.text(passes[3], (primal[3] + dual[3]) / 2, "gap: the optimum is in here", va="center", fontsize=9, color=GREY)
    ax.set(xlabel="passes over the data", ylabel="value", xlim=(1, passes[-1]))
    return figure


def whole_path() -> Figure:
    """The gap at every lambda of the tagger's path, and the few values of lambda that were solved."""
    X, y = sentences("train")
    path = gapwise.ChainSVM(lam="path", validation=None).fit([attributes(x) for x in X], y).path_
    arrays = {str(name): variable.values for name, variable in path.variables.items()}
    lam, eps = arrays["lambda"], float(path.attrs["eps"])
    lams, bound = whole_axis(arrays, path.attrs, 2 * float(lam[0]), 0.05 * float(lam[-1]))
    figure, ax = plt.subplots(figsize=(6.2, 2.9), layout="constrained")
    ax.fill_between(lams, 0, bound, color=LIGHT)
    ax.plot(lams, bound, color=BLUE)
    ax.plot(lam, arrays["gap"], "o", color=ORANGE, ms=5)
    ax.axhline(eps, color=GREY, ls="--", lw=1)
    note(ax, f"ε = {eps:g}", float(lams.max()), eps, (4, 3), GREY)
    note(ax, "bound at every λ", lams[-15], bound[-15], (-40, 8), BLUE)
    note(ax, "solved λ", lam[1], arrays["gap"][1], (4, -14), ORANGE)
    ax.set(xscale="log", xlim=(lams.max(), lams.min()), ylim=(0, 1.3 * eps))
    ax.set(xlabel="λ, falling: every λ > 0 is covered", ylabel="gap, at most")
    return figure


def save(figures: dict[str, Figure], folder: Path) -> None:
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png")
        plt.close(figure)


def primer(folder: Path) -> None:
    """The three drawings of the primer."""
    with mpl.rc_context(SHARP):
        save({"hinge": hinge(), "closing": closing(), "whole_path": whole_path()}, folder)


def committed(folder: Path) -> None:
    """The pictures of README and of the home page."""
    with mpl.rc_context(SHARP):
        save({"hero": hero(), "stages": stages(), "tagged": tagged()}, folder)


if __name__ == "__main__":
    committed(FIGURES)
