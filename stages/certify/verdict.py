"""What a solved path proves, for which lambdas and in which sense: one record, read by everything that reports it.

`verify` judges a path once (`judge`) and keeps the verdict in verify.json. Before that there is only what the path says of
itself (`claimed`). `read_verdict` returns the one of a run directory.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from gapwise.records import Facts, Record
from gapwise.stages.problems.capabilities import ESTIMATE, UPPER_BOUNDED, promise
from gapwise.stages.solver.options import ENDED
from gapwise.stages.solver.path.rules import path_rule
from gapwise.storage.backend import Location
from gapwise.storage.files import DamagedError, read_json

if TYPE_CHECKING:  # commands that list runs do without it
    import numpy as np

MOST_BROKEN = 3
"""Most certificates that do not hold which a verdict quotes; verify.json lists all of them."""

BELOW = {
    "LAMBDA_NEGLIGIBLE": "; below, λ‖w‖²/2 is under 1 % of ε (path.lambda_min=… goes on)",
    "LOSS_RISES": "; below, the loss on held-out blocks had clearly risen",
    "ROUNDING_LIMIT": "; below, rounding would show (a larger path.eps goes on)",
}
"""Why a path ends above lambda = 0, by its status."""


class Reach(StrEnum):
    """The lambdas whose models are certified."""

    NOTHING = "nothing"
    SOLVED = "solved lambdas"
    """Each of the given lambdas that met the tolerance, and no lambda between them."""
    RANGE = "range"
    """Every lambda from `lam_low` up."""
    EVERY = "every lambda > 0"


class Doubt(StrEnum):
    """Why less is certified than was asked for; where several apply, the first in this order."""

    BROKEN = "a certificate does not hold"
    NO_DUAL_POINT = "no dual point"
    HEURISTIC = "heuristic path"
    ESTIMATE = "gaps are estimates"
    UNFINISHED = "a limit came first"


@dataclass(frozen=True)
class Verdict:
    """What is certified, in which sense, and why no more. Numbers that are not known are None."""

    reach: Reach
    doubt: Doubt | None
    """Why not all that was asked for is certified; None if it is."""
    sense: str
    """What the gaps are: EXACT, UPPER_BOUNDED or ESTIMATE."""
    status: str | None = None
    """How the solve ended: a `Status`."""
    met: int = 0
    """Solved lambdas that met the tolerance."""
    solved: int = 0
    lam_low: float | None = None
    """The least lambda that the claims cover, certified if `reach` says so; 0: all down to 0; None: they cover nothing."""
    lam_high: float | None = None
    """The largest such lambda; None on a path, which covers every larger one."""
    largest_gap: float | None = None
    """Over solved lambdas and those between them."""
    allowed: float | None = None
    """The eps or tolerance that was asked for; of an open-ended rule the eps that was reached."""
    relative: bool = False
    """Whether `allowed` is a share: of the primal value on a path, of the dual value at given lambdas."""
    rebuild_error: float | None = None
    """Largest difference between stored weights and those of the supports, as a share of the largest weight."""
    dual_point: bool = False
    verified: bool = False
    """Whether separate code has recomputed every number with the same result."""
    broken: tuple[str, ...] = ()
    """The first certificates that do not hold, at most `MOST_BROKEN` lines."""
    proven: float | None = None
    """Share of the blocks whose maximum is proven to be found, where the oracle is bounded."""
    bound_slack_share: float | None = None
    """Part of the allowed gap that is due to the oracle's bounds."""
    accuracy: float | None = None
    """Multiplicative accuracy that the oracle declares, where gaps are estimates."""
    loose: int = 0
    """Solved lambdas whose certificate says no more than what needs no solve (`no_tighter`)."""
    rounded: tuple[float, ...] = ()
    """Given lambdas whose tolerance is so small that rounding hides whether it is met; the status is ROUNDING_LIMIT."""

    @property
    def certified(self) -> bool:
        """Whether everything that was asked for is certified, as far as the solve went."""
        return self.doubt is None

    @property
    def refuted(self) -> bool:
        """Whether a certificate that was claimed does not hold: an error, which ends a run with exit code 1."""
        return self.doubt is Doubt.BROKEN

    @property
    def bounded(self) -> bool:
        """Whether the gaps of solved lambdas bound their distance from the optimum, met the tolerance or not."""
        return self.dual_point and self.sense != ESTIMATE and not self.refuted

    @property
    def of_path(self) -> bool:
        """Whether lambdas between the solved ones are certified as well."""
        return self.reach in (Reach.RANGE, Reach.EVERY)

    @property
    def lambdas(self) -> str:
        """The certified lambdas of a path in words, such as "for every λ > 0"; empty where lambdas were given."""
        if self.reach is Reach.EVERY:
            return "for every λ > 0"
        return f"for λ ≥ {_number(self.lam_low)}" if self.reach is Reach.RANGE else ""

    @property
    def below(self) -> str:
        """Why a certified path ends above lambda = 0, as a clause after `lambdas`; empty if it does not."""
        return BELOW.get(str(self.status), "") if self.reach is Reach.RANGE else ""

    @property
    def words(self) -> str:
        """One line for a person."""
        unsure = "" if self.verified or self.refuted else "; no separate code has checked this"
        return self._words() + self.trivial + unsure

    @property
    def trivial(self) -> str:
        """In words, that certificates are no tighter than the trivial bound; empty if none is."""
        if not self.loose or not self.bounded:
            return ""
        where = "" if self.solved == 1 else f" at {self.loose} of {self.solved} λ's"
        return f"; looser than the trivial bound{where}: the gap is no smaller than the objective"

    def _words(self) -> str:
        match self.doubt:
            case None:
                return (
                    f"every certificate holds, {self.lambdas}{self.below}"
                    if self.of_path
                    else "every certificate holds"
                )
            case Doubt.BROKEN:
                return f"a certificate does not hold: {self.broken[0]}"
            case Doubt.NO_DUAL_POINT:
                return "the method has no dual point, so nothing is certified; a limit ends it and no tolerance"
            case Doubt.HEURISTIC:
                limit = "" if self.status in ENDED else f"; it ended with {self.status}"
                return f"a heuristic path, nothing is certified{limit}"
            case Doubt.ESTIMATE:
                declared = f"; {promise(self.accuracy)}" if self.accuracy else ""
                return f"the oracle is approximate without a bound, so gaps are estimates and nothing is certified{declared}"
            case Doubt.UNFINISHED:
                loose = self.status == "BOUND_LIMIT"
                hint = " (more dataset.sweeps or a smaller dataset.slack tighten the oracle's bounds)" if loose else ""
                return f"{self.status} came before the tolerance, not certified to the end{hint}{self._so_far()}"

    def _so_far(self) -> str:
        if self.reach is Reach.SOLVED:
            return f"; {self.met} of {self.solved} λ's are certified"
        return f"; certified {self.lambdas}" if self.of_path else ""

    def at_lambda(self, lam: float, gap: float | None, allowed: float, primal: float = math.nan) -> Self:
        """The verdict on the model of one lambda, from its own gap; None: no gap of its own, the path certifies it.

        `primal`: its objective; nan: not known.
        """
        loose = int(gap is not None and bool(no_tighter(gap, primal)))
        if self.doubt not in (None, Doubt.UNFINISHED):
            return dataclasses.replace(self, lam_low=lam, lam_high=lam, largest_gap=gap, allowed=allowed, loose=loose)
        low, high = (math.inf if self.lam_low is None else self.lam_low), self.lam_high
        covered = self.of_path and low <= lam and (high is None or lam <= high)
        holds = covered if gap is None else gap <= allowed and lam not in self.rounded
        return dataclasses.replace(
            self, reach=Reach.SOLVED if holds else Reach.NOTHING, doubt=None if holds else Doubt.UNFINISHED,
            met=int(holds), solved=1, lam_low=lam, lam_high=lam, largest_gap=gap, allowed=allowed, loose=loose,
        )  # fmt: skip

    def record(self) -> Record:
        """JSON-able: all fields, `certified`, and the verdict in words."""
        lists = {"broken": [*self.broken], "rounded": [*self.rounded]}
        return {**dataclasses.asdict(self), **lists, "certified": self.certified, "words": self.words}


