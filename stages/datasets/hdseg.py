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

New input for `encoder`: the features, edges and map of each image, as `Given` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gapwise.stages.datasets import NEW, DataError, MapBlocks, OptionError, Report, Sink
from gapwise.stages.datasets.inputs import NewInput
from gapwise.stages.datasets.inputs.arrays import arrays_of
from gapwise.stages.datasets.vision import masks
from gapwise.stages.datasets.vision.features import RINGS, pairwise_features
from gapwise.stages.datasets.vision.own_columns import ModelOptions, own_block, own_names, own_width, split_options
from gapwise.stages.datasets.vision.pictures import (
    NO_PICTURE,
    SHOWN,
    check_finite,
    unary_blocks,
    unlabelled,
    write_specimen,
)
from gapwise.stages.datasets.vision.superpixels import tally
from gapwise.stages.problems.facts import Facts, Json, Options

if TYPE_CHECKING:
    import h5py

SIZES = {"small": 147, "medium": 6121, "large": 25438}
TEST_IMAGES = 241
WIDTHS = (16, 128, 512)
COLUMNS = 1 + RINGS * sum(WIDTHS)
FILES = {"train": "data/horse-features.bin", "test": "data/horse-features-test.bin"}
MAPS = {"train": "data/horse-superpixels", "test": "data/horse-superpixels-test"}
MASKS, IMAGES = "HDSeg/annotations/HorseSeg", "HDSeg/images/HorseSeg"
SUFFIXES = {"annoa": "gt", "annob": "bb", "annoc": "no"}
"""Masks made by hand, from bounding boxes, automatically."""
VOC_YEARS = ("2007", "2008", "2009", "2010", "2011")
PRECISIONS = ("f32", "u8")
LEVELS = 255
"""The largest code of u8."""
WHERE = ("root",)
LATER = ModelOptions.names()
NEEDS = ("h5py", "PIL")


@dataclass(frozen=True)
class HDSeg:
    """Reader; its fields and those of `ModelOptions` are the options of the configuration."""

    root: Path
    size: str = "small"
    precision: str = "f32"
    pictures: bool = True
    n_train: int | None = None
    """Overrides `size`."""
    n_test: int = TEST_IMAGES
    model: ModelOptions = field(default_factory=ModelOptions)

    @property
    def structure(self) -> str:
        """The structure of the blocks."""
        return "segmentation"

    @property
    def counts(self) -> dict[str, int]:
        """Number of images of each split."""
        return {"train": self.n_train or SIZES[self.size], "test": self.n_test}

    def files(self) -> dict[str, Path]:
        """The feature files, the maps of the images asked for and, with pictures, all masks and test photographs."""
        maps = [f"{MAPS[split]}/{k:06d}.png" for split, count in self.counts.items() for k in range(count)]
        found = {name: self.root / name for name in (*FILES.values(), *maps)}
        if self.pictures:
            shown = [*(self.root / MASKS).rglob("*.png"), *(self.root / IMAGES / "test").glob("*")]
            found |= {path.relative_to(self.root).as_posix(): path for path in shown}
        return {name: path for name, path in found.items() if path.is_file()}

    def source(self) -> Json:
        return {}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Json:
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


class Given(NamedTuple):
    """A new image."""

    features: np.ndarray
    """(S, 1969), as the release has them"""
    edges: np.ndarray
    """(E, 2): pairs of neighbouring superpixels, from 0"""
    superpixel_map: np.ndarray
    """(H, W): ids 0..S-1, each of which occurs"""


@dataclass(frozen=True)
class HDSegEncoder:
    """Blocks of new images, with the precision of a feature store."""

    precision: str
    own: bool = False

    def encode(self, raw: Any, sink: Sink, map_blocks: MapBlocks) -> None:
        """Images, each a `Given` or a tuple like it.

        Besides its features a block has `superpixel_map` (H * W,) and `hw` (1, 2), which turn labels of superpixels into
        those of pixels.
        """
        tasks = [(self, number, Given(*image)) for number, image in enumerate(raw)]
        if not tasks:
            raise DataError("input: holds no images")
        for arrays in map_blocks(_new_block, tasks):
            sink.append(NEW, **arrays)


