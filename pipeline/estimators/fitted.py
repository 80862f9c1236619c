"""What a fit has solved: a path or given lambdas, and the chosen lambda once more on all blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gapwise.pipeline.estimators.certificate import ModelCertificate, certificate_of, ended_early
from gapwise.pipeline.estimators.solving import Solved
from gapwise.stages.choice import Edge, edge_of
from gapwise.stages.refit import nearest
from gapwise.stages.solver.options import PathOptions, Status


class Fitted(NamedTuple):
    """All that the fitted attributes are made from."""

    path: Solved
    """On the blocks that are not held out."""
    options: PathOptions
    """Of `path`."""
    lam: float
    """The chosen lambda."""
    losses: np.ndarray | None
    """float64, (breakpoints,): mean losses of the held-out blocks."""
    refit: Solved | None = None
    """On all blocks."""
    goal: PathOptions | None = None
    """Of `refit`."""

    @property
    def certificate_of_path(self) -> ModelCertificate:
        """That of `path`; of given lambdas at the chosen one."""
        return certificate_of(self.path, self.options, nearest(self.path.path, self.lam))

    @property
    def certificate(self) -> ModelCertificate:
        """That of the model at the chosen lambda."""
        if self.refit is None or self.goal is None:
            return self.certificate_of_path
        return certificate_of(self.refit, self.goal, 0)

    @property
    def edge(self) -> Edge | None:
        """The edge at which held-out blocks chose lambda, if they did."""
        lams, of_path = self.path.path["lambda"].values, bool(self.path.path.sizes.get("cell"))
        if self.losses is None:
            return None
        low = float(self.path.path["cell_low"].values[-1]) if of_path else 0.0
        return edge_of(lams, nearest(self.path.path, self.lam), of_path=of_path, low=low)

    def warnings(self, name: str) -> Iterator[str]:
        """What is to be said of solves that a limit ended."""
        if ended_early(self.path):
            yield _said_of(name, self.path, self.options, self.certificate_of_path)
        if self.refit is not None and self.goal is not None and ended_early(self.refit):
            yield _said_of(name, self.refit, self.goal, self.certificate)


def _said_of(name: str, result: Solved, path: PathOptions, certificate: ModelCertificate) -> str:
    """The warning of a solve that a limit ended."""
    limit = "max_seconds" if result.status is Status.TIME_LIMIT else "max_passes"
    ending = f"{name}: ended at {limit} ({result.status})"
    if path.can.finds_lambdas and certificate.holds:
        return f"{ending}; the path goes down to lam {certificate.lam_low:.3g} only; raise {limit}, or eps"
    asked = f"{certificate.allowed:.3g} was asked for, at lam {float(result.path['lambda'].values[-1]):.3g}"
    return f"{ending} with a gap of {certificate.gap:.3g} where {asked}; raise {limit}, or tolerance or eps"
