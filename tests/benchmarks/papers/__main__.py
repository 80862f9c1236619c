"""What became of every sentence and figure of the papers: `python tests/benchmarks/papers FOLDER [PART ...] [--quick]`.

The sweeps of the parts in parts.yaml run one after the other, as `python -m pipeline` would run them, with their runs in
FOLDER/runs; parts whose data are not there are left out. Given again, the command goes on where it was, and skips what is
complete. After each part the page is made again: FOLDER/PAPERS.md, and FOLDER/papers with values.csv, parts.json and the
pictures. A folder is of one machine. `--quick` has fewer seeds and passes, which decide little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from measure import Sweep, added_rows, rows_of
from write import FOLDER, page, picture_name, read_values

from gapwise.pipeline.errors import INTERRUPTED
from gapwise.pipeline.source_code import commit
from gapwise.stages.reports.sweep_figures import figure_file
from gapwise.stages.reports.tables import write_csv

HERE = Path(__file__).parent
CLAIMS, PLAN = (yaml.safe_load((HERE / name).read_text(encoding="utf-8")) for name in ("claims.yaml", "parts.yaml"))
ENDED = "sweep: "
"""How the line begins in which a sweep tells its folder."""


def words_of(part: dict[str, Any], runs: Path, quick: bool = False) -> list[str]:
    """The words of `python -m pipeline` for a part."""
    return [*part["sweep"], *(part.get("quick", ()) if quick else ()), f"run.root={runs}", "tracking=none"]


def carried_out(words: list[str]) -> tuple[Path | None, int]:
    """The folder of a sweep, None if it could not begin, and its exit code. What it says goes to the terminal."""
    done = subprocess.run([sys.executable, "-m", "gapwise.pipeline", *words], stdout=subprocess.PIPE, text=True)
    folders = [Path(line.removeprefix(ENDED)) for line in done.stdout.splitlines() if line.startswith(ENDED)]
    return (folders[-1] if folders else None), done.returncode


def origin_of(sweep: Sweep, problem: str) -> dict[str, Any]:
    """What the page tells of a part's runs."""
    loads = sorted(float(job["load"]) for job in sweep.jobs if job.get("load") is not None)
    days = sorted({str(job.get("made") or "unknown") for job in sweep.jobs})
    return {
        "runs": len(sweep.jobs), "seeds": len({job["seed"] for job in sweep.jobs}),
        "commits": ", ".join(dict.fromkeys(str(job.get("commit") or "unknown")[:8] for job in sweep.jobs)),
        "days": " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        "load": f"{loads[0]:.1f} to {loads[-1]:.1f}, median {median(loads):.1f}" if loads else "unknown",
        "figures": [name for name in sweep.summary.get("figures", ()) if name.endswith(".png")], "problem": problem,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PLAN['parts'])}; all without any")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if unknown := {*given.parts} - {*PLAN["parts"]}:
        parser.error(f"no part {min(unknown)!r}; there are: {', '.join(PLAN['parts'])}")
    target, rows, made = given.folder.absolute() / FOLDER, [], {}
    target.mkdir(parents=True, exist_ok=True)
    for name in given.parts or PLAN["parts"]:
        print(f"{name}: {PLAN['parts'][name]['shows']}", file=sys.stderr, flush=True)
        folder, code = carried_out(words_of(PLAN["parts"][name], given.folder.absolute() / "runs", given.quick))
        if code >= INTERRUPTED:
            return code
        if folder is None:
            print(f"left out {name}", file=sys.stderr, flush=True)
            continue
        sweep = Sweep(folder)
        rows += [row for claim in CLAIMS for row in rows_of(claim, name, sweep)]
        rows += added_rows(name, sweep, **PLAN["added"])
        made[name] = origin_of(sweep, "Some runs failed" if code else "")
        for figure in made[name]["figures"]:
            shutil.copyfile(figure_file(folder, figure), target / picture_name(name, figure))
        _write(target, rows, made)
    print(target.parent / "PAPERS.md")
    return int(not made)


def _write(target: Path, rows: list[dict[str, str]], made: dict[str, Any]) -> None:
    """The page and what it is made from; the rows of a claim stand together."""
    order = [*(claim["id"] for claim in CLAIMS), "added"]
    write_csv(target / "values.csv", sorted(rows, key=lambda row: order.index(row["claim"])))
    about = {
        "command": shlex.join(["python", "tests/benchmarks/papers", *sys.argv[1:]]), "made": f"{datetime.now(UTC):%Y-%m-%d}",
        "source": commit(), "python": f"Python {platform.python_version()}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores", "notes": [], "parts": made,
    }  # fmt: skip
    (target / "parts.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text = page(read_values(target / "values.csv"), about, CLAIMS, PLAN)
    (target.parent / "PAPERS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
