"""The files of the HorseSeg release (`stages.datasets.hdseg`): fields of its HDF5 files, names of masks, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.vision.features import RINGS
from gapwise.stages.datasets.vision.picture_files import Opened, opened

if TYPE_CHECKING:
    import h5py


WIDTHS = (16, 128, 512)
COLUMNS = 1 + RINGS * sum(WIDTHS)
SUFFIXES = {"annoa": "gt", "annob": "bb", "annoc": "no"}
"""Masks made by hand, from bounding boxes, automatically."""
VOC_YEARS = ("2007", "2008", "2009", "2010", "2011")


def fields_of(file: h5py.File, index: str, path: Path) -> dict[str, np.ndarray]:
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
        "edges": checked_edges(edges, size, f"{path}: field edge_structure_{index}"),
        "labels": labels.ravel().astype(np.uint8),
    }


def checked_edges(edges: np.ndarray, size: int, where: str) -> np.ndarray:
    """Pairs a < b, sorted, each once: int32 (E, 2)."""
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise DataError(f"{where} has shape {edges.shape}, expected (edges, 2)")
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
