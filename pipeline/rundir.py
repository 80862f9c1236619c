"""The run directory: its lock, its manifest, its invocations.

All files written here are small JSON files, replaced atomically, so that a reader never sees half a file.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import math
import os
import platform
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gapwise.pipeline.config.settings import Settings
from gapwise.pipeline.source_code import commit
from gapwise.pipeline.stage_graph import after, stages
from gapwise.records import Record, flat
from gapwise.storage import files
from gapwise.storage.backend import Location
from gapwise.storage.files import DamagedError, make_directory, output_checksum, remove, rename, written_to
from gapwise.storage.files import LockedError as LockedError
from gapwise.storage.files import locked as locked
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.integrity import below, sealed, unsealed

BLANK = {"lock", "manifest.json", "invocations"}
VERSIONS = ("gapwise", "numpy", "scipy", "numba", "zarr", "dask", "scikit-image")
log = logging.getLogger("gapwise")


def write_json(path: Location, value: Mapping[str, object], seal: bool = False) -> None:
    """Write `value` durably and atomically, with a checksum if `seal`; infinities and NaN, which JSON lacks, as text."""
    value = json.loads(json.dumps(_finite(value), allow_nan=False, default=str))
    text = json.dumps(sealed(value) if seal else value, indent=1, ensure_ascii=False)
    files.write(path, (text + "\n").encode(errors="backslashreplace"))  # names of files may be no UTF-8


def check_writable(root: Location) -> None:
    """Make the folder of the runs if it is not there; OSError says what to do if nothing can be written to it."""
    try:
        make_directory(root)
        if not files.writable(root):
            raise PermissionError(errno.EACCES, "it is mounted read-only, or you may not write to it", str(root))
    except OSError as error:
        raise OSError(
            f"run.root: {root} cannot hold runs: {error.strerror or error}. Give a folder that can be written, as "
            "run.root=FOLDER or in $GAPWISE_RUNS; a complete run can be read where it is"
        ) from error


def read_json(path: Location, seal: bool = False) -> Any:
    """The content of `path`, or None if there is no such file.

    DamagedError names a file that cannot be read, one that does not match its seal, and, with `seal`, one without a seal.
    """
    if not path.is_file():
        return None
    record = files.read_json(path)
    return unsealed(record, path) if seal or (isinstance(record, dict) and "seal" in record) else record


def shell_line() -> str:
    """The command that started this process, as it is typed in a shell."""
    python, *words = sys.orig_argv
    if words and Path(words[0]).name == "gapwise" and os.path.isabs(words[0]):  # the installed script
        return shlex.join(["gapwise", *words[1:]])
    return shlex.join([python, *words])


class RunDir:
    """Paths and records of one run.

    Parameters
    ----------
    path : Path or UrlPath
        The directory; `prepare` makes it.
    key : str
        Fingerprint of the science; must equal the manifest's, if there is one.
    """

    def __init__(self, path: Location, key: str) -> None:
        self.path = path
        self.key = key
        self.manifest: Record = {}

    @classmethod
    def opened(cls, path: Location) -> RunDir:
        """A run that exists, with its manifest; FileNotFoundError if it has none, DamagedError if it is damaged."""
        manifest = read_json(path / "manifest.json", seal=True)
        if manifest is None:
            raise FileNotFoundError(
                f"{path / 'manifest.json'}: missing, so nothing is known of this run; give its command again"
            )
        directory = cls(path, str(manifest["key"]))
        directory.manifest = manifest
        return directory

    def prepare(self, settings: Settings, source: Mapping[str, object], command: str = "") -> None:
        """Make the directory and its manifest, or check the manifest that exists: ValueError lists the keys that differ.

        The manifest names the command that goes on with this run: `command`, or the one that started this process.
        A damaged manifest is renamed and a new one begun; its stages then run again, from what they have committed.
        """
        make_directory(self.path)
        plain = json.loads(json.dumps(settings.science, default=str))
        science = {name: _finite(value) for name, value in plain.items()}
        try:
            manifest = read_json(self.path / "manifest.json", seal=True)
        except DamagedError as error:
            log.warning(
                "%s; it is kept as damaged-manifest.json, and its stages run again from what they committed", error
            )
            rename(self.path / "manifest.json", "damaged-manifest.json")
            manifest = None
        if manifest is None:
            self.manifest = {
                "format_version": FORMAT_VERSION,
                "key": self.key,
                "name": self.path.name,
                "experiment": settings.experiment,
                "solver": settings.solver.name,
                **({} if settings.label is None else {"label": settings.label}),
                "science": science,
                "source": dict(source),
                "where": {k: v for k, v in settings.dataset.items() if k not in settings.science["dataset"]},
                "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "command": command or shell_line(),
                "commit": commit(),
                "host": socket.gethostname(),
                "python": platform.python_version(),
                "versions": _versions(),
                "stages": {},
            }
            self.save()
            return
        if manifest.get("format_version") != FORMAT_VERSION or manifest.get("key") != self.key:
            mine = {"format_version": FORMAT_VERSION, "key": self.key, **flat(science)}
            theirs = {name: manifest.get(name) for name in ("format_version", "key")}
            theirs |= flat(manifest.get("science", {}))
            differ = [
                f"{name} ({theirs.get(name)!r} there, {mine.get(name)!r} here)"
                for name in sorted(mine.keys() | theirs.keys())
                if mine.get(name) != theirs.get(name)
            ]
            raise ValueError(
                f"{self.path}/manifest.json belongs to another run: {', '.join(differ)}. "
                "Move the directory away to start anew."
            )
        self.manifest = manifest
        if self.manifest.pop("ended", None) is not None:
            self.save()

    def ended(self, state: str, why: str) -> None:
        """Note how an invocation ended that has not completed the run: partial, interrupted or failed, and why."""
        self.manifest["ended"] = {"state": state, "why": why}
        with contextlib.suppress(OSError):  # a full disk must not hide the error of the run
            self.save()

    def save(self) -> None:
        write_json(self.path / "manifest.json", self.manifest, seal=True)

    def record(self, stage: str, **facts: object) -> None:
        """Note that `stage` is done, with its facts and the checksums of its outputs."""
        self.forget(stage)
        sums = {name: output_checksum(self.path, name) for name in stages()[stage].outputs}
        outputs = {name: checksum for name, checksum in sums.items() if checksum is not None}
        self.manifest["stages"][stage] = {**facts, **({"outputs": outputs} if outputs else {})}
        self.save()

    def damaged(self) -> tuple[str, str] | None:
        """(stage, output) of the first finished stage of which an output is gone or has changed since, or a figure gone."""
        for stage, facts in self.manifest["stages"].items():
            for name in facts.get("figures", ()):
                if not below(self.path / "figures", name).is_file():
                    return str(stage), f"figures/{name}"
            for name, checksum in facts.get("outputs", {}).items():
                if output_checksum(self.path, name) != checksum:
                    return str(stage), str(name)
        return None

    @property
    def is_blank(self) -> bool:
        """Whether no stage has left anything: the directory has no more than a manifest, invocations and the lock."""
        return not self.manifest["stages"] and {path.name for path in self.path.iterdir()} <= BLANK

    def discard(self) -> None:
        """Remove the directory, the lock, which this process holds, last."""
        for child in [*self.path.iterdir()]:
            if child.name != "lock":
                remove(child)
        remove(self.path / "lock")
        self.path.rmdir()

    def forget(self, stage: str) -> None:
        """Mark `stage` and all stages that need it as not done."""
        again = {stage, *after(stage)}
        self.manifest["stages"] = {name: facts for name, facts in self.manifest["stages"].items() if name not in again}
        self.save()

    @contextlib.contextmanager
    def invocation(self, hydra: Mapping[str, str]) -> Iterator[Path]:
        """A new directory invocations/<time>/ with the files `hydra` (name to text) in its .hydra/.

        For a run on an object store it is on this machine until the invocation ends.
        """
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S")
        for number in range(1000):
            path = self.path / "invocations" / (f"{stamp}-{number}" if number else stamp)
            with contextlib.suppress(FileExistsError):
                path.mkdir(parents=True)
                break
        with written_to(path) as folder:
            (folder / ".hydra").mkdir(parents=True)
            for name, text in hydra.items():
                (folder / ".hydra" / name).write_text(text, encoding="utf-8", errors="backslashreplace")
            yield folder


def _finite(value: Any) -> object:
    """`value` with infinities and NaN as text, since JSON lacks them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return _finite(value.tolist()) if type(value).__module__ == "numpy" else value


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in VERSIONS:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
