"""Numbers of README and of the site that were measured: ``python .github/docs/measured.py [NAME ...]`` measures them again.

They are in `measured.json` beside this file, with the command, the day and the load. `STATED` has the sentences that show
them; the same command writes these into the pages. A test compares pages and file.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
STORED = Path(__file__).with_name("measured.json")
SAMPLE = ("+experiment=regpath_horseseg",)
TEXT = (
    "dataset=sequences_csv",
    *(f"dataset.{option}" for option in ("file=train.txt", "test_file=test.txt", "template=template")),
)
LONG = ("+experiment=regpath_ocr", "path.eps=0.01", "run.until=solve", "tracking=none")

STATED = {
    ".github/docs/install.md": [
        "| size | {size[gigabytes]:.1f} GB with all dependencies, of which {size[largest]} take the most |",
        "| memory | {memory[gigabytes]:.1f} GB for the sample; the",
        "The first run of the sample took {compiling[sample][first]:.0f} CPU seconds, a second one "
        "{compiling[sample][second]:.0f}.",
        "On the sentences of the tutorial they took {compiling[text][first]:.0f} and {compiling[text][second]:.0f}.",
    ],
    ".github/docs/howto/choose_loss.md": [
        "| `per_sequence` | {losses[per_sequence][token_error]:.4f} | {losses[per_sequence][chunk_f1]:.3f} |",
        "| `per_token` | {losses[per_token][token_error]:.4f} | {losses[per_token][chunk_f1]:.3f} |",
        "| `per_token`, `constraints=bio` | {losses[bio][token_error]:.4f} | {losses[bio][chunk_f1]:.3f} |",
    ],
    ".github/docs/howto/slow_oracle.md": [
        "On OCR letters to ε = 0.01 it called each example's oracle {calls[expensive_oracle]:.0f} times, and the default "
        "{calls[bcpfw_gap_cache]:.0f} times.",
    ],
}
"""Page -> its sentences, formatted with the contents of `measured.json`."""


class Spent(NamedTuple):
    """What a command and its processes took."""

    gigabytes: float
    """The largest resident set of one of them."""
    seconds: float
    """Of CPU, in all of them."""


def spent(words: tuple[str, ...], folder: str, **variables: str) -> Spent:
    """Carry out a command in a folder of its own."""
    runs = {"GAPWISE_RUNS": tempfile.mkdtemp(dir=folder), "HOME": folder, "MLFLOW_DISABLE_TELEMETRY": "true"}
    program = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_maxrss / 1e6, used.ru_utime + used.ru_stime)"
    )
    command = [sys.executable, "-c", program, sys.executable, "-m", "gapwise", *words]
    told = subprocess.run(command, cwd=folder, env={**os.environ, **runs, **variables}, capture_output=True, check=True)
    return Spent(*map(float, told.stdout.split()))


def memory() -> dict[str, Any]:
    """The memory of README's first command."""
    with tempfile.TemporaryDirectory() as folder:
        return {"gigabytes": spent(SAMPLE, folder).gigabytes}


def compiling() -> dict[str, dict[str, float]]:
    """CPU seconds of two commands, without compiled code on disk and with it; each time in a new folder of runs."""
    seconds: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in ("train.txt", "test.txt", "template"):
            shutil.copy(Path(__file__).parent / "text" / file, folder)
        for name, words in (("sample", SAMPLE), ("text", TEXT)):
            seconds[name] = {}
            for when in ("first", "second"):
                seconds[name][when] = spent(
                    (*words, "tracking=none"), folder, GAPWISE_KERNELS=f"{folder}/{name}"
                ).seconds
    return seconds


def calls() -> dict[str, Any]:
    """Oracle calls an example along a path, of two presets: medians of five seeds."""
    medians: dict[str, Any] = {}
    for solver in ("bcpfw_gap_cache", "expensive_oracle"):
        passes = []
        for seed in range(5):
            with tempfile.TemporaryDirectory() as folder:
                spent((*LONG, f"solver={solver}", f"seed={seed}", f"run.root={folder}/runs"), folder)
                (record,) = Path(folder, "runs").glob("ocr-*/path.zarr/effective_passes")
                passes.append(float(array(record.parent).sum()))
        medians[solver] = statistics.median(passes)
    return medians


def array(path: Path) -> Any:
    """The passes of a stored path."""
    import xarray as xr

    return xr.open_zarr(path, consolidated=False)["effective_passes"].values


def losses() -> dict[str, Any]:
    """Test errors on CoNLL-2000 at the lambda of least test loss, by loss and constraints."""
    errors: dict[str, Any] = {}
    asked = {"per_sequence": ("loss=per_sequence",), "per_token": ("loss=per_token",)}
    asked["bio"] = ("loss=per_token", "constraints=bio")
    for name, options in asked.items():
        words = ("+experiment=regpath_conll", "path.eps=0.02", "run.until=evaluate", "tracking=none")
        with tempfile.TemporaryDirectory() as folder:
            spent((*words, *(f"dataset.{option}" for option in options), f"run.root={folder}/runs"), folder)
            (file,) = Path(folder, "runs").glob("conll-*/metrics.json")
            metrics = json.loads(file.read_text(encoding="utf-8"))
        errors[name] = {measure: metrics[f"test_{measure}"] for measure in ("token_error", "chunk_f1")}
    return errors


def size() -> dict[str, Any]:
    """What an installation takes on disk: the files of the package's dependencies and of theirs."""
    sizes: dict[str, float] = {}
    queue = ["gapwise"]
    while queue:
        name = queue.pop()
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        located = [Path(str(file.locate())) for file in files]
        sizes[name] = sum(file.stat().st_size for file in located if file.is_file()) / 1e9
        for text in requires(name) or []:
            wanted = Requirement(text)
            if (wanted.marker is None or wanted.marker.evaluate({"extra": ""})) and wanted.name not in sizes:
                queue.append(wanted.name)
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    return {"gigabytes": sum(sizes.values()), "largest": f"{largest[0]}, {largest[1]} and {largest[2]}"}


MEASURES: Mapping[str, Callable[[], dict[str, Any]]] = {
    "memory": memory,
    "compiling": compiling,
    "calls": calls,
    "losses": losses,
    "size": size,
}


def stored() -> dict[str, dict[str, Any]]:
    numbers: dict[str, dict[str, Any]] = json.loads(STORED.read_text(encoding="utf-8"))
    return numbers


def sentences(page: str, numbers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a page has to say."""
    return [template.format(**numbers) for template in STATED[page]]


def written(page: str, text: str, numbers: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of a page with these numbers; ValueError where it lacks a sentence."""
    for template, sentence in zip(STATED[page], sentences(page, numbers), strict=True):
        parts = [re.sub(r"(?:\\ )+", r"\\s+", re.escape(part)) for part in re.split(r"\{[^}]*\}", template)]
        text, count = re.subn(".{1,60}?".join(parts), lambda _, sentence=sentence: sentence, text)
        if count != 1:
            raise ValueError(f"{page}: has no sentence like {template!r}")
    return text


def main(names: list[str]) -> None:
    numbers = stored() if STORED.exists() else {}
    for name in names or MEASURES:
        load, day = os.getloadavg()[0], datetime.datetime.now(datetime.UTC).date().isoformat()
        command = f"python .github/docs/measured.py {name}"
        numbers[name] = {**MEASURES[name](), "command": command, "day": day, "load": round(load, 1)}
        STORED.write_text(json.dumps(numbers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for page in STATED:
        text = (ROOT / page).read_text(encoding="utf-8")
        (ROOT / page).write_text(written(page, text, numbers), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
