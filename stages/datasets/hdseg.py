"""HorseSeg as released (Kolesnikov et al., ECCV 2014), with the features of O16's experiments.

Below `dataset.root`: `data/horse-features.bin` and `data/horse-features-test.bin` (HDF5), superpixel maps
`data/horse-superpixels/NNNNNN.png` (and `-test`), masks `HDSeg/annotations/HorseSeg/...`, photographs
`HDSeg/images/HorseSeg/...`. `dataset.size` small | medium | large trains on the first 147 / 6,121 / 25,438 images; 241
test. Images are read one by one in the workers and go straight to the sink, so `large` is never in memory as a whole.

The loss weighs superpixels by their pixels, so the maps are required. Masks serve the pixel metrics and the figures;
without the HDSeg archive, set `dataset.pictures=false`: all pixels of a superpixel then have its label.

A feature row has 1,969 columns: 1 constant, 3 x 16 position, 3 x 128 colour and 3 x 512 SIFT-word histogram entries, each
kind for the superpixel, its neighbours and its second-order neighbours, with L2 norm 1 per histogram.

`dataset.features=s15` keeps the 649 columns of S15's experiment (`vision.features.own_columns`), with Potts terms
of a fixed weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Report, Sink
from gapwise.stages.datasets.common.files import one_of_files
from gapwise.stages.datasets.common.options import Values, Whole, one_of
from gapwise.stages.datasets.vision.features import RINGS, features_of, sizes_of
from gapwise.stages.datasets.vision.files import Opened, opened
from gapwise.stages.datasets.vision.options import ModelOptions
from gapwise.stages.datasets.vision.pictures import NO_PICTURE, SHOWN, check_finite, picture_arrays
from gapwise.stages.datasets.vision.reader import MaskReader
from gapwise.stages.datasets.vision.superpixels import tally

if TYPE_CHECKING:
    import h5py

WIDTHS = (16, 128, 512)
COLUMNS = 1 + RINGS * sum(WIDTHS)
SUFFIXES = {"annoa": "gt", "annob": "bb", "annoc": "no"}
"""Masks made by hand, from bounding boxes, automatically."""
VOC_YEARS = ("2007", "2008", "2009", "2010", "2011")
SIZES = {"small": 147, "medium": 6121, "large": 25438}
TEST_IMAGES = 241
FILES = {"train": "data/horse-features.bin", "test": "data/horse-features-test.bin"}
MAPS = {"train": "data/horse-superpixels", "test": "data/horse-superpixels-test"}
MASKS, IMAGES = "HDSeg/annotations/HorseSeg", "HDSeg/images/HorseSeg"


@dataclass(frozen=True)
class HDSeg(MaskReader):
    """The released images."""

    root: Annotated[Path, Values("the folder that holds data/ and HDSeg/ of the HorseSeg release")]
    model: ModelOptions
    size: Annotated[str, one_of(*SIZES)] = "small"
    pictures: bool = True
    n_train: Whole | None = None
    """Overrides `size`."""
    n_test: Whole = TEST_IMAGES
    structure = "segmentation"
    needs = ("h5py", "PIL")

    def __post_init__(self) -> None:
        for name in FILES.values():
            one_of_files(self.root, name)

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
        tasks = [(self, split, k) for split, count in counts.items() for k in range(count)]
        for done, ((_, split, _k), arrays) in enumerate(zip(tasks, map_blocks(_read, tasks), strict=True), 1):
            sink.append(split, **(arrays if split == "train" else NO_PICTURE | arrays))
            report(done, len(tasks), "reading HorseSeg features")
        numbers = {f"n_{split}": count for split, count in counts.items()}
        return sizes_of(WIDTHS, self.model.own) | numbers | self.facts()

    def facts(self) -> Record:
        return self.model.facts()


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
    block |= features_of(block["unary"], block["edges"], WIDTHS, reader.model.own)
    check_finite(block, where)

    map_path = reader.root / MAPS[split] / f"{number:06d}.png"
    regions = np.asarray(image_of(map_path, f"superpixel map of image {number:06d}").image).astype(np.int64)
    refuse_map(regions, len(block["labels"]), str(map_path))
    mask = block["labels"][regions]
    if reader.pictures:
        mask_path = reader.root / MASKS / mask_name(annotation, split, where)
        mask = (np.asarray(image_of(mask_path, f"mask of image {number:06d}").image) != 0).astype(np.uint8)
        if mask.shape != regions.shape:
            raise DataError(f"{mask_path}: size {mask.shape}, but {map_path.name} has {regions.shape}")
        if split == "test" and number < SHOWN:
            photograph = reader.root / IMAGES / "test" / f"{Path(image).stem}.JPEG"
            rgb = image_of(photograph, f"photograph of image {number:06d}").pixels()
            block |= picture_arrays(regions, mask, rgb)
    return block | {**tally(regions, mask), "labels": block["labels"]}


def fields_of(file: h5py.File, index: str, path: Path) -> dict[str, np.ndarray]:
    """Unary rows, edges and labels of one image, checked against the counts stored beside them."""

    names = ("superpixel_count", "edge_count", "features", "edge_structure", "labels")
    for name in names:
        if f"{name}_{index}" not in file:
            raise DataError(f"{path}: field {name}_{index} is missing")
    count, edge_count, unary, edges, labels = (np.asarray(file[f"{name}_{index}"]) for name in names)
    size = int(count.item())
    for name, got, wanted in (
        ("features", unary.shape, (size, COLUMNS)),
        ("edge_structure", edges.shape, (int(edge_count.item()), 2)),
        ("labels", (labels.size,), (size,)),
    ):
        if got != wanted:
            raise DataError(f"{path}: field {name}_{index} has shape {got}, expected {wanted}")
    if not np.isin(labels, (0, 1)).all():
        raise DataError(f"{path}: field labels_{index} holds values other than 0 and 1")
    return {
        "unary": unary.astype(np.float32),
        "edges": checked_edges(edges, size, f"{path}: field edge_structure_{index}"),
        "labels": labels.ravel().astype(np.uint8),
    }


def checked_edges(edges: np.ndarray, size: int, where: str) -> np.ndarray:
    """Pairs a < b, sorted, each once: int32 (E, 2)."""
    edges = np.unique(np.sort(edges.astype(np.int64), axis=1), axis=0).reshape(-1, 2)
    if len(edges) and (edges.min() < 0 or edges.max() >= size or (edges[:, 0] == edges[:, 1]).any()):
        raise DataError(f"{where}: expected pairs of different ids in 0..{size - 1}")
    return edges.astype(np.int32)


def refuse_map(regions: np.ndarray, size: int, where: str) -> None:
    fits = regions.ndim == 2 and regions.size and regions.min() == 0 and regions.max() == size - 1
    if not fits or not np.bincount(regions.ravel()).all():
        content = f"ids {regions.min()}..{regions.max()}" if regions.size else "no ids"
        raise DataError(f"{where}: {content}; expected a map (H, W) in which every one of 0..{size - 1} occurs")


def text_of(file: h5py.File, field: str, path: Path) -> str:
    """A string field, however it is wrapped (scalar or array of one, bytes or str)."""
    if field not in file:
        raise DataError(f"{path}: field {field} is missing; without the HDSeg archive set dataset.pictures=false")
    value = np.asarray(file[field][()]).ravel()[0]
    return value.decode() if isinstance(value, bytes) else str(value)


def mask_name(annotation: str, split: str, where: str) -> str:
    """Path of a mask below `MASKS`: annoa_2007_000032 -> voc12/2007_000032.gt.png."""
    if split == "test":
        return f"test/{annotation}"
    parts = Path(annotation).stem.split("_")
    if len(parts) < 3 or parts[0] not in SUFFIXES:
        raise DataError(f"{where}: annotation_file is {annotation!r}; expected annoa_, annob_ or annoc_<folder>_<name>")
    below = "voc12" if parts[1] in VOC_YEARS else parts[1]
    return f"{below}/{parts[1]}_{parts[2]}.{SUFFIXES[parts[0]]}.png"


def image_of(path: Path, content: str) -> Opened:
    """A map, mask or photograph; DataError naming it."""
    if not path.is_file():
        hint = "" if "map" in content else "; without the HDSeg archive set dataset.pictures=false"
        raise DataError(f"{path}: missing ({content}){hint}")
    return opened(path)
