"""A part of `+experiment=papers` as the pages show it: what it found, and where its runs come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from gapwise.records import Facts
from gapwise.stages.reports.papers import findings
from gapwise.stages.reports.papers.claim import Claim
from gapwise.stages.reports.papers.measured import Finding, Measured
from gapwise.stages.reports.papers.ours import Contest, contests
from gapwise.storage.backend import Location, location


@dataclass(frozen=True)
class Shown:
    """One part, carried out or left out."""

    name: str
    shows: str
    command: str
    differs: str = ""
    task: str = ""
    """What is learned: parts of the same task are compared with each other, too."""
    budget: str = ""
    """By which its runs were planned."""
    folder: Location | None = None
    """The sweep's directory; None if the part was left out."""
    problem: str = ""
    figures: tuple[str, ...] = ()
    claims: tuple[tuple[Claim, Finding], ...] = ()
    contests: tuple[Contest, ...] = field(default=())
    """On the runs of this part alone."""
    measured: Measured | None = field(default=None, repr=False)

    def without(self, problem: str) -> Shown:
        """The part as left out."""
        return replace(self, problem=" ".join(problem.split()))

    def of(self, folder: Location) -> Shown:
        """The part with what its sweep found. A sweep that cannot be read is a problem of the part, not of the page."""
        done = replace(self, folder=folder)
        try:
            measured = Measured(folder)
            figures = tuple(name for name in measured.summary.get("figures", ()) if name.endswith(".png"))
            checked, lines = tuple(findings(self.name, measured)), tuple(contests(self.task or self.shows, [measured]))
        except (ValueError, OSError) as error:
            return replace(done, problem=str(error))
        statuses = measured.summary["statuses"]
        missing = ", ".join(f"{n} {status}" for status, n in statuses.items() if status not in ("complete", "done"))
        return replace(
            done, figures=figures, claims=checked, contests=lines, measured=measured,
            problem=missing and f"of its runs {missing}",
        )  # fmt: skip

    @property
    def record(self) -> Facts:
        """What another page makes the same part from."""
        names = ("name", "shows", "command", "differs", "task", "budget")
        row: Facts = {name: getattr(self, name) for name in names}
        return {**row, "sweep": str(self.folder)} if self.folder is not None else {**row, "left_out": self.problem}

    @property
    def origin(self) -> list[str]:
        """How many runs and seeds, the commits that began them, the days, the load averages at the ends of their solves."""
        jobs = self.measured.jobs if self.measured else []
        commits = dict.fromkeys(str(job.get("commit") or "unknown")[:8] for job in jobs)
        days = sorted({str(job.get("made") or "unknown") for job in jobs})
        loads = sorted(float(job["load"]) for job in jobs if job.get("load") is not None)
        load = f"{loads[0]:.1f} to {loads[-1]:.1f}, median {median(loads):.1f}" if loads else "not recorded"
        return [
            f"{len(jobs):,}",
            str(len({job["seed"] for job in jobs})),
            ", ".join(commits),
            " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
            load,
        ]


def recorded(row: Facts) -> Shown:
    """The part that `Shown.record` describes, with what its sweep found."""
    part = Shown(**{name: value for name, value in row.items() if name not in ("sweep", "left_out")})
    return part.of(location(row["sweep"])) if "sweep" in row else part.without(row["left_out"])


ORIGIN_HEADS = ("part", "budget", "runs", "seeds", "code of commit", "made on", "load average while solving")


def origin_rows(parts: Sequence[Shown]) -> list[list[str]]:
    """A row a part that was carried out: by which budget, and where its runs come from."""
    return [[part.shows, part.budget, *part.origin] for part in parts if part.folder is not None]


def standings(parts: Sequence[Shown]) -> list[Contest]:
    """Ours against the papers' methods on all runs of each task, wherever in the parts they are."""
    tasks = dict.fromkeys(part.task or part.shows for part in parts)
    return [
        line
        for task in tasks
        for line in contests(task, [p.measured for p in parts if p.measured and (p.task or p.shows) == task])
    ]