def verdict_of(record: Facts | None) -> Verdict:
    """The verdict that `Verdict.record` wrote; ValueError for any other record."""
    try:
        values = {field.name: (record or {})[field.name] for field in dataclasses.fields(Verdict)}
        for name, kind in (("reach", Reach), ("broken", tuple), ("rounded", tuple)):
            values[name] = kind(values[name])
        values["doubt"] = None if values["doubt"] is None else Doubt(values["doubt"])
        return Verdict(**values)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no verdict: {error}") from error


def judge(
    attrs: Facts,
    *,
    sense: str,
    met: int,
    solved: int,
    lam_low: float,
    broken: Sequence[str] = (),
    recomputed: bool = True,
    baseless: bool = False,
    loose: int = 0,
    rounded: Sequence[float] = (),
    **numbers: float | None,
) -> Verdict:
    """The verdict on a path with these attributes of path.zarr, from what was found: fields of `Verdict`, nan if not known.

    Parameters
    ----------
    lam_low : float
        nan: no lambda is certified.
    broken : sequence of str
        One line for each certificate that does not hold.
    recomputed : bool
        False: the numbers are the path's own.
    baseless : bool
        Whether nothing could be recomputed: arrays that do not fit the problem, or a wrong max-oracle.
    """
    dual, claimed, can = bool(attrs["dual_point"]), bool(attrs["certified"]), path_rule(str(attrs["rule"]))
    if broken and (claimed or not dual or baseless):
        doubt: Doubt | None = Doubt.BROKEN
    elif not dual:
        doubt = Doubt.NO_DUAL_POINT
    elif not can.exact:
        doubt = Doubt.HEURISTIC
    elif sense == ESTIMATE:
        doubt = Doubt.ESTIMATE
    else:
        doubt = None if claimed and met == solved else Doubt.UNFINISHED
    reach = Reach.NOTHING
    if doubt in (None, Doubt.UNFINISHED) and claimed and not math.isnan(lam_low):
        reach = Reach.SOLVED if not can.finds_lambdas else Reach.RANGE if lam_low > 0.0 else Reach.EVERY
    return Verdict(
        reach=reach, doubt=doubt, sense=sense, status="ROUNDING_LIMIT" if rounded else attrs.get("status"), met=met,
        solved=solved, lam_low=_known(lam_low), allowed=float(attrs["eps"]), relative=bool(attrs["relative"]),
        dual_point=dual, verified=recomputed and not broken, broken=tuple(broken[:MOST_BROKEN]), loose=loose,
        rounded=tuple(rounded), **{name: _known(value) for name, value in numbers.items()},
    )  # fmt: skip


