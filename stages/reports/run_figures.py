"""Pictures of a finished run: the path and its certificates, what it cost, how good it is, and what it sees.

`path.png` gap and breakpoints along lambda; `work.png` cumulative passes and seconds (the shape of O16 Fig. 4);
`losses.png` train and test loss with the best lambda marked; `segmentations.png` test images beside their masks, where
the features keep pictures. Lambda falls from left to right, as the path goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from stages.solver.path.cells import Pair, Point
from storage.features import Features
from storage.files import aside, publish
from storage.layout import EVALUATED
from storage.places import Place
from storage.results import read_path

BLUE, ORANGE, GREEN, GREY = "#2b6cb0", "#dd6b20", "#2f855a", "#718096"
LOOK: Any = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e2e8f0",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
}
COLUMNS = ("lambda", "lambda_low", "gap", "hinge", "norm2", "effective_passes", "seconds")
TAIL = 0.3
"""How much of an interval that reaches down to 0 is drawn, as a share of its upper end."""
SHOWN = 6
"""Test images in `segmentations.png`."""


def draw(run_dir: Place, features: Features) -> list[Place]:
    """Draw everything that `run_dir` and its features have the data for.

    Returns
    -------
    list of Path or ObjectPlace
        The files in ``run_dir/figures``, replaced one by one.
    """
    arrays, attrs = read_path(run_dir / "path.zarr")
    (run_dir / "figures").mkdir(exist_ok=True)
    made: list[Place] = []
    with rc_context(LOOK):
        for name, paint in (("path", paint_path), ("work", paint_work), ("losses", paint_losses)):
            with _figure(run_dir, name, (7.0, 4.6 if name == "path" else 3.6), made) as figure:
                paint(figure, arrays, attrs)
        pictures = features.arrays("test")
        predictions = run_dir / "predictions.npz"
        if predictions.is_file() and "hw" in pictures and pictures["hw"].size:
            with predictions.open("rb") as stream, np.load(stream) as file:
                labels, label_ptr = file["labels"], file["label_ptr"]
            with _figure(run_dir, "segmentations", (11.0, 4.8), made) as figure:
                paint_segmentations(figure, pictures, labels, label_ptr)
    return made


@contextmanager
def _figure(run_dir: Place, name: str, size: tuple[float, float], made: list[Place]) -> Iterator[Figure]:
    """A figure that is saved when the block ends well."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    yield figure
    target = run_dir / "figures" / f"{name}.png"
    figure.savefig(aside(target), dpi=150, format="png", metadata={"Software": None})
    publish(target)
    made.append(target)


def paint_path(figure: Figure, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any]) -> None:
    """Above, the gap at every breakpoint and the bound between them; below, how many breakpoints there are so far."""
    lam, gap, eps = arrays["lambda"], arrays["gap"], float(attrs["eps"])
    two_sided, relative = attrs["rule"] == "two_sided", bool(attrs.get("relative")) and attrs["kind"] == "regpath"
    if relative:
        gap = gap / arrays["primal"]
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    is_path = attrs["kind"] in ("regpath", "heuristic")
    if is_path and attrs["certified"]:
        at, bound = gap_of_cells(arrays, attrs) if two_sided else certified_gap(arrays, str(attrs["rule"]))
        upper.plot(at, bound, color=BLUE, lw=1, label="certified between breakpoints")
    many = lam.size > 200
    upper.plot(lam, gap, ls="", marker="." if many else "o", ms=2 if many else 4, color=ORANGE, label="at a breakpoint")
    upper.axhline(eps, color=GREY, ls="--", lw=1)
    upper.annotate(f"{'ε' if is_path else 'tolerance'} = {eps:g}", (1, eps), xycoords=("axes fraction", "data"),
                   xytext=(-2, 3), textcoords="offset points", ha="right", color=GREY)  # fmt: skip
    top = max(eps, float(np.max(gap)))
    if float(np.min(gap)) > 0.02 * top or np.min(gap) <= 0:
        upper.set_ylim(min(0.0, float(np.min(gap))), 1.15 * top)
    else:
        upper.set_yscale("log")
    upper.set_ylabel("duality gap / primal" if relative else "duality gap")
    upper.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)
    lower.step(lam, np.arange(1, lam.size + 1), where="post", color=GREEN)
    lower.plot(lam[-1:], [lam.size], "o", color=GREEN)
    lower.annotate(f"{lam.size}", (lam[-1], lam.size), xytext=(0, 5), textcoords="offset points", ha="center",
                   color=GREEN)  # fmt: skip
    lower.set_ylim(0, 1.3 * lam.size)
    lower.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    lower.set_ylabel("breakpoints")
    _lambda_axis(lower, lam)


