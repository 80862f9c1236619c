"""HorseSeg as released (Kolesnikov et al., ECCV 2014), with the features of O16's experiments.

Below `dataset.root`: `data/horse-features.bin` and `data/horse-features-test.bin` (HDF5), superpixel maps
`data/horse-superpixels/NNNNNN.png` (and `-test`), masks `HDSeg/annotations/HorseSeg/...`, photographs
`HDSeg/images/HorseSeg/...`. `dataset.size` small | medium | large trains on the first 147 / 6,121 / 25,438 images; 241
test. Images are read one by one in the workers and go straight to the sink, so `large` is never in memory as a whole.

The loss weighs superpixels by their pixels, so the maps are required. Masks serve the pixel metrics and the figures;
without the HDSeg archive, set `dataset.pictures=false`: all pixels of a superpixel then have its label.

A feature row has 1,969 columns: 1 constant, 3 x 16 position, 3 x 128 colour and 3 x 512 SIFT-word histogram entries, each
kind for the superpixel, its neighbours and its second-order neighbours, with L2 norm 1 per histogram.

`dataset.precision` says how unary rows are stored and read by the solver: f32; or u8, a quarter of the size, which rounds
values in [0, 1] to multiples of 1/255, an error of at most 1/510 = 2.0e-3; the shared array `unary_scale`, f64 (1,),
holds the 1/255. There is no f16: numba has no float16 on CPUs, so rows would have to be expanded in memory. Pairwise rows
are computed from the rows as read, before any rounding, and stay f32.

`dataset.features=s15` keeps the 649 columns of S15's experiment (`vision.own_columns`), with Potts terms of a fixed weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Report, Sink
from gapwise.stages.datasets.common.options import Values, Whole, one_of
from gapwise.stages.datasets.vision.features import pairwise_features
from gapwise.stages.datasets.vision.horseseg_files import (
    COLUMNS,
    WIDTHS,
    fields_of,
    image_of,
    mask_name,
    refuse_map,
    text_of,
)
from gapwise.stages.datasets.vision.own_columns import ModelOptions, own_block, own_names, own_width
from gapwise.stages.datasets.vision.picture_files import pixels_of
from gapwise.stages.datasets.vision.pictures import (
    NO_PICTURE,
    SHOWN,
    check_finite,
    unary_blocks,
    write_specimen,
)
from gapwise.stages.datasets.vision.reader import MaskReader
from gapwise.stages.datasets.vision.superpixels import tally

SIZES = {"small": 147, "medium": 6121, "large": 25438}
TEST_IMAGES = 241
FILES = {"train": "data/horse-features.bin", "test": "data/horse-features-test.bin"}
MAPS = {"train": "data/horse-superpixels", "test": "data/horse-superpixels-test"}
MASKS, IMAGES = "HDSeg/annotations/HorseSeg", "HDSeg/images/HorseSeg"
LEVELS = 255
"""The largest code of u8."""


@dataclass(frozen=True)
class HDSeg(MaskReader):
    """The released images."""

    root: Annotated[Path, Values("the folder that holds data/ and HDSeg/ of the HorseSeg release")]
    model: ModelOptions
    size: Annotated[str, one_of(*SIZES)] = "small"
    precision: Annotated[str, one_of("f32", "u8")] = "f32"
    pictures: bool = True
    n_train: Whole | None = None
    """Overrides `size`."""
    n_test: Whole = TEST_IMAGES
    structure = "segmentation"
    needs = ("h5py", "PIL")

    def __post_init__(self) -> None:
        for name in FILES.values():
            if not (self.root / name).is_file():
                raise DataError(
                    f"dataset.root={self.root}: there is no {name} in it, the layout of the HorseSeg release"
                )

    @property
    def counts(self) -> dict[str, int]:
        """Number of images of each split."""
        return {"train": SIZES[self.size] if self.n_train is None else self.n_train, "test": self.n_test}

    def files(self) -> dict[str, Path]:
        """The feature files, the maps of the images asked for and, with pictures, all masks and test photographs."""
        maps = [f"{MAPS[split]}/{k:06d}.png" for split, count in self.counts.items() for k in range(count)]
        paths = {name: self.root / name for name in (*FILES.values(), *maps)}
        if self.pictures:
            shown = [*(self.root / MASKS).rglob("*.png"), *(self.root / IMAGES / "test").glob("*")]
            paths |= {path.relative_to(self.root).as_posix(): path for path in shown}
        return {name: path for name, path in paths.items() if path.is_file()}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Copy all blocks image by image; DataError names the file and field at fault."""
        counts = self.counts
        if self.precision == "u8":
            sink.put("", "unary_scale", np.array([1.0 / LEVELS]))
        tasks = [(self, split, k) for split, count in counts.items() for k in range(count)]
        for done, ((_, split, _k), arrays) in enumerate(zip(tasks, map_blocks(_read, tasks), strict=True), 1):
            sink.append(split, **(arrays if split == "train" else NO_PICTURE | arrays))
            report(done, len(tasks), "reading HorseSeg features")
        return {
            "d_unary": own_width(WIDTHS) if self.model.own else COLUMNS,
            "d_pairwise": 1 if self.model.own else 100,
            "n_train": counts["train"],
            "n_test": counts["test"],
            "histogram_widths": list(WIDTHS),
            "names": own_names(WIDTHS)
            if self.model.own
            else {"unary": unary_blocks(WIDTHS), "pairwise": "1 constant, exp(-2^-5..2^5 chi^2) x 9 histograms"},
            "precision": self.precision,
            **({"own": True} if self.model.own else {}),
            **self.model.facts(),
        }

    def specimen(self, sink: Sink) -> Record:
        return write_specimen(sink, codes=self.precision == "u8") | self.model.facts()


