"""Charts of one run, of which each is a file in `figures/` and a section of the report.

A chart is None for a run that lacks what it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure

from gapwise.stages.choice.rules import baseline
from gapwise.stages.reports.bounds import gap_label, shown_lambdas, whole_axis
from gapwise.stages.reports.paint import (
    BEHIND,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    Draw,
    Size,
    few_ticks,
    lambda_axis,
    level,
    stacked,
)
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.solver.counts import CERTIFIED
from gapwise.storage.layout import EVALUATED

OVER = {"passes": "effective passes", "seconds": "seconds of solving"}
SPLITS = {"train": BLUE, "validation": GREEN, "test": ORANGE}
WIDE, HALF = (8.6, 3.0), (4.9, 2.9)
"""Sizes of a panel that stands alone, and of one of two, in inches."""
LAMBDAS, NAMED, ROWS = 40, 8, 200
"""Of a convergence: most lambdas that are shown, most that the legend has, and most certificates of one lambda."""


class Panel(NamedTuple):
    """A plot."""

    words: str
    """what it shows, for those who cannot see it"""
    draw: Callable[[Axes], None]

    def alone(self, figure: Figure) -> None:
        """Draw it into an empty figure."""
        (axes,) = stacked(figure, 1)
        self.draw(axes)


class Chart(NamedTuple):
    """One or two panels: beside each other on a page, stacked in a file, which has the title, too."""

    panels: Sequence[Panel]
    title: str = ""

    @property
    def size(self) -> Size:
        """Of a panel on a page."""
        return WIDE if len(self.panels) == 1 else HALF

    def file(self) -> tuple[Draw, Size]:
        """All panels in one figure, and its size."""

        def draw(figure: Figure) -> None:
            for panel, axes in zip(self.panels, stacked(figure, len(self.panels), self.title), strict=True):
                panel.draw(axes)

        return draw, (7.0, 3.2 * len(self.panels) + 0.3)


def path(run: StoredRun) -> Chart | None:
    """The certified gap at every lambda of a path and at its breakpoints; the gaps of several given lambdas."""
    arrays, attrs, verdict, lam = run.arrays, run.attrs, run.verdict, run.arrays["lambda"]
    if lam.size == 1 and not run.can.certifies_path():
        return None
    relative = bool(attrs.get("relative")) and run.can.certifies_path()
    gap, eps = np.array(arrays["gap"], float), float(attrs["eps"])
    if relative:
        gap = np.divide(gap, arrays["primal"], out=gap, where=arrays["primal"] > 0.0)
    known = gap[np.isfinite(gap)]
    least, top = float(np.min(known, initial=eps)), float(np.max(known, initial=eps))
    low, high = shown_lambdas(arrays, attrs)

    def draw(axes: Axes) -> None:
        if verdict.of_path:
            axes.plot(*whole_axis(arrays, attrs, high, low), color=BLUE, label="guaranteed in between")
            _beyond(axes, float(np.min(arrays["cell_low"], initial=np.inf)) == 0.0)
        axes.plot(lam, gap, "o", color=ORANGE, ms=5 if lam.size <= 100 else 2.5, label="gap at a solved λ")
        if relative or not attrs.get("relative"):  # on a grid, a relative tolerance is another gap at each λ
            level(axes, eps, _allowed(run))
        if not known.size:
            axes.text(0.5, 0.5, "the method certifies no gap", transform=axes.transAxes, ha="center", color=GREY)
        lambda_axis(axes, (low, high))
        axes.set_xlim(high, low)
        if log := 0.0 < least < 0.02 * top:
            axes.set_yscale("log")
        axes.set(
            ylabel=gap_label(attrs, relative=relative), ylim=(0.7 * least if log else 0.0, top * (1.5 if log else 1.15))
        )
        if verdict.of_path:
            axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)

    if not verdict.of_path or verdict.largest_gap is None:
        return Chart([Panel("Duality gap at each λ that was solved.", draw)], f"{lam.size} λ's solved")
    title = f"{lam.size} solved λ's certify a gap of {verdict.largest_gap:.3g} {verdict.lambdas}"
    return Chart([Panel("Certified duality gap at every λ of the path.", draw)], title)


def _allowed(run: StoredRun) -> str:
    return f"{'ε' if run.can.finds_lambdas else 'tolerance'} = {run.attrs['eps']:g}"


def _beyond(axes: Axes, to_zero: bool) -> None:
    """What holds beyond the left and the right end of the axis."""
    words = [(0.01, "left", "← and every larger λ")] + [(0.99, "right", "and every smaller λ →")] * to_zero
    for x, side, text in words:
        axes.text(x, 0.03, text, transform=axes.transAxes, ha=side, color=BLUE, fontsize=9, bbox=BEHIND)


def losses(run: StoredRun) -> Chart | None:
    """Mean task loss on training, test and validation blocks, with the lambda that was chosen marked.

    With validation blocks, there is also a band of one standard error around their loss, and the choice of the
    one-standard-error rule. A single lambda has no chart, nor has a run before evaluation.
    """
    if "test_loss" not in run.arrays or "best_lambda" not in run.measured or run.arrays["lambda"].size == 1:
        return None
    prefix = EVALUATED if f"{EVALUATED}lambda" in run.arrays else ""
    arrays = {name.removeprefix(prefix): values for name, values in run.arrays.items() if name.startswith(prefix)}
    lam = arrays["lambda"]
    of = {split: arrays[f"{split}_loss"] for split in SPLITS if f"{split}_loss" in arrays}
    chosen = "validation" if "validation" in of else "test"
    best = int(np.argmin(np.abs(np.log(lam / run.measured["best_lambda"]))))

    def draw(axes: Axes) -> None:
        for split, loss in of.items():
            known = np.isfinite(loss)
            marker = "o" if lam.size <= 100 else ""
            axes.plot(lam[known], loss[known], color=SPLITS[split], marker=marker, label=split)
        if (error := arrays.get("validation_standard_error")) is not None:
            axes.fill_between(lam, of[chosen] - error, of[chosen] + error, color=GREEN, alpha=0.15, lw=0)
        if (simple := run.measured.get("one_se_lambda")) is not None:
            axes.axvline(simple, color=GREEN, ls=":", label=f"one standard error: λ = {simple:.3g}")
        axes.axvline(lam[best], color=GREY, ls="--", lw=1.0)
        axes.plot(lam[best], of[chosen][best], "D", ms=9, color=SPLITS[chosen], mec="white")
        axes.set(ylabel="mean task loss")
        if (nothing_learnt := baseline(run.measured)) is not None:
            level(axes, nothing_learnt[1], nothing_learnt[0])
        axes.set_ylim(bottom=0.0)
        lambda_axis(axes, shown_lambdas(run.arrays, run.attrs))
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4)

    *first, last = of
    names = f"{', '.join(first)} and {last}" if first else last
    words = f"Mean task loss at each λ on the {names} examples; the diamond marks the best λ."
    return Chart([Panel(words, draw)], _choice(run, of, chosen, lam, best))


def _choice(run: StoredRun, of: Mapping[str, np.ndarray], chosen: str, lam: np.ndarray, best: int) -> str:
    """The lambda that was chosen, how, and its loss."""
    by = run.measured.get("criterion")
    how = "" if by is None else f" by {by.replace('_', ' ')}"
    if chosen == "validation":
        return f"λ = {lam[best]:.3g} chosen{how} on validation examples: test loss {of['test'][best]:.3g}"
    if by is not None:
        return f"λ = {lam[best]:.3g} chosen{how} on test examples: loss {of['test'][best]:.3g}"
    return f"least test loss {of['test'][best]:.3g} at λ = {lam[best]:.3g}"


def certified(run: StoredRun) -> Chart | None:
    """The eps that is certified at every lambda while a path is solved whose rule lets it fall (`path.rule=anytime`)."""
    rows = certified_rows(run.trace)
    if rows.get("eps", np.empty(0)).size < 2:
        return None
    least = float(np.min(rows["eps"]))

    def panel(over: str) -> Panel:
        def draw(axes: Axes) -> None:
            axes.plot(rows[over], rows["eps"], drawstyle="steps-post", marker="o", color=BLUE)
            axes.set(xlabel=OVER[over], ylabel="ε certified at every λ", yscale="log")
            few_ticks(axes.yaxis, float(np.max(rows["eps"])) / least)
            level(axes, least, f"{least:.3g}")

        return Panel(f"Certified ε of the whole path against {OVER[over]}.", draw)

    return Chart([panel(over) for over in OVER], f"every λ within {least:.3g}")


def certified_rows(trace: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The rows of a trace that report a certified eps: lambda, passes, seconds and eps, (rows,) each; {} if none does."""
    if CERTIFIED not in trace:
        return {}
    known = ~np.isnan(trace[CERTIFIED])
    return {"eps": trace[CERTIFIED][known], **{name: trace[name][known] for name in ("lambda", "passes", "seconds")}}


