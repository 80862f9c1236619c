"""Ways in which a file stops being what was written."""

from __future__ import annotations

from pathlib import Path


def flip(file: Path) -> None:
    """One bit in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut(file: Path) -> None:
    """The second half is gone."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def garbage(file: Path) -> None:
    file.write_bytes(b"\0" * file.stat().st_size)


HARMS = {"flipped": flip, "cut": cut, "gone": Path.unlink, "garbage": garbage}


def largest(folder: Path) -> Path:
    """The largest file below a folder: a chunk."""
    return max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


def digit(file: Path) -> None:
    """The last digit of a JSON file is another one: still JSON, and plausible."""
    text = file.read_text()
    offset = max(k for k, character in enumerate(text) if character in "123456789" and text[k - 1] in "0123456789.")
    file.write_text(text[:offset] + str(int(text[offset]) % 9 + 1) + text[offset + 1 :])