def _new_block(task: tuple[HDSegEncoder, int, Given]) -> dict[str, np.ndarray]:
    encoder, number, image = task
    where = f"input: image {number}"
    features, regions = np.asarray(image.features), np.asarray(image.superpixel_map).astype(np.int64)
    size = int(features.shape[0]) if features.ndim == 2 else 0
    if features.shape != (size, COLUMNS):
        raise DataError(f"{where}: features has shape {features.shape}, expected (superpixels, {COLUMNS})")
    _refuse_map(regions, size, f"{where}: superpixel_map")
    block = {"unary": features.astype(np.float32), "edges": _edges(np.asarray(image.edges), size, f"{where}: edges")}
    block |= _features(block["unary"], block["edges"], encoder.own)
    check_finite(block, where)
    return block | unlabelled(regions) | {"unary": _stored(block["unary"], encoder.precision, where)}


def encoder(meta: Facts, shared: Mapping[str, np.ndarray]) -> HDSegEncoder:
    """The encoder of a feature store of this reader."""
    return HDSegEncoder(meta["precision"], bool(meta.get("own", False)))


def read_new(inputs: Sequence[str], meta: Facts) -> NewInput:
    """Images, each an .npz file with the arrays of `Given`: features, edges and superpixel_map."""
    found = []
    for name in inputs:
        arrays = arrays_of(Path(name), Given._fields)
        missing = [field for field in Given._fields if field not in arrays]
        if missing:
            raise DataError(
                f"{name}: has no array {missing[0]}; expected {', '.join(Given._fields)}, as hdseg.Given says"
            )
        found.append(Given(**arrays))
    return NewInput(found, masks.named([Path(name) for name in inputs], [None] * len(found)), several=True)


stored_input, show = masks.stored_input, masks.show


def specimen(options: Options, sink: Sink) -> Json:
    """Blocks to compile for."""
    return write_specimen(sink, codes=options.get("precision") == "u8") | ModelOptions.taken_from(options).facts()


def open(options: Options) -> HDSeg:
    """Reader for `dataset.root` (required), `size`, `precision`, `pictures`, `n_train`, `n_test` and `ModelOptions`."""
    options, model = split_options(options)
    own = [f.name for f in fields(HDSeg) if f.name != "model"]
    unknown = sorted(set(options) - {*own, "name"})
    if unknown:
        known = ", ".join([*own, *ModelOptions.names()])
        raise ValueError(f"dataset.{unknown[0]}: no such option of this reader; there are: {known}")
    given = {key: value for key, value in options.items() if key in own and value is not None}
    if not given.get("root"):
        raise OptionError("dataset.root: missing; give the folder that holds data/ and HDSeg/ of the HorseSeg release")
    reader = HDSeg(**given | {"root": Path(given["root"]).expanduser(), "model": model})
    for key, choices in (("size", tuple(SIZES)), ("precision", PRECISIONS)):
        if getattr(reader, key) not in choices:
            raise OptionError(f"dataset.{key}: expected one of {', '.join(choices)}, got {getattr(reader, key)!r}")
    for name in FILES.values():
        if not (reader.root / name).is_file():
            raise DataError(f"dataset.root={reader.root}: there is no {name} in it, the layout of the HorseSeg release")
    return reader


