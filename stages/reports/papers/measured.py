"""A finished sweep as claims read it: its gap traces, its paths, and what its runs recorded of their outer iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gapwise.records import Facts
from gapwise.stages.reports.curves import Curves, Runs, Trace, certainty_of_curves, read_curves
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.suboptimality import with_suboptimality
from gapwise.storage.backend import Location, location
from gapwise.storage.files import read_json
from gapwise.storage.results import read_iterations


@dataclass(frozen=True)
class Finding:
    """What was measured of a claim."""

    holds: bool | None
    """None: these runs do not decide it."""
    measured: str
    """The numbers, in words."""
    ratio: float | None = None
    """By how much, where a single number can say: more than 1 in favour of the claim."""
    why: str = ""
    """Why these runs do not decide it."""


class Measured:
    """The runs of one sweep.

    Attributes
    ----------
    folder : Path or UrlPath
        The sweep's directory, with summary.json.
    """

    def __init__(self, folder: Location):
        self.folder = folder
        self.summary: Facts = read_json(folder / "summary.json")
        self.jobs = [row for row in self.summary["jobs"] if row["status"] in ("complete", "done")]
        self._paths: dict[str, dict[str, np.ndarray]] = {}

    @cached_property
    def curves(self) -> Curves:
        """Gap traces with suboptimalities, by (variant, lambda)."""
        return with_suboptimality(read_curves(self.runs), self.certainty)

    @property
    def runs(self) -> Runs:
        """The complete runs."""
        return [(row["variant"], row["lambda"], row["seed"], location(row["run"])) for row in self.jobs]

    @cached_property
    def certainty(self) -> str:
        """What their gaps are (`problems.certainty`)."""
        return certainty_of_curves(self.runs)

    @property
    def lambdas(self) -> list[str]:
        """As the sweep names them."""
        return list(dict.fromkeys(lam for _, lam in self.curves))

    def among(self, names: Sequence[str]) -> list[str]:
        """Those of `names` that the sweep has; all of them if none is named."""
        return [lam for lam in self.lambdas if not names or lam in names]

    @property
    def variants(self) -> list[str]:
        """Those with complete runs."""
        return list(dict.fromkeys(row["variant"] for row in self.jobs))

    def traces(self, variant: str, lam: str) -> list[Trace]:
        """One per seed; KeyError names the variant."""
        if (variant, lam) not in self.curves:
            raise KeyError(variant)
        return self.curves[variant, lam]

    def path(self, variant: str) -> dict[str, np.ndarray]:
        """One number per breakpoint of the variant's first run; KeyError names the variant."""
        if variant not in self._paths:
            run = next((row["run"] for row in self.jobs if row["variant"] == variant), None)
            if run is None:
                raise KeyError(variant)
            self._paths[variant] = read_numbers(location(run))[0]
        return self._paths[variant]

    def iterations(self, variant: str, lam: str) -> list[Mapping[str, np.ndarray]]:
        """What the variant's runs recorded of their outer iterations."""
        rows = [row for row in self.jobs if (row["variant"], row["lambda"]) == (variant, lam)]
        tables = [read_iterations(location(row["run"])) for row in rows]
        if not any(tables):
            raise KeyError(variant)
        return [columns for columns in tables if columns]