def _read(task: tuple[HDSeg, str, int]) -> dict[str, np.ndarray]:
    """Arrays of one block."""
    import h5py

    reader, split, number = task
    path = reader.root / FILES[split]
    try:
        with h5py.File(path, "r") as file:
            block = fields_of(file, f"{number:06d}", path)
            if reader.pictures:
                annotation = text_of(file, f"annotation_file_{number:06d}", path)
                image = text_of(file, f"image_name_{number:06d}", path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read as an HDF5 file ({error})") from error
    where = f"{path}, image {number:06d}"
    block |= _features(block["unary"], block["edges"], reader.model.own)
    check_finite(block, where)

    map_path = reader.root / MAPS[split] / f"{number:06d}.png"
    regions = np.asarray(image_of(map_path, f"superpixel map of image {number:06d}").image).astype(np.int64)
    size = len(block["labels"])
    refuse_map(regions, size, str(map_path))
    if reader.pictures:
        mask_path = reader.root / MASKS / mask_name(annotation, split, where)
        mask = np.asarray(image_of(mask_path, f"mask of image {number:06d}").image)
        if mask.shape != regions.shape:
            raise DataError(f"{mask_path}: size {mask.shape}, but {map_path.name} has {regions.shape}")
        counted = tally(regions, mask)
        if split == "test" and number < SHOWN:
            photograph = reader.root / IMAGES / "test" / f"{Path(image).stem}.JPEG"
            block |= {
                "superpixel_map": regions.astype(np.uint16).ravel(),
                "mask": (mask != 0).astype(np.uint8).ravel(),
                "rgb": pixels_of(image_of(photograph, f"photograph of image {number:06d}")).reshape(-1, 3),
                "hw": np.array([regions.shape], dtype=np.int32),
            }
    else:
        counted = tally(regions, block["labels"][regions])
    block |= {"area": counted["area"], "foreground": counted["foreground"]}
    return block | {"unary": _stored(block["unary"], reader.precision, where)}


def _features(unary: np.ndarray, edges: np.ndarray, own: bool) -> dict[str, np.ndarray]:
    """Unary and pairwise features from the released rows."""
    if own:
        return own_block(unary, edges, WIDTHS)
    return {"unary": unary, "pairwise": pairwise_features(unary, edges, WIDTHS)}


def _stored(unary: np.ndarray, precision: str, where: str) -> np.ndarray:
    """Unary rows as they are kept."""
    if precision == "f32":
        return unary
    codes = unary * np.float64(LEVELS)
    np.rint(codes, out=codes)
    if codes.min() < 0 or codes.max() > LEVELS:  # compare codes, not values: a norm of 1 may come out as 1 + 1e-7
        raise DataError(f"{where}: features outside [0, 1] cannot be stored as {precision}; use dataset.precision=f32")
    return codes.astype(np.uint8)
