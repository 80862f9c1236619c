"""A part of `+experiment=papers` as the pages show it: what it found, and where its runs come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from gapwise.records import Facts
from gapwise.stages.reports.papers import MISSING, claims, findings
from gapwise.stages.reports.papers.claim import Claim
from gapwise.stages.reports.papers.measured import Finding, Measured
from gapwise.stages.reports.papers.ours import Contest, contests, merged
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
    """The sweep's directory; None if the part was left out, or if its runs are not here and a record tells of them."""
    problem: str = ""
    figures: tuple[str, ...] = ()
    claims: tuple[tuple[Claim, Finding], ...] = ()
    origin: tuple[str, ...] = ()
    """Where its runs come from, in the order of `ORIGIN_HEADS` from `runs` on; empty if there are none."""
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
            checked = tuple(findings(self.name, measured))
            lines = tuple(contests(self.task or self.shows, {self.name: measured}))
        except (ValueError, OSError) as error:
            return replace(done, problem=str(error))
        statuses = measured.summary["statuses"]
        missing = ", ".join(f"{n} {status}" for status, n in statuses.items() if status not in ("complete", "done"))
        return replace(
            done, figures=figures, claims=checked, origin=origin_of(measured.jobs), contests=lines, measured=measured,
            problem=missing and f"of its runs {missing}",
        )  # fmt: skip

    @property
    def left_out(self) -> bool:
        """Whether there are no runs of it, here or elsewhere."""
        return self.folder is None and not self.origin

    def record(self, here: bool = True) -> Facts:
        """What another page makes the same part from, together with its rows of claims; `here`: on this machine, too."""
        row: Facts = {name: getattr(self, name) for name in (*TOLD, "problem")}
        where = {"sweep": str(self.folder)} if here and self.folder is not None else {}
        return {**row, "figures": [*self.figures], "origin": [*self.origin], **where}


TOLD = ("name", "shows", "command", "differs", "task", "budget")
"""What is known of a part before it is carried out."""


def origin_of(jobs: Sequence[Facts]) -> tuple[str, ...]:
    """How many runs and seeds, the commits that began them, the days, the load averages at the ends of their solves."""
    commits = dict.fromkeys(str(job.get("commit") or "unknown")[:8] for job in jobs)
    days = sorted({str(job.get("made") or "unknown") for job in jobs})
    loads = sorted(float(job["load"]) for job in jobs if job.get("load") is not None)
    return (
        f"{len(jobs):,}",
        str(len({job["seed"] for job in jobs})),
        ", ".join(commits),
        " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        f"{loads[0]:.1f} to {loads[-1]:.1f}, median {median(loads):.1f}" if loads else "not recorded",
    )


def recorded(row: Facts, rows_of_claims: Sequence[Facts]) -> Shown:
    """The part that `Shown.record` describes: measured again if its sweep is on this machine, otherwise as it was told.

    Parameters
    ----------
    row : mapping
        `Shown.record`.
    rows_of_claims : sequence of mappings
        Those of `papers.json`, of this part and others.
    """
    part = Shown(**{name: row[name] for name in TOLD})
    if "sweep" in row and (folder := location(row["sweep"])).is_dir():
        return part.of(folder)
    told = {
        (claim["claim"], claim["judged"]): Finding(claim["holds"], claim["measured"], claim["ratio"], claim["why"])
        for claim in rows_of_claims
        if claim["part"] == part.name
    }
    nothing = Finding(None, "its runs are not here, and were not judged in this way", why=MISSING)
    mine = [claim for claim in claims() if part.name in claim.parts]
    known = tuple((claim, told.get((claim.name, claim.judged), nothing)) for claim in mine)
    return replace(
        part, problem=row["problem"], figures=tuple(row["figures"]), origin=tuple(row["origin"]),
        claims=known if row["origin"] else (),
    )  # fmt: skip


ORIGIN_HEADS = ("part", "budget", "runs", "seeds", "code of commit", "made on", "load average while solving")


def origin_rows(parts: Sequence[Shown]) -> list[list[str]]:
    """A row a part that was carried out: by which budget, and where its runs come from."""
    return [[part.shows, part.budget, *part.origin] for part in parts if part.origin]


@dataclass(frozen=True)
class Judged:
    """A row of the pages: a claim on a part, or on several together."""

    claim: Claim
    on: str
    """What the parts show."""
    finding: Finding


def judged(parts: Sequence[Shown]) -> list[Judged]:
    """The claims on every part; those about several data sets at once last."""
    every = [(claim, part, finding) for part in parts for claim, finding in part.claims]
    rows = [Judged(claim, part.shows, finding) for claim, part, finding in every if claim.together is None]
    joint = {claim.name: claim for claim, *_ in every if claim.together is not None}
    for name, claim in joint.items():
        mine = [(part, finding) for other, part, finding in every if other.name == name and finding.why != MISSING]
        if mine and claim.together is not None:
            outcome = claim.together({part.name: finding for part, finding in mine})
            words = "; ".join(f"{part.shows}: {finding.measured}" for part, finding in mine)
            found = Finding(outcome.holds, words, outcome.ratio, outcome.why)
            rows.append(Judged(claim, "; ".join(part.shows for part, _ in mine), found))
    return rows


def standings(parts: Sequence[Shown], told: Sequence[Contest] = ()) -> list[Contest]:
    """Ours against the papers' methods on all runs of each task, wherever in the parts they are.

    Lines that earlier pages `told` stand for runs that are not here: those of parts whose runs are here are dropped.
    """
    tasks = dict.fromkeys(part.task or part.shows for part in parts)
    here = {part.name for part in parts if part.measured}
    lines = [line for line in told if line.task in tasks and not here & {*line.parts}]
    for task in tasks:
        of_task = {p.name: p.measured for p in parts if p.measured and (p.task or p.shows) == task}
        lines += contests(task, of_task)
    return merged(lines, [*tasks])
