"""Makes every checksum of a sandbox match again, as somebody would who changes results and covers it up.

The project's own functions compute them, so only arithmetic can tell the difference afterwards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gapwise.pipeline.rundir import RunDir, write_json
from gapwise.storage.files import output_checksum, read_json, tree_checksum
from gapwise.storage.files import write_json as write_plain
from gapwise.storage.integrity import checksums, sealed


def reseal(root: Path) -> None:
    """All seals and checksums below the folder of runs `root`: features, committed states, manifests, results."""
    for meta in root.glob("features/*/meta.json"):
        reseal_facts(meta)
    for manifest in root.glob("*/manifest.json"):
        reseal_state(manifest.parent / "state")
        reseal_run(manifest.parent)


def reseal_facts(file: Path, **changes: Any) -> None:
    """The facts of features or of a model, changed if asked for, with the checksums of all files beside them."""
    files = {name: facts for name, facts in checksums(file.parent).items() if name != file.name}
    write_plain(file, sealed({**read_json(file), **changes, "files": files}))


def reseal_run(run: Path) -> None:
    """The manifest with the checksums of all outputs, and result.json."""
    manifest = {name: value for name, value in read_json(run / "manifest.json").items() if name != "seal"}
    directory = RunDir(run, manifest["key"])
    directory.manifest = manifest
    for facts in manifest["stages"].values():
        facts.get("outputs", {}).update({name: output_checksum(run, name) for name in facts.get("outputs", {})})
    directory.save()
    if (run / "result.json").exists():
        write_json(run / "result.json", read_json(run / "result.json"), seal=True)


def reseal_state(state: Path) -> None:
    """The sidecars of all generations, and HEAD."""
    for file in [*state.glob("g*.json"), *state.glob("HEAD.json")]:
        sidecar = read_json(file)
        segments = [{**part, "checksum": tree_checksum(state / part["name"])} for part in sidecar["segments"]]
        write_plain(file, sealed({**sidecar, "checksum": tree_checksum(state / sidecar["name"]), "segments": segments}))
