"""Files of pictures, and archives of them, decoded in one way for training and for new input.

Any format that Pillow reads will do, if the file holds a single picture of 8 bits a channel without transparent pixels.
Pictures are turned upright as their EXIF data say, which is how programs show them; grey ones get three equal channels.
"""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gapwise.stages.datasets import UNREADABLE, DataError

if TYPE_CHECKING:
    from PIL.Image import Image

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
SMALLEST = 8
"""Pixels of a side."""
ORIENTATION = 0x0112
"""The EXIF tag for the orientation of a picture."""


def by_name(folder: Path, endings: tuple[str, ...] = ENDINGS) -> dict[str, Path]:
    """Files by name without ending, sorted; hidden files and other endings are passed over."""
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder")
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.suffix.lower() not in endings:
            continue
        if path.stem in files:
            raise DataError(f"{path}: {files[path.stem].name} has the same name; expected one file for {path.stem}")
        files[path.stem] = path
    return files


class Opened(NamedTuple):
    """A decoded image, upright."""

    image: Image
    where: str
    """The file, for messages"""
    orientation: int
    """That of its EXIF data, 1 to 8; 1 if they have none"""
    deep: bool
    """Whether a channel has more than 8 bits"""

    def refuse_transparent(self, advice: str) -> None:
        """Raise DataError, with the advice, if a pixel is transparent."""
        if "A" in self.image.getbands() or "transparency" in self.image.info:
            alpha = np.asarray(self.image.convert("RGBA"))[..., 3]
            if alpha.min() < 255:
                row, column = (int(k) for k in np.argwhere(alpha < 255)[0])
                where = f"the first at row {row}, column {column}"
                raise DataError(f"{self.where}: has transparent pixels, {where}; {advice}")

    def pixels(self) -> np.ndarray:
        """Pixels uint8 (H, W, 3); DataError says why the image is no picture that can be used."""
        if self.deep:
            raise DataError(
                f"{self.where}: has more than 8 bits a channel (mode {self.image.mode}); save the picture with 8"
            )
        self.refuse_transparent("save the picture without an alpha channel")
        rgb = np.asarray(self.image.convert("RGB"))
        if min(rgb.shape[:2]) < SMALLEST:
            raise DataError(f"{self.where}: is {size_of(rgb)}; expected at least {SMALLEST} x {SMALLEST} pixels")
        return rgb


def opened(source: Path | bytes, where: str = "") -> Opened:
    """The image of a file, or of a file's contents; DataError begins with the file, or with `where`."""
    from PIL import Image, ImageOps

    where = where or str(source)
    try:
        # contents, because Pillow garbles turned TIFF files that it maps into memory
        contents = source if isinstance(source, bytes) else source.read_bytes()
        with Image.open(io.BytesIO(contents)) as image:
            frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)  # cameras append a preview
            coding = str(image.tile)
            orientation = image.getexif().get(ORIENTATION, 1)  # before loading, which turns TIFF files and forgets it
            image.load()
            ImageOps.exif_transpose(image, in_place=True)
    except (*UNREADABLE, SyntaxError, TypeError, LookupError, struct.error, Image.DecompressionBombError) as error:
        raise DataError(f"{where}: cannot be decoded as an image ({' '.join(str(error).split())})") from error
    if frames > 1:
        raise DataError(f"{where}: holds {frames} pictures, as pages or frames; save the right one alone")
    deep = image.mode.startswith(("I", "F")) or (";16" in coding and "BGR;16" not in coding)
    return Opened(image, where, orientation if orientation in range(1, 9) else 1, deep)


def read_picture(source: Path | bytes, where: str = "") -> np.ndarray:
    """Pixels uint8 (H, W, 3) of a picture, by its file or the contents of one; DataError begins as of `opened`."""
    return opened(source, where).pixels()


def photographs(archive: Path, wanted: Iterable[str] = (), folder: str = "") -> dict[str, bytes]:
    """Contents of the JPEGs of a .tar archive by name, of one `folder` in it or of all.

    DataError if the archive cannot be read, has none, or one of the `wanted` is missing.
    """
    try:
        with tarfile.open(archive) as tar:
            members = {Path(m.name): m for m in tar.getmembers() if m.isfile() and m.name.endswith(".jpg")}
            chosen = {path.stem: m for path, m in members.items() if folder in ("", path.parent.name)}
            contents = {name: tar.extractfile(m).read() for name, m in chosen.items()}  # type: ignore[union-attr]
    except UNREADABLE as error:
        raise DataError(f"{archive}: cannot be read as a tar archive: {error}") from error
    for name in wanted:
        if name not in contents:
            raise DataError(f"{archive}: has no {folder}{'/' if folder else ''}{name}.jpg")
    return contents


def size_of(pixels: np.ndarray) -> str:
    """Width and height, as messages show them."""
    return f"{pixels.shape[1]} x {pixels.shape[0]} pixels"
