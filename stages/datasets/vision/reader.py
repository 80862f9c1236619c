"""Readers of pictures: new pictures from files, their blocks from the vocabularies of a feature store, masks as predictions.

Masks have the values or colours of ``classes.yaml``, so that they can be training data. Without one, pixel values are
labels. Values have a palette. For each picture there is an overlay of the labels' colours on it, too.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import NEW, DataError, MapBlocks, NewInput, Predicted, Raw, Reader, Shown, Sink
from gapwise.stages.datasets.common.files import csv_text
from gapwise.stages.datasets.vision.features import Words
from gapwise.stages.datasets.vision.files import ENDINGS, SMALLEST, by_name, read_picture
from gapwise.stages.datasets.vision.options import FeatureOptions
from gapwise.stages.datasets.vision.pictures import check_finite, described, write_specimen
from gapwise.stages.datasets.vision.superpixels import tally

OPACITY = 0.5
COLOURS = (
    (31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40), (148, 103, 189), (140, 86, 75), (227, 119, 194),
    (127, 127, 127), (188, 189, 34), (23, 190, 207), (174, 199, 232), (255, 187, 120), (152, 223, 138), (255, 152, 150),
    (197, 176, 213), (196, 156, 148), (247, 182, 210), (199, 199, 199), (219, 219, 141), (158, 218, 229),
)  # fmt: skip
"""Of labels, from 0; they repeat."""
TWO = ((40, 40, 40), (255, 140, 0))
"""Of background and foreground."""


@dataclass(frozen=True)
class PictureEncoder:
    """Blocks of new pictures, from the vocabularies and the facts under ``pictures`` of a feature store."""

    words: Words
    superpixels: int
    pairwise: bool
    own: bool = False

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """Pictures, each uint8 (H, W, 3), RGB, or the contents of a picture's file, of about the training pictures' size.

        Besides its features a block has `superpixel_map` (H * W,) and `hw` (1, 2), which turn labels of superpixels into
        those of pixels.
        """
        pictures = [_checked(number, picture) for number, picture in enumerate(raw)]
        if not pictures:
            raise DataError("input: holds no pictures")
        work = partial(_new_block, encoder=self)
        for number, arrays in enumerate(map_blocks(work, pictures)):
            check_finite(arrays, f"input: picture {number}")
            sink.append(NEW, **arrays)


def _checked(number: int, picture: object) -> np.ndarray:
    picture = read_picture(picture, f"input: picture {number}") if isinstance(picture, bytes) else np.asarray(picture)
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or min(picture.shape[:2]) < SMALLEST:
        raise DataError(
            f"input: picture {number} is {picture.dtype}{picture.shape}; expected uint8 (H, W, 3), RGB, at least 8 x 8"
        )
    return picture


def _new_block(rgb: np.ndarray, encoder: PictureEncoder) -> dict[str, np.ndarray]:
    """Features and edges, areas, labels 0 for the unknown truth, and the superpixel map."""
    regions, arrays = described(rgb, encoder.superpixels, encoder.words, encoder.pairwise, encoder.own)
    counted = tally(regions, np.zeros(regions.shape, np.uint8))
    arrays |= {"labels": counted["labels"], "area": counted["area"], "superpixel_map": regions.ravel()}
    return arrays | {"hw": np.array([regions.shape], dtype=np.int32)}


def picture_encoder(meta: Facts, shared: Mapping[str, np.ndarray]) -> PictureEncoder:
    """The encoder of a feature store made by `featurize_pictures`."""
    facts = meta["pictures"]
    words = Words(np.asarray(shared["colour_words"]), np.asarray(shared["sift_words"]))
    return PictureEncoder(words, int(facts["superpixels"]), bool(facts["pairwise"]), bool(facts.get("own")))


@dataclass(frozen=True)
class Pictures:
    """What masks are shown on, and how."""

    names: tuple[str, ...]
    """Of the files, without suffix"""
    rgb: tuple[np.ndarray | None, ...]
    """uint8 (H, W, 3), as they were read; None where there is no photograph"""
    blocks: Sequence[int]
    """Whose predictions are shown on them"""
    values: Sequence[int] = ()
    """Of the classes in masks; empty: 0, 1, ..."""
    colours: Sequence[Sequence[int]] = ()
    """Of the classes in masks, whose pixels then are colours; empty: they are values"""

    @classmethod
    def of(cls, names: Sequence[str], rgb: Sequence[np.ndarray | None], blocks: Sequence[int], meta: Facts) -> Self:
        """With the marks of the training masks (`masks.ClassList.facts`)."""
        marks = meta.get("class_values", ()), meta.get("class_colours", ())
        return cls(tuple(names), tuple(rgb), blocks, *marks)

    def files(self, predicted: Predicted) -> Iterator[tuple[str, bytes]]:
        """A mask and an overlay a picture, and ``labels.csv``: what the values and colours of masks mean."""
        names = predicted.names or ["background", "foreground"]
        usual = TWO if len(names) == 2 else [COLOURS[k % len(COLOURS)] for k in range(len(names))]
        values, colours = np.arange(len(names), dtype=np.uint8), np.array(self.colours or usual, np.uint8)
        values[: len(self.values)] = self.values
        rows = [(value, name, *rgb) for value, name, rgb in zip(values.tolist(), names, colours.tolist(), strict=True)]
        yield "labels.csv", csv_text(("value", "label", "red", "green", "blue"), rows).encode()
        palette = np.zeros((int(values.max()) + 1, 3), np.uint8)
        palette[values] = colours
        for i, name, rgb in zip(self.blocks, self.names, self.rgb, strict=True):
            mask = predicted.mask(i)
            if rgb is not None and mask.shape != rgb.shape[:2]:
                mask = _enlarged(mask, rgb.shape[0], rgb.shape[1])
            yield f"{name}.png", _png(colours[mask]) if self.colours else _png(values[mask], palette)
            if rgb is not None:
                yield (
                    f"{name}-overlay.png",
                    _png(np.rint((1.0 - OPACITY) * rgb + OPACITY * colours[mask]).astype(np.uint8)),
                )


class MaskReader(Reader):
    """A reader of superpixels: masks show predictions."""

    where: ClassVar[tuple[str, ...]] = ("root",)

    def facts(self) -> Record:
        """Facts for the structure, by the reader's options."""
        raise NotImplementedError

    def specimen(self, sink: Sink) -> Record:
        return write_specimen(sink) | self.facts()

    @classmethod
    def stored_input(cls, arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput | None:
        """The photographs of a test split that are stored for figures; None if no photograph is stored."""
        if "hw" not in arrays or not len(arrays["hw"]):
            return None
        ptr, sizes = np.asarray(arrays["rgb_ptr"]), np.asarray(arrays["hw"]).tolist()
        shown = [k for k in range(len(ptr) - 1) if ptr[k + 1] > ptr[k]]
        rgb = [
            np.asarray(arrays["rgb"][ptr[k] : ptr[k + 1]]).reshape(*hw, 3) for k, hw in zip(shown, sizes, strict=True)
        ]
        names = meta.get("images", {}).get("test")
        stems = [str(names[k]) if names else f"{k:03d}" for k in shown]
        return NewInput(rgb, Pictures.of(stems, rgb, shown, meta), several=True, example=_png(rgb[0]))

    @classmethod
    def show(cls, new: NewInput, predicted: Predicted) -> Shown:
        """Files of masks, as `Pictures.files` makes them."""
        return Shown(files=new.source.files(predicted))


@dataclass(frozen=True)
class PictureReader(MaskReader):
    """A reader whose features are made from photographs."""

    features: FeatureOptions
    needs: ClassVar[tuple[str, ...]] = ("cv2", "skimage", "sklearn", "PIL")
    longer_side: ClassVar[int | None] = None
    """Pixels that the longer side of new pictures is reduced to."""

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> PictureEncoder:
        return picture_encoder(meta, shared)

    @classmethod
    def read_new(cls, inputs: Sequence[str], meta: Facts) -> NewInput:
        """Pictures from files, and from all pictures of folders, sorted by name, read as in training.

        The longer side of what is encoded has `longer_side` pixels; masks have the size of the upright picture. DataError if
        two would have the same mask.
        """
        files = [file for name in inputs for file in _files(Path(name))]
        stems = [file.stem for file in files]
        for k, stem in enumerate(stems):
            if stem in stems[:k]:
                raise DataError(
                    f"{files[k]}: {files[stems.index(stem)]} has the same name; predict them one after the other"
                )
        rgb = [read_picture(file) for file in files]
        pictures = Pictures.of(stems, rgb, range(len(rgb)), meta)
        return NewInput([_scaled(picture, cls.longer_side) for picture in rgb], pictures, several=True)


def _files(path: Path) -> list[Path]:
    """A file, or all pictures of a folder."""
    if not path.is_dir():
        if not path.is_file():
            raise DataError(f"{path}: no such file or folder; expected pictures")
        return [path]
    files = [*by_name(path).values()]
    if not files:
        raise DataError(f"{path}: holds no pictures; expected files that end in {', '.join(ENDINGS)}")
    return files


def _scaled(rgb: np.ndarray, longer_side: int | None) -> np.ndarray:
    from PIL import Image

    if longer_side is None or max(rgb.shape[:2]) == longer_side:
        return rgb
    scale = longer_side / max(rgb.shape[:2])
    size = (max(1, round(rgb.shape[1] * scale)), max(1, round(rgb.shape[0] * scale)))
    return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.LANCZOS))


def _enlarged(mask: np.ndarray, height: int, width: int) -> np.ndarray:
    """The mask at another size; every pixel gets the label of the nearest pixel of the mask."""
    rows = (np.arange(height) * mask.shape[0]) // height
    columns = (np.arange(width) * mask.shape[1]) // width
    return mask[rows[:, None], columns]


def _png(pixels: np.ndarray, palette: np.ndarray | None = None) -> bytes:
    from PIL import Image

    image, stream = Image.fromarray(pixels), io.BytesIO()
    if palette is not None:
        image.putpalette(palette.tobytes())
    image.save(stream, format="PNG")
    return stream.getvalue()