def certified_gap(arrays: Mapping[str, np.ndarray], rule: str, end: float = TAIL) -> tuple[np.ndarray, np.ndarray]:
    """(lambda, bound) along all intervals [lambda_low, lambda_j] (DESIGN 2.5), in path order.

    One that reaches down to 0 is followed as far as `end` times its breakpoint.
    """
    at, bound = [], []
    for lam, low, gap, hinge, norm2 in zip(*(arrays[name] for name in COLUMNS[:5]), strict=True):
        if low <= 0.0:
            x = np.geomspace(lam, end * lam, 30)
            at.append(x)
            bound.append(np.minimum(gap + norm2 * (lam - x) ** 2 / (2 * x), max(gap, hinge)))
            continue
        x = np.geomspace(lam, low, 30)
        at.append(x)
        bound.append(gap + (1 - x / lam) * (hinge - gap) if rule == "paper" else gap + norm2 * (lam - x) ** 2 / (2 * x))
    return np.concatenate(at), np.concatenate(bound)


def gap_of_cells(
    arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any], end: float = TAIL
) -> tuple[np.ndarray, np.ndarray]:
    """(lambda, bound) along the cells of a two-sided path, from its first breakpoint down (`stages.solver.path.cells`).

    The cell that reaches down to 0 is followed as far as `end` times its upper end.
    """
    columns = (arrays[name] for name in ("lambda", "gap", "hinge", "loss_dual", "norm2"))
    points = [Point(lam, g, R, ell, N, lam**2 * N) for lam, g, R, ell, N in zip(*columns, strict=True)]
    zero_hinge = float(attrs["hinge_at_zero"])
    nothing = Point(0.0, 0.0, zero_hinge, 0.0, 0.0, 0.0)
    at, bound = [], []
    for c in np.flatnonzero(arrays["cell_interval"] >= 1):
        k, low, high = int(arrays["cell_interval"][c]), arrays["cell_low"][c], arrays["cell_high"][c]
        above, below = points[k - 1], points[k] if k < len(points) else nothing
        pair = Pair(above, below, arrays["cell_inner"][c], arrays["cell_dual_inner"][c], zero_hinge)
        t, tau = arrays["cell_primal"][c], arrays["cell_dual"][c]
        for lam in np.geomspace(high, low if low > 0.0 else end * high, 30):
            share, primal = tau, pair.primal(lam, t)
            if low == 0.0:
                share = tau * (min(1.0, above.ell * lam / above.dual_norm2) if above.dual_norm2 > 0.0 else 1.0)
                primal = 0.5 * lam * t[0] ** 2 * above.norm2 + (above.hinge if t[0] == 1.0 else 0.0)
            gap = primal - pair.dual(lam, share)
            at.append(lam)
            bound.append(gap / primal if attrs["relative"] else gap)
    return np.array(at), np.array(bound)


def paint_work(figure: Figure, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any]) -> None:
    """Effective passes and seconds spent from the start of the path down to lambda, both axes logarithmic."""
    lam = arrays["lambda"]
    panels = (("effective_passes", "effective passes", BLUE), ("seconds", "seconds of solving", ORANGE))
    for axes, (name, title, colour) in zip(figure.subplots(1, 2), panels, strict=True):
        total = np.cumsum(arrays[name])
        axes.step(lam, total, where="post", color=colour)
        axes.plot(lam, total, ls="", marker="o" if lam.size <= 60 else "", ms=3, color=colour)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_title(f"cumulative {title}")
        axes.annotate(f"{total[-1]:,.3g}", (lam[-1], total[-1]), xytext=(0, 6), textcoords="offset points",
                      ha="right", color=colour)  # fmt: skip
        axes.margins(y=0.12)
        _lambda_axis(axes, lam)


