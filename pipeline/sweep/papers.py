"""Every figure of the papers by one command: sweeps one after the other, a page over all, and what became of each claim.

A part is an experiment with overrides, which is carried out as if it had been given alone: its runs and its sweep lie where
they would then, are shared with other parts, and are skipped when complete. So an interrupted command goes on where it was.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from omegaconf import DictConfig, OmegaConf

from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import explain, typed
from gapwise.pipeline.errors import BAD_CONFIGURATION, DONE, FAILED, INTERRUPTED, refuse, refuse_setup
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.records import Record
from gapwise.storage.backend import Location, location
from gapwise.storage.files import locked, read_json

if TYPE_CHECKING:
    from gapwise.stages.reports.papers.earlier import Pages
    from gapwise.stages.reports.papers.shown import Shown

BUDGETS = ("minutes", "small", "full")


@dataclass
class PaperOptions:
    """The group `papers`."""

    budget: str = "minutes"
    """Of BUDGETS: small ones for every part, or what the sweeps have by default."""
    budgets: dict[str, str] = field(default_factory=dict)
    """The budgets of single parts, by name."""
    recorded: list[str] = field(default_factory=list)
    """Files papers.json: the pages show the parts that these name, those of later files first, and only what `sweep.only`
    names runs."""
    record: str | None = None
    """A file for the short page in Markdown. Beside it are its numbers (`.json`), which `recorded` takes on any machine."""
    pictures: str | None = None
    """A folder for the pictures of the short page."""
    all: list[str] = field(default_factory=list)
    """Overrides for every part, before those of the command line."""
    parts: dict[str, Record] = field(default_factory=dict)
    """Name to `shows`, `task`, `sweep` (overrides), `minutes`, `small`, `full` (more of them), `differs`, `from`."""
    figures: Record = field(default_factory=dict)
    """Every figure and table of the papers to the names of the parts that show it, or to why there is none."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        for key, budget in {"": self.budget, **self.budgets}.items():
            if budget not in BUDGETS:
                where = f"papers.budgets.{key}" if key else "papers.budget"
                raise ValueError(f"{where}: expected one of {', '.join(BUDGETS)}, got {budget!r}")
        for name in self.budgets:
            if name not in self.parts:
                raise ValueError(f"papers.budgets: no part {name!r}; there are: {', '.join(self.parts)}")
        for name, part in self.parts.items():
            sweep = part.get("sweep") or [""]
            good = part.get("shows") and str(sweep[0]).startswith("+experiment=")
            if not good or set(part) - {"shows", "task", "sweep", *BUDGETS, "differs", "from"}:
                keys = "shows, sweep=[+experiment=..., ...], and perhaps task, minutes, small, full, differs and from"
                raise ValueError(f"papers.parts.{name}: expected {keys}, got {part!r}")
        for figure, names in self.figures.items():
            unknown = [name for name in ([] if isinstance(names, str) else names) if name not in self.parts]
            if unknown:
                raise ValueError(f"papers.figures.{figure}: no part {unknown[0]!r}; there are: {', '.join(self.parts)}")

    def budget_of(self, part: str) -> str:
        """The budget of a part: its own, or the command's."""
        return self.budgets.get(part, self.budget)


def papers(cfg: DictConfig) -> int:
    """Carry out the parts that `cfg` asks for; returns the exit code: 0, 1 if any run failed, 2 for a bad configuration."""
    from hydra.core.hydra_config import HydraConfig

    from gapwise.pipeline.sweep.run import interrupted

    given = list(HydraConfig.get().overrides.task)
    with Stop(ends_process=True) as stop:
        try:
            options: PaperOptions = typed("papers", cfg.papers, PaperOptions())
            only = list(cfg.sweep.get("only") or ())
            wanted = wanted_parts(options, only) if only or not options.recorded else []
            pages = old = _earlier(options)
        except (ValueError, OSError) as error:
            return refuse_setup(error)
        folder = location(cfg.run.root) / "papers"
        shown, codes = dict[str, "Shown"](), [DONE]
        for number, name in enumerate(wanted, start=1):
            print(f"papers: {number}/{len(wanted)} {name}: {options.parts[name]['shows']}", file=sys.stderr, flush=True)
            try:
                part, code, anything_new = _part(name, options, given, stop)
            except (Interrupted, KeyboardInterrupt):
                return interrupted(stop, f"{len(shown)} of {len(wanted)} parts" if shown else "")
            if code >= INTERRUPTED:
                return code
            codes.append(code)
            shown[name] = part
            pages = old.with_parts(shown, options.parts)
            if anything_new and number < len(wanted):
                code = _write(folder, options, pages, f"{number} of {len(wanted)}", given)
                if code != DONE:
                    return code
        code = _write(folder, options, pages, f"{len(pages.parts)} of {len(pages.parts)}", given, finished=True)
        if code == DONE:
            print(f"papers: {folder / 'index.html'}", flush=True)
        return max(*codes, code)