def quantity(trace: Mapping[str, np.ndarray]) -> str:
    """What a convergence shows: gap, or primal for a method without a dual point; empty if there is nothing to draw."""
    if not trace:
        return ""
    if np.any(np.nan_to_num(trace["gap"]) > 0.0):
        return "gap"
    return "primal" if trace["gap"].size and np.isnan(trace["gap"]).all() else ""


def convergence(run: StoredRun) -> Chart | None:
    """The gap over effective passes and over seconds, one colour per lambda; of a method without a dual point, the primal.

    Work is counted from the start of each lambda where most of them have a curve of their own.
    """
    trace, column = run.trace, quantity(run.trace)
    if not column:
        return None
    rows = rows_by_lambda(trace, column)
    fresh = len(rows) > 1 and sum(shown.size for shown in rows.values()) >= 3 * len(rows)
    title = gap_label(run.attrs) if column == "gap" else "primal objective"

    def panel(over: str) -> Panel:
        def draw(axes: Axes) -> None:
            before = np.concatenate([[0.0], trace[over][:-1]])
            lams = [*rows]
            colours = _falling(lams)
            if not fresh:
                every = np.concatenate([*rows.values()])
                axes.plot(trace[over][every], trace[column][every], color=GREY, lw=0.8, alpha=0.5)
            for k, (lam, shown) in enumerate(rows.items()):
                named = len(lams) > 1 and (len(lams) <= NAMED or k % max(len(lams) // 3, 1) == 0)
                x = trace[over][shown] - (before[shown[0]] if fresh else 0.0)
                axes.plot(
                    x, trace[column][shown], marker="o", ms=3, color=colours(lam), lw=1.2,
                    label=f"λ = {lam:.3g}" if named else None,
                )  # fmt: skip
            axes.set(xlabel=OVER[over] + " at each λ" * fresh, ylabel=title, yscale="log")
            values = np.concatenate([trace[column][shown] for shown in rows.values()])
            few_ticks(axes.yaxis, float(values.max() / values.min()))
            if column == "gap" and not run.attrs.get("relative"):
                level(axes, float(run.attrs["eps"]), _allowed(run), side="left")
            if len(lams) > 1:
                axes.legend(
                    loc="lower left",
                    bbox_to_anchor=(0.0, 1.0),
                    ncols=4,
                    fontsize=7,
                    columnspacing=1.0,
                    handlelength=1.2,
                )

        return Panel(f"{title[:1].upper()}{title[1:]} against {OVER[over]}.", draw)

    words = [f"λ = {lam:.3g}" for lam in rows if len(rows) == 1] + ([_allowed(run)] if column == "gap" else [])
    return Chart([panel(over) for over in OVER], ", ".join(words))


def rows_by_lambda(trace: Mapping[str, np.ndarray], column: str) -> dict[float, np.ndarray]:
    """Rows of the certificates that are shown of each lambda, falling, where `column` is positive."""
    lams = np.unique(trace["lambda"])[::-1]
    rows = {}
    for lam in lams[spread(lams.size, LAMBDAS)]:
        (shown,) = np.nonzero((trace["lambda"] == lam) & (np.nan_to_num(trace[column]) > 0.0))
        if shown.size:
            rows[float(lam)] = shown[spread(shown.size, ROWS)]
    return rows


def spread(count: int, most: int) -> np.ndarray:
    """At most `most` of the numbers below `count`, evenly spaced, the first and the last among them."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).round().astype(int)


def _falling(lams: Sequence[float]) -> Callable[[float], tuple[float, float, float, float]]:
    """Colours from the largest lambda to the least."""
    if len(lams) == 1:
        return lambda _: (0.0, 0.447, 0.698, 1.0)
    colours, norm = LinearSegmentedColormap.from_list("falling", [ORANGE, "#7a5195", BLUE]), LogNorm(lams[-1], lams[0])
    return lambda lam: colours(float(norm(lam)))


def work(run: StoredRun) -> Chart | None:
    """Effective passes and seconds from the start of the path down to lambda (the shape of O16 Fig. 4)."""
    lam = run.arrays["lambda"]
    if lam.size == 1:
        return None

    def panel(column: str, title: str, colour: str) -> Panel:
        total = np.cumsum(run.arrays[column])

        def draw(axes: Axes) -> None:
            axes.plot(lam, total, drawstyle="steps-post", marker="o" if lam.size <= 60 else "", color=colour)
            axes.annotate(
                f"{total[-1]:,.3g}", (lam[-1], total[-1]), (0, 5), textcoords="offset points", ha="right", color=colour
            )
            if total[0] > 0.0:
                axes.set_yscale("log")
                few_ticks(axes.yaxis, float(total[-1] / total[0]))
            axes.set(ylabel=title)
            lambda_axis(axes, lam)

        return Panel(f"{title[0].upper()}{title[1:]} from the start of the path down to λ.", draw)

    return Chart([
        panel("effective_passes", "total effective passes", BLUE),
        panel("seconds", "total seconds of solving", ORANGE),
    ])  # fmt: skip


CHARTS: Mapping[str, Callable[[StoredRun], Chart | None]] = {
    "path": path, "losses": losses, "certified": certified, "convergence": convergence, "work": work,
}  # fmt: skip
"""All charts by the names of their files."""
