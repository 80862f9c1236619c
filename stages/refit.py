"""The last step of choosing lambda: the same lambda on all training blocks, those included that chose it.

A path is solved on the blocks that are not held out, the others choose lambda, and the model that leaves home is trained on
all of them at that lambda, from the dual point that `choice.held_out.start_of_all` gives.
"""

from __future__ import annotations

import hashlib

from gapwise.records import Record
from gapwise.stages.choice.held_out import start_of_all
from gapwise.stages.model.measures import measured
from gapwise.stages.model.predictions import write_predictions
from gapwise.stages.problems import build
from gapwise.stages.problems.capabilities import certainty_of
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solve import Session, Task, solve
from gapwise.stages.solver.options import MethodOptions, PathOptions, Status
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
