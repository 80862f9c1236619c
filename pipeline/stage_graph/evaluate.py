"""Losses at every breakpoint, the best lambda, and the run's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapwise.pipeline.stage_graph import Stage
from gapwise.storage.format import MEASURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gapwise.pipeline.config.settings import Settings
    from gapwise.pipeline.export import Export
    from gapwise.pipeline.job import Job
    from gapwise.pipeline.rundir import RunDir
    from gapwise.records import Facts


def run(job: Job) -> dict[str, object]:
    from gapwise.stages.evaluate import evaluate

    settings, pick = job.settings.run, job.settings.pick
    evaluate(
        job.features_path,
        job.dir.path,
        train_between=settings.train_between,
        criterion=settings.criterion,
        pick=pick,
        spread=job.spread,
        report=job.report,
    )
    return {"figures": draw_figures(job), "pick": pick, **({"train_between": True} if settings.train_between else {})}


def draw_figures(job: Job) -> list[str]:
    """Draw the figures of the run; returns their names."""
    from gapwise.stages.reports.figures import draw
    from gapwise.storage.features import open_features

    made = draw(job.dir.path, open_features(job.features_path), tuple(job.settings.figures.formats))
    return [path.name for path in made]


def unfinished(facts: Facts, settings: Settings) -> bool:
    """Whether another rule is to pick lambda, or training blocks are now to be measured between breakpoints, too."""
    more = settings.run.train_between and not facts.get("train_between", False)
    return more or facts.get("pick", "least") != settings.pick


def discard(job: Job) -> None:
    """Remove the losses: with damaged metadata they could not be written again."""
    from gapwise.storage.files import listed, remove

    for pattern in MEASURES:
        for array in listed(job.dir.path / "path.zarr", pattern):
            remove(array)


def export(to: Export) -> None:
    from gapwise.pipeline.rundir import read_json
    from gapwise.storage.layout import open_group, read_group

    names = [name for name, _ in open_group(to.run / "path.zarr").arrays()]
    measures = sorted(name for name in names if name.startswith(("train_", "test_", "validation_")))
    arrays, _ = read_group(to.run / "path.zarr", ("lambda", *measures))
    columns = {name: array.tolist() for name, array in arrays.items()}
    to.table("losses.csv", [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    to.json("metrics.json", by_split(read_json(to.run / "metrics.json")))
    to.tree("figures")


def by_split(metrics: Mapping[str, object]) -> dict[str, object]:
    """`metrics.json` with the split on which lambda was picked in the name of every number that depends on it, so that
    `dvc metrics diff` compares no lambda picked on validation blocks with one picked on the test blocks.
    """
    picked_on = metrics.get("picked_on", "test")
    of_no_lambda = ("all_zero_test_loss", "commonest_label", "commonest_test_loss", "validation_blocks")
    alone = {name: metrics[name] for name in of_no_lambda if name in metrics}
    by = f"test_{metrics.get('criterion', 'loss')}"
    hindsight = {"hindsight_lambda": "best_lambda", f"hindsight_{by}": by}
    chosen = {name: value for name, value in metrics.items() if name not in {*alone, *hindsight, "picked_on"}}
    test = {name: metrics[long] for long, name in hindsight.items() if long in metrics}
    return {f"picked_on_{picked_on}": chosen, **({"picked_on_test": test} if test else {}), **alone}


def result(settings: Settings, directory: RunDir) -> dict[str, object]:
    from gapwise.pipeline.result import EVALUATE_FIELDS, facts_of

    return {"evaluate": facts_of(directory.path / "metrics.json", EVALUATE_FIELDS)}


STAGE = Stage(
    "evaluate",
    run,
    outputs=("metrics.json", "predictions.npz", "predictions", f"path.zarr:{','.join(MEASURES)}"),
    unfinished=unfinished,
    discard=discard,
    export=export,
    result=result,
)
