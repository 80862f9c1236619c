"""Recount rows of the papers' page from the stored traces: ``recount_papers.py RUNS [ROW ...]``; exit code 1 if one differs.

RUNS is the folder that holds ``papers/papers.json``. A row is ``CLAIM@PART``; without rows the five of `ROWS` are recounted.
Nothing of Gapwise is imported: traces are read by zarr, and every number is computed here by plain loops.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import zarr

ROWS = (
    "wavg_before_fw@lj13_ocr_small", "lower_primal@s15_usps", "gap_sampling_bcfw_gap@o16_fig5_horses",
    "usps_passes@s15_usps", "warm_start@o16_fig4",
)  # fmt: skip
AT_EQUAL_WORK = {
    "wavg_before_fw": ("bcfw_wavg", "fw", "primal", "oracle_calls"),
    "lower_primal": ("MP-BCFW", "BCFW", "primal", "passes"),
    "gap_sampling_bcfw_gap": ("bcfw_gap", "bcfw", "gap", "passes"),
}
"""Claim to the two variants, what is less for the first, and the work after which."""
Trace = dict[str, list[float]]


def jobs_of(sweep: Path) -> list[dict]:
    """The finished runs of a sweep."""
    return [
        job for job in json.loads((sweep / "summary.json").read_text())["jobs"] if job["status"] in ("done", "complete")
    ]


def columns(group: Path) -> Trace:
    """Every array of a group, as lists."""
    return {name: [float(x) for x in array[:].ravel()] for name, array in zarr.open_group(group, mode="r").arrays()}


def at(trace: Trace, over: str, x: float, values: list[float]) -> float:
    """A positive value at `x`, on straight lines between logarithms."""
    known = [(a, math.log(max(y, 1e-300))) for a, y in zip(trace[over], values, strict=True) if math.isfinite(y)]
    for (left, low), (right, high) in pairwise(known):
        if left <= x <= right:
            share = 0.0 if right == left else (x - left) / (right - left)
            return math.exp(low + share * (high - low))
    return math.exp(known[-1][1])


def said(values: list[float], other: list[float]) -> str:
    """The medians of both, with the least and the largest of several; as many digits, two to four, as tell them apart."""

    def words(some: list[float], digits: int) -> str:
        middle = f"{median(some):.{digits}g}"
        return middle if len(some) == 1 else f"{middle} [{min(some):.{digits}g}, {max(some):.{digits}g}]"

    alike = [digits for digits in (2, 3) if f"{median(values):.{digits}g}" == f"{median(other):.{digits}g}"]
    digits = 4 if 3 in alike else 3 if 2 in alike else 2
    return f"{words(values, digits)} against {words(other, digits)}"


def equal_work(sweep: Path, ours: str, theirs: str, quantity: str, over: str) -> Iterator[str]:
    """For every lambda the two variants' numbers after the work that all their runs reach."""
    jobs = jobs_of(sweep)
    for lam in dict.fromkeys(job["lambda"] for job in jobs):
        here = [job for job in jobs if job["lambda"] == lam]
        traces = [(job["variant"], columns(Path(job["run"]) / "gap_trace.zarr")) for job in here]
        best = max(dual for _, trace in traces for dual in trace["dual"] if math.isfinite(dual))
        pair = {name: [trace for variant, trace in traces if variant == name] for name in (ours, theirs)}
        x = min(trace[over][-1] for some in pair.values() for trace in some)
        numbers = {
            name: [
                at(trace, over, x, [y - best for y in trace["primal"]] if quantity == "primal" else trace["gap"])
                for trace in some
            ]
            for name, some in pair.items()
        }
        work = f"{x:,.0f} calls" if over == "oracle_calls" else f"{x:.3g} passes"
        yield f"λ = {lam}: {said(numbers[ours], numbers[theirs])} after {work}"


def approximate_passes(sweep: Path) -> Iterator[str]:
    """For every lambda the approximate passes an iteration of MP-BCFW, by quarters of the run."""
    jobs = [job for job in jobs_of(sweep) if job["variant"] == "MP-BCFW"]
    for lam in dict.fromkeys(job["lambda"] for job in jobs):
        runs = []
        for job in jobs:
            if job["lambda"] == lam:
                made = columns(Path(job["run"]) / "trace.zarr")["iteration_approximate_passes"]
                ends = [0]
                for quarter in range(4):  # the first of them take what is left over
                    ends.append(ends[-1] + len(made) // 4 + (quarter < len(made) % 4))
                runs.append([median(made[a:b]) for a, b in pairwise(ends)])
        quarters = [median(run[k] for run in runs) for k in range(4)]
        yield f"λ = {lam}: passes by quarters of the run: {', '.join(f'{value:.3g}' for value in quarters)}"


def path_work(sweep: Path, ours: str, theirs: str) -> Iterator[str]:
    """Passes and seconds of two whole paths."""
    totals = []
    for name in (ours, theirs):
        run = next(job["run"] for job in jobs_of(sweep) if job["variant"] == name)
        path = columns(Path(run) / "path.zarr")
        totals.append((sum(path["effective_passes"]), sum(path["seconds"])))
    (passes, seconds), (other_passes, other_seconds) = totals
    yield f"{passes:,.1f} against {other_passes:,.1f} passes, {seconds:.2g} against {other_seconds:.2g} s"


def recounted(claim: str, sweep: Path) -> list[str]:
    """What the row should say, one item a lambda."""
    others: dict[str, Callable[[], Iterator[str]]] = {
        "usps_passes": lambda: approximate_passes(sweep),
        "warm_start": lambda: path_work(sweep, "grid_keep_primal", "grid"),
    }
    return [*(others[claim]() if claim in others else equal_work(sweep, *AT_EQUAL_WORK[claim]))]


def of_the_page(measured: str) -> list[str]:
    """What the row says, without trends and remarks in round brackets."""
    return re.sub(r" \((?:ratio|seeds|single|some)[^)]*\)", "", measured).split("; ")


def main(runs: Path, rows: list[str]) -> int:
    """Print every row twice if it differs, once if it agrees."""
    page = json.loads((runs / "papers" / "papers.json").read_text())
    known = {f"{row['claim']}@{row['part']}": row for row in page["claims"]}
    sweeps = {part["name"]: Path(part["sweep"]) for part in page["parts_made"] if "sweep" in part}
    differ = 0
    for name in rows or ROWS:
        if name not in known:
            print(f"absent   {name}")
            differ += 1
            continue
        claim = known[name]
        theirs, ours = of_the_page(claim["measured"]), recounted(claim["claim"], sweeps[claim["part"]])
        print(f"{'agrees ' if ours == theirs else 'DIFFERS'}  {name}: {'; '.join(ours)}")
        if ours != theirs:
            print(f"         the page: {'; '.join(theirs)}")
            differ += 1
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