def no_tighter(gap: float | np.ndarray, primal: float | np.ndarray) -> bool | np.ndarray:
    """Whether a gap certifies no more than the dual value 0, which the truth alone has as a dual point."""
    return (gap > 0.0) & (gap >= primal)


def not_the_path(broken: Sequence[str]) -> Verdict:
    """The verdict on a path that is not the path of the run: none of its own claims counts."""
    return Verdict(Reach.NOTHING, Doubt.BROKEN, ESTIMATE, broken=tuple(broken[:MOST_BROKEN]))


CLAIMED = ("gap", "lambda", "primal", "dual", "status", "cell_low", "cell_dual", "lambda_low", "proven")
"""The arrays of a path.zarr that `claimed` looks at, as far as they are there."""


def claimed(arrays: Mapping[str, np.ndarray], attrs: Facts) -> Verdict:
    """What a path says of itself, before anything is recomputed; from the numbers of its breakpoints."""
    import numpy as np

    gaps, lams = np.asarray(arrays["gap"], float), np.asarray(arrays["lambda"], float)
    loose = int(np.sum(no_tighter(gaps, np.asarray(arrays["primal"], float)))) if "primal" in arrays else 0
    can = path_rule(str(attrs["rule"]))
    sense = str(attrs["certainty"]) if can.exact else ESTIMATE
    if not can.finds_lambdas:
        met = (np.asarray(arrays["status"]) == list(attrs["status_meanings"]).index("CONVERGED")) & ~np.isnan(gaps)
        low, high = ends_of(lams[met])
    else:
        shares = np.asarray(arrays["dual"], float) if attrs["relative"] else 1.0
        met, high = gaps <= float(attrs["eps"]) * shares, math.inf
        # cells with certificates of their own hold whatever limit ended the last lambda
        lows = np.asarray(arrays["cell_low"] if "cell_dual" in arrays else np.asarray(arrays["lambda_low"])[met])
        low = float(lows[-1]) if lows.size else math.nan
        if attrs["relative"]:
            primal = np.asarray(arrays["primal"], float)
            gaps = np.divide(gaps, primal, out=gaps.copy(), where=~(primal <= 0.0))
    proven = float(np.mean(arrays["proven"])) if sense == UPPER_BOUNDED and "proven" in arrays else math.nan
    return judge(
        attrs, sense=sense, met=int(met.sum()), solved=met.size, lam_low=low, lam_high=high, largest_gap=float(gaps.max()),
        recomputed=False, proven=proven, loose=loose,
    )  # fmt: skip


def ends_of(lams: np.ndarray) -> tuple[float, float]:
    """The least and the largest of the given lambdas that are certified; nan if none is."""
    return (float(lams.min()), float(lams.max())) if lams.size else (math.nan, math.nan)


def read_verdict(run_dir: Location, arrays: Mapping[str, np.ndarray], attrs: Facts) -> Verdict:
    """The verdict in verify.json of a run, or before it is verified what its path claims.

    `arrays` and `attrs` are those of its path.zarr. DamagedError if verify.json holds no verdict.
    """
    file = run_dir / "verify.json"
    if not file.is_file():
        return claimed(arrays, attrs)
    return verdict_in(read_json(file), file)


def verdict_in(content: Facts, file: Location) -> Verdict:
    """The verdict in the content of a verify.json; DamagedError names the file without a verdict."""
    try:
        return verdict_of(content["verdict"])
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(
            f"{file}: the verdict is missing or damaged ({error}); delete the file and repeat the command, which makes it "
            "again"
        ) from error


def _known(value: float | None) -> float | None:
    """None for nan and infinities, which JSON lacks."""
    return float(value) if value is not None and math.isfinite(value) else None


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
