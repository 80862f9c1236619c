"""The last step of choosing lambda: the same lambda on all training blocks, those included that chose it.

A path is solved on the blocks that are not held out, the others choose lambda, and the model that leaves home is trained on
all of them at that lambda. Its solve begins at the path's dual point there; blocks that were held out begin at their truth.
Estimators and the stage `refit` share this file.
"""

from __future__ import annotations

import hashlib

import numpy as np

from gapwise.records import Record
from gapwise.stages.model.measures import measured
from gapwise.stages.model.predictions import write_predictions
from gapwise.stages.problems import build
from gapwise.stages.problems.capabilities import certainty_of
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solve import Session, Task, solve
from gapwise.stages.solver.options import MethodOptions, PathOptions, Status
from gapwise.stages.solver.supports import Supports
from gapwise.stages.verify import Report, asked_for, verify
from gapwise.storage.backend import Location
from gapwise.storage.features import Features
from gapwise.storage.files import make_directory, read_json, remove, write_json
from gapwise.storage.mixture import AnyPath
from gapwise.storage.results import read_path

RECORD = "refit.json"
"""What the folder is a solve of."""
TOLERANCE = 1e-3
"""On gap / dual, as that of a single lambda elsewhere."""


def refit(
    whole: Problem,
    path: AnyPath,
    lam: float,
    folder: Location,
    *,
    options: MethodOptions,
    seed: int,
    key: str,
    session: Session,
    report: Report,
) -> Status:
    """Solve all blocks at lambda, committing to ``folder/state``; leaves path.zarr, trace.zarr and verify.json there.

    Parameters
    ----------
    whole, path, lam
        As in `start_of_all`.
    key : str
        Of the run of `path`.

    Returns
    -------
    Status
        INTERRUPTED or TIME_LIMIT if there is no path.zarr yet, and the same call goes on. CertificateError if a
        certificate does not hold.
    """
    goal = PathOptions(rule="single", lam=lam, tolerance=TOLERANCE, relative=True).for_method(options)
    initial = start_of_all(whole, path, lam)
    begins = hashlib.sha256(b"".join(part.tobytes() for part in initial or ())).hexdigest()
    science = {"key": key, "lambda": lam, "initial": begins, "order": "held-out blocks last"}
    _claim(folder, science)
    task = Task(whole, options, goal, seed, initial=initial, switches=True)
    status = solve(task, folder, key=key, science=science, session=session)
    if (folder / "path.zarr").is_dir():
        asked = asked_for(goal, options.method, seed=seed, key=key, status=status.value, certainty=certainty_of(whole))
        verify(whole, folder, asked=asked, spread=session.spread, report=report)
    return status


def _claim(folder: Location, science: Record) -> None:
    """Note what `folder` is a solve of; what lies there of another one, as before the path went on, is removed."""
    record = folder / RECORD
    if record.is_file() and read_json(record) == science:
        return
    for name in ("state", "path.zarr", "trace.zarr"):
        if (folder / name).exists():
            remove(folder / name)
    make_directory(folder)
    write_json(record, science)


def measure(features: Features, folder: Location, spread: Spread) -> Record:
    """Loss and measures on the test blocks of `features` of the model in `folder`.

    Writes metrics.json there, and what evaluate writes of a path: predictions.npz, and for people predictions/.
    """
    meta, arrays = features.meta, features.arrays("test")
    problem = build(meta["structure"], arrays, meta)
    solved, _ = read_path(folder / "path.zarr", ("lambda", "gap", "primal", "dual", "weights"))
    labels, _, measures = measured(problem, arrays, meta, solved["weights"][0], "test", spread)
    result = {**{name: float(solved[name][0]) for name in ("lambda", "gap", "primal", "dual")}, **measures}
    write_predictions(folder, problem, arrays, meta, labels)
    write_json(folder / "metrics.json", result)
    return result


def supports_of(path: AnyPath, row: int) -> Supports:
    """The dual solution at a breakpoint."""
    offset = np.asarray(path["support_offset"][row])
    atoms = slice(int(offset[0]), int(offset[-1]))
    label_offset = np.asarray(path["label_offset"][atoms.start : atoms.stop + 1])
    labels = np.asarray(path["support_label"][int(label_offset[0]) : int(label_offset[-1])])
    alpha, losses = np.asarray(path["support_alpha"][atoms]), np.asarray(path["support_loss"][atoms])
    used = np.zeros(alpha.size, np.int64)
    return Supports(offset - offset[0], alpha, losses, used, labels, label_offset - label_offset[0])


def nearest(path: AnyPath, lam: float) -> int:
    """The breakpoint nearest to lambda, on a logarithmic scale."""
    return int(np.argmin(np.abs(np.log(np.asarray(path["lambda"]) / lam))))


def start_of_all(whole: Problem, path: AnyPath, lam: float) -> Supports | None:
    """The dual point at which all blocks begin at lambda; None: at w = 0, as the path has no dual solutions.

    Parameters
    ----------
    whole : Problem
        All blocks: first those of the path, then those that were held out.
    path : SolvedPath or PathInMemory
        Of the first blocks.
    """
    return extended(supports_of(path, nearest(path, lam)), whole) if path.attrs["dual_point"] else None


def extended(supports: Supports, whole: Problem) -> Supports:
    """`supports` of the first blocks of `whole`; each block behind them has its truth alone, with weight 1."""
    first = supports.offset.size - 1
    more, ptr = whole.n - first, whole.label_ptr[first:]
    return Supports(
        np.append(supports.offset, supports.offset[-1] + np.arange(1, more + 1)),
        np.append(supports.alpha, np.ones(more)),
        np.append(supports.losses, np.zeros(more)),
        np.append(supports.used, np.zeros(more, np.int64)),
        np.append(supports.label.astype(whole.truth.dtype), whole.truth[ptr[0] :]),
        np.append(supports.label_offset, supports.label_offset[-1] + ptr[1:] - ptr[0]),
    )