def paint_losses(figure: Figure, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any]) -> None:
    """Mean task loss on training and test blocks, the lambda with the least test loss marked."""
    prefix = EVALUATED if f"{EVALUATED}lambda" in arrays else ""
    lam, axes = arrays[f"{prefix}lambda"], figure.subplots()
    marker = "o" if lam.size <= 60 else ""
    for name, colour in (("train", BLUE), ("test", ORANGE)):
        axes.plot(lam, arrays[f"{prefix}{name}_loss"], marker=marker, color=colour, label=name)
    best = int(np.argmin(arrays[f"{prefix}test_loss"]))
    loss = float(arrays[f"{prefix}test_loss"][best])
    axes.axvline(lam[best], color=GREY, ls="--", lw=1, zorder=0)
    axes.plot(lam[best], loss, marker="*", ms=15, color=ORANGE, mec="white", ls="", label="least test loss")
    axes.set_title(f"least test loss {loss:.3g} at λ = {lam[best]:.3g}")
    axes.set_ylim(0, None)
    axes.set_ylabel("mean task loss")
    axes.legend(loc="best")
    _lambda_axis(axes, lam)


def paint_segmentations(
    figure: Figure, pictures: Mapping[str, np.ndarray], labels: np.ndarray, label_ptr: np.ndarray
) -> None:
    """Test images, the superpixels labelled foreground, and the masks: one column an image.

    Parameters
    ----------
    labels, label_ptr : (label,), (n + 1,)
        Predicted label of every superpixel of the test split, flat, and where each image's begin.
    """
    shown = min(SHOWN, pictures["hw"].shape[0])
    rows = figure.subplots(3, shown, squeeze=False)
    for i in range(shown):
        height, width = (int(size) for size in pictures["hw"][i])
        image = _block(pictures, "rgb", i).reshape(height, width, 3)
        regions = _block(pictures, "superpixel_map", i).reshape(height, width)
        mask = _block(pictures, "mask", i).reshape(height, width) > 0
        predicted = labels[label_ptr[i] : label_ptr[i + 1]][regions] > 0
        rows[0, i].imshow(image)
        rows[1, i].imshow(_marked(image, predicted, _borders(regions)))
        rows[2, i].imshow(_marked(image, mask, np.zeros_like(mask)))
        both, either = np.sum(predicted & mask), np.sum(predicted | mask)
        rows[1, i].set_title(f"IoU {both / either:.2f}" if either else "no foreground", loc="center")
    for axes in rows.ravel():
        axes.set(xticks=[], yticks=[])
        axes.grid(False)
        axes.spines[:].set_visible(False)
    for axes, title in zip(rows[:, 0], ("image", "prediction", "mask"), strict=True):
        axes.set_ylabel(title)


def _block(arrays: Mapping[str, np.ndarray], name: str, i: int) -> np.ndarray:
    pointer = arrays[f"{name}_ptr"]
    return np.asarray(arrays[name][pointer[i] : pointer[i + 1]])


def _borders(regions: np.ndarray) -> np.ndarray:
    """Pixels (H, W) whose right or lower neighbour belongs to another superpixel."""
    edge = np.zeros(regions.shape, dtype=bool)
    edge[:, :-1] |= regions[:, :-1] != regions[:, 1:]
    edge[:-1] |= regions[:-1] != regions[1:]
    return edge


def _marked(image: np.ndarray, foreground: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """The image with its foreground in orange, its background darkened and greyed, and `lines` drawn in."""
    grey = np.repeat(image.mean(axis=2, keepdims=True), 3, axis=2)
    out = np.where(foreground[..., None], 0.45 * image + 0.55 * np.array([255, 140, 0]), 0.45 * grey)
    out[lines] = 0.6 * out[lines] + 0.4 * 255
    return out.astype(np.uint8)


def _lambda_axis(axes: Axes, lam: np.ndarray) -> None:
    """Lambda, logarithmic, falling to the right."""
    low, high = float(np.min(lam)), float(np.max(lam))
    room = max((high / low) ** 0.04, 1.05) if high > 2 * low else 3.0
    axes.set_xscale("log")
    axes.set_xlim(high * room, low / room)
    if high / low > 1e3:
        axes.xaxis.set_major_locator(LogLocator(numticks=8))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("λ")