def _read(task: tuple[HDSeg, str, int]) -> dict[str, np.ndarray]:
    """Arrays of one block."""
    import h5py

    reader, split, number = task
    path = reader.root / FILES[split]
    try:
        with h5py.File(path, "r") as file:
            block = _fields(file, f"{number:06d}", path)
            if reader.pictures:
                annotation = _text(file, f"annotation_file_{number:06d}", path)
                image = _text(file, f"image_name_{number:06d}", path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read as an HDF5 file ({error})") from error
    where = f"{path}, image {number:06d}"
    block |= _features(block["unary"], block["edges"], reader.model.own)
    check_finite(block, where)

    map_path = reader.root / MAPS[split] / f"{number:06d}.png"
    regions = _image(map_path, f"superpixel map of image {number:06d}").astype(np.int64)
    size = len(block["labels"])
    _refuse_map(regions, size, str(map_path))
    if reader.pictures:
        mask_path = reader.root / MASKS / _mask_name(annotation, split, where)
        mask = _image(mask_path, f"mask of image {number:06d}")
        if mask.shape != regions.shape:
            raise DataError(f"{mask_path}: size {mask.shape}, but {map_path.name} has {regions.shape}")
        counted = tally(regions, mask)
        if split == "test" and number < SHOWN:
            photograph = reader.root / IMAGES / "test" / f"{Path(image).stem}.JPEG"
            block |= {
                "superpixel_map": regions.astype(np.uint16).ravel(),
                "mask": (mask != 0).astype(np.uint8).ravel(),
                "rgb": _image(photograph, f"photograph of image {number:06d}", "RGB").reshape(-1, 3),
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


def _fields(file: h5py.File, index: str, path: Path) -> dict[str, np.ndarray]:
    """Unary rows, edges and labels of one image, checked against the counts stored beside them."""

    def get(field: str) -> np.ndarray:
        if f"{field}_{index}" not in file:
            raise DataError(f"{path}: field {field}_{index} is missing")
        return np.asarray(file[f"{field}_{index}"])

    def expect(field: str, got: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        if got != wanted:
            raise DataError(f"{path}: field {field}_{index} has shape {got}, expected {wanted}")

    size, pairs = int(get("superpixel_count").item()), int(get("edge_count").item())
    unary, edges, labels = get("features"), get("edge_structure"), get("labels")
    expect("features", unary.shape, (size, COLUMNS))
    expect("edge_structure", edges.shape, (pairs, 2))
    expect("labels", (labels.size,), (size,))
    if not np.isin(labels, (0, 1)).all():
        raise DataError(f"{path}: field labels_{index} holds values other than 0 and 1")
    return {
        "unary": unary.astype(np.float32),
        "edges": _edges(edges, size, f"{path}: field edge_structure_{index}"),
        "labels": labels.ravel().astype(np.uint8),
    }


def _edges(edges: np.ndarray, size: int, where: str) -> np.ndarray:
    """Pairs a < b, sorted, each once: int32 (E, 2)."""
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise DataError(f"{where} has shape {edges.shape}, expected (edges, 2)")
    edges = np.unique(np.sort(edges.astype(np.int64), axis=1), axis=0).reshape(-1, 2)
    if len(edges) and (edges.min() < 0 or edges.max() >= size or (edges[:, 0] == edges[:, 1]).any()):
        raise DataError(f"{where}: expected pairs of different ids in 0..{size - 1}")
    return edges.astype(np.int32)


def _refuse_map(regions: np.ndarray, size: int, where: str) -> None:
    fits = regions.ndim == 2 and regions.size and regions.min() == 0 and regions.max() == size - 1
    if not fits or not np.bincount(regions.ravel()).all():
        found = f"ids {regions.min()}..{regions.max()}" if regions.size else "no ids"
        raise DataError(f"{where}: {found}; expected a map (H, W) in which every one of 0..{size - 1} occurs")


def _text(file: h5py.File, field: str, path: Path) -> str:
    """A string field, however it is wrapped (scalar or array of one, bytes or str)."""
    if field not in file:
        raise DataError(f"{path}: field {field} is missing; without the HDSeg archive set dataset.pictures=false")
    value = np.asarray(file[field][()]).ravel()[0]
    return value.decode() if isinstance(value, bytes) else str(value)


def _mask_name(annotation: str, split: str, where: str) -> str:
    """Path of a mask below `MASKS`: annoa_2007_000032 -> voc12/2007_000032.gt.png."""
    if split == "test":
        return f"test/{annotation}"
    parts = Path(annotation).stem.split("_")
    if len(parts) < 3 or parts[0] not in SUFFIXES:
        raise DataError(f"{where}: annotation_file is {annotation!r}; expected annoa_, annob_ or annoc_<folder>_<name>")
    below = "voc12" if parts[1] in VOC_YEARS else parts[1]
    return f"{below}/{parts[1]}_{parts[2]}.{SUFFIXES[parts[0]]}.png"


def _image(path: Path, what: str, mode: str | None = None) -> np.ndarray:
    """Pixels of an image file; DataError naming it."""
    from PIL import Image, UnidentifiedImageError

    if not path.is_file():
        hint = "" if "map" in what else "; without the HDSeg archive set dataset.pictures=false"
        raise DataError(f"{path}: missing ({what}){hint}")
    try:
        with Image.open(path) as image:
            return np.asarray(image.convert(mode) if mode else image)
    except (UnidentifiedImageError, OSError) as error:
        raise DataError(f"{path}: cannot be decoded ({what}; {error})") from error


def _stored(unary: np.ndarray, precision: str, where: str) -> np.ndarray:
    """Unary rows as they are kept."""
    if precision == "f32":
        return unary
    codes = unary * np.float64(LEVELS)
    np.rint(codes, out=codes)
    if codes.min() < 0 or codes.max() > LEVELS:  # compare codes, not values: a norm of 1 may come out as 1 + 1e-7
        raise DataError(f"{where}: features outside [0, 1] cannot be stored as {precision}; use dataset.precision=f32")
    return codes.astype(np.uint8)
