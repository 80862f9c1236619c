"""Every certificate, recomputed by independent code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapwise.pipeline.stage_graph import Stage

if TYPE_CHECKING:
    from gapwise.pipeline.config.settings import Settings
    from gapwise.pipeline.export import Export
    from gapwise.pipeline.job import Job
    from gapwise.pipeline.rundir import RunDir


def run(job: Job) -> dict[str, object]:
    from gapwise.stages.problems.capabilities import certainty_of
    from gapwise.stages.verify import asked_for, verify

    settings, solved = job.settings, job.dir.manifest["stages"]["solve"]
    asked = asked_for(
        settings.path,
        settings.solver.method,
        seed=settings.seed,
        key=job.dir.key,
        status=solved["status"],
        certainty=certainty_of(job.train),
    )
    checks = verify(job.train, job.dir.path, asked=asked, spread=job.spread, report=job.report)
    return {"certified": bool(checks["verdict"]["certified"])}


def export(to: Export) -> None:
    from gapwise.pipeline.rundir import read_json

    checks = read_json(to.run / "verify.json")
    to.json("verify.json", {name: value for name, value in checks.items() if not isinstance(value, list)})


def result(settings: Settings, directory: RunDir) -> dict[str, object]:
    from gapwise.pipeline.result import VERIFY_FIELDS, facts_of
    from gapwise.pipeline.rundir import read_json
    from gapwise.stages.certify.verdict import verdict_in

    file = directory.path / "verify.json"
    checks = facts_of(file, VERIFY_FIELDS)
    return {"verify": checks, "verdict": verdict_in(read_json(file), file).record()}


STAGE = Stage(
    "verify",
    run,
    outputs=("verify.json",),
    export=export,
    result=result,
)