def _earlier(options: PaperOptions) -> Pages:
    """What the files in `papers.recorded` tell; ConfigError names one that tells nothing."""
    from gapwise.stages.reports.papers.earlier import earlier

    records = [read_json(location(file)) for file in options.recorded]
    for file, record in zip(options.recorded, records, strict=True):
        if not {"parts_made", "claims", "ours"} <= {*(record or ())}:
            raise ConfigError(f"papers.recorded: {file}: expected a papers.json that lists its parts")
    try:
        return earlier(records, options.parts)
    except KeyError as error:
        what = f"an entry without {error}, as another version wrote it; make that page again with this one"
        raise ConfigError(f"papers.recorded: {', '.join(options.recorded)}: {what}") from None


def wanted_parts(options: PaperOptions, only: Sequence[str]) -> list[str]:
    """The parts named in `only`, or those that the budget has; ConfigError names one that there is not."""
    unknown = [name for name in only if name not in options.parts]
    if unknown:
        raise ConfigError(f"sweep.only: no part {unknown[0]!r}; there are: {', '.join(options.parts)}")
    rank = list(BUDGETS).index
    within = [
        name
        for name, part in options.parts.items()
        if rank(part.get("from") or "minutes") <= rank(options.budget_of(name))
    ]
    return list(only) or within


def words(part: Record, budget: str, given: Sequence[str], always: Sequence[str] = ()) -> list[str]:
    """The command line of a part: its experiment, `always`, what the user gave for all parts, then the part's own words."""
    own = [*part["sweep"], *(part.get(budget) or ())]
    names = [word.split("=")[0].lstrip("+~") for word in given]
    mine = [name in ("experiment", "sweep.only") or name.startswith("papers.") for name in names]
    return [own[0], *always, *(word for word, skip in zip(given, mine, strict=True) if not skip), *own[1:]]


def command_of(line: Sequence[str]) -> str:
    """The command with these overrides, as it is typed in a shell."""
    return shlex.join(["python", "-m", "pipeline", *line])


def _part(name: str, options: PaperOptions, given: Sequence[str], stop: Stop) -> tuple[Shown, int, bool]:
    """The sweep of one part, its exit code, whether any run was carried out. Without its data a part is left out, and the
    page says so."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from gapwise.pipeline.sweep.commands import compose_words, described
    from gapwise.pipeline.sweep.run import carry_out
    from gapwise.stages.reports.papers.shown import Shown

    part, budget = options.parts[name], options.budget_of(name)
    line = words(part, budget, given, options.all)
    said = budget if {*BUDGETS} & {*part} else "every"
    about = Shown(name, part["shows"], command_of(line), part.get("differs") or "", part.get("task") or "", said)
    experiment = line[0].partition("=")[2]
    try:
        cfg = compose_words(line)
        OmegaConf.set_struct(cfg, False)
        whole = described(cfg, experiment, line, stop)
    except (HydraException, OmegaConfBaseException) as error:
        refuse(ConfigError(explain(error)), BAD_CONFIGURATION)
        return about.without(explain(error)), BAD_CONFIGURATION, False
    except (ValueError, OSError) as error:
        print(f"papers: left out {name}: {error}", file=sys.stderr, flush=True)
        return about.without(str(error)), DONE, False
    code = carry_out(whole, stop)
    return about.of(whole.folder), code, any(row["status"] != "complete" for row in whole.rows)


def _write(
    folder: Location, options: PaperOptions, pages: Pages, parts: str, given: Sequence[str], finished: bool = False
) -> int:
    """The page and its numbers after parts with new runs and, once `finished`, those that were asked for; the exit code."""
    from gapwise.pipeline.source_code import commit
    from gapwise.stages.reports.papers.page import machine, write_index, write_json_claims
    from gapwise.stages.reports.papers.short_page import write_markdown
    from gapwise.stages.reports.papers.shown import standings

    shown = [*pages.parts.values()]
    about = {"command": command_of(given), "budget": options.budget, "parts": parts, "source": commit()}
    about |= {"made": f"{datetime.now(UTC):%Y-%m-%d}", **machine()}
    lines = standings(shown, pages.told)
    try:
        with locked(folder / "lock", lambda holder: None, seconds=0.1):  # another such command may be writing the pages
            write_json_claims(folder / "papers.json", shown, about, lines)
            write_index(folder / "index.html", shown, about, lines, options.figures)
            if options.record and finished:
                record = location(options.record)
                pictures = location(options.pictures) if options.pictures else None
                write_json_claims(record.with_suffix(".json"), shown, about, lines, here=False)
                write_markdown(record, shown, about, lines, options.figures, pictures)
    except OSError as error:
        return refuse(error, FAILED, "papers: ")
    return DONE
