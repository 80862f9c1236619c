"""Readers of pictures: blocks of new pictures from the vocabularies of a feature store, and predictions as masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets import NEW, DataError, MapBlocks, NewInput, Predicted, Raw, Reader, Shown, Sink
from gapwise.stages.datasets.vision import masks
from gapwise.stages.datasets.vision.features import Words
from gapwise.stages.datasets.vision.picture_files import decoded
from gapwise.stages.datasets.vision.pictures import check_finite, described
from gapwise.stages.datasets.vision.superpixels import tally


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
    picture = decoded(picture, f"input: picture {number}") if isinstance(picture, bytes) else np.asarray(picture)
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or min(picture.shape[:2]) < 8:
        raise DataError(
            f"input: picture {number} is {picture.dtype}{picture.shape}; expected uint8 (H, W, 3), RGB, at least 8 x 8"
        )
    return picture


def _new_block(rgb: np.ndarray, encoder: PictureEncoder) -> dict[str, np.ndarray]:
    regions, arrays = described(rgb, encoder.superpixels, encoder.words, encoder.pairwise, encoder.own)
    return arrays | unlabelled(regions)


def unlabelled(regions: np.ndarray) -> dict[str, np.ndarray]:
    """What a new block has besides features and edges: areas, labels 0 for the unknown truth, the superpixel map."""
    counted = tally(regions, np.zeros(regions.shape, np.uint8))
    return {
        "labels": counted["labels"],
        "area": counted["area"],
        "superpixel_map": regions.astype(np.uint16).ravel(),
        "hw": np.array([regions.shape], dtype=np.int32),
    }


def picture_encoder(meta: Facts, shared: Mapping[str, np.ndarray]) -> PictureEncoder:
    """The encoder of a feature store made by `featurize_pictures`."""
    facts = meta["pictures"]
    words = Words(np.asarray(shared["colour_words"]), np.asarray(shared["sift_words"]))
    return PictureEncoder(words, int(facts["superpixels"]), bool(facts["pairwise"]), bool(facts.get("own", False)))


class MaskReader(Reader):
    """A reader of superpixels: masks show predictions."""

    where: ClassVar[tuple[str, ...]] = ("root",)

    @classmethod
    def stored_input(cls, arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput | None:
        """The photographs of a test split that are stored for figures; None if no photograph is stored."""
        return masks.stored_input(arrays, meta)

    @classmethod
    def show(cls, new: NewInput, predicted: Predicted) -> Shown:
        """A mask and an overlay a picture, and ``labels.csv``: what the values and colours of masks mean."""
        return masks.show(new, predicted)


class PictureReader(MaskReader):
    """A reader whose features are made from photographs."""

    needs: ClassVar[tuple[str, ...]] = ("cv2", "skimage", "sklearn", "PIL")
    longer_side: ClassVar[int | None] = None
    """Pixels that the longer side of new pictures is reduced to."""

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> PictureEncoder:
        return picture_encoder(meta, shared)

    @classmethod
    def read_new(cls, inputs: Sequence[str], meta: Facts) -> NewInput:
        """Pictures from files, and from all pictures of folders."""
        return masks.read_new(inputs, meta, cls.longer_side)
