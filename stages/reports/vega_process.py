"""A process that has Vega draw, or bundles its JavaScript: jobs as JSON on stdin, base64 by name as JSON on stdout.

Run by its path, never imported. Vega's engine takes 100 MB and reserves tens of GB of addresses; where the system
refuses them it aborts its process.
"""

import base64
import json
import re
import sys

import vl_convert

SCALE = 3
"""Pixels of a PNG file for each of the specification."""

ENTRIES = re.compile(rb"(?:\n +/[a-z]+\d+ \d+ 0 R){2,}")
"""Entries of a dictionary of resources in a PDF file, which come in a random order."""


def drawn(spec: dict, form: str) -> bytes:
    """A Vega-Lite specification as a file."""
    if form == "png":
        return vl_convert.vegalite_to_png(spec, scale=SCALE)
    if form == "svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    pdf = vl_convert.vegalite_to_pdf(spec)
    return ENTRIES.sub(lambda match: b"\n".join([b"", *sorted(match[0].split(b"\n")[1:])]), pdf)


if __name__ == "__main__":
    jobs = json.load(sys.stdin)
    files = {name: drawn(spec, name.rpartition(".")[2]) for name, spec in jobs["files"].items()}
    if jobs["bundle"]:
        files["bundle"] = vl_convert.javascript_bundle().encode()  # type: ignore[call-arg]
    json.dump({name: base64.b64encode(content).decode() for name, content in files.items()}, sys.stdout)
