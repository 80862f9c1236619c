"""Files in the layout of the HorseSeg release, which the reader `stages.datasets.hdseg` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from PIL import Image


def put_image(
    file: h5py.File, number: int, unary: np.ndarray, edges: np.ndarray, labels: np.ndarray, **storage: Any
) -> None:
    """The fields of image `number`: rows (S, 1969), pairs (E, 2) and labels (S,); `storage` says how HDF5 keeps the rows.

    MATLAB, which the release was made with, reads the same arrays transposed.
    """
    index = f"{number:06d}"
    file[f"superpixel_count_{index}"] = np.array([len(unary)])
    file[f"edge_count_{index}"] = np.array([len(edges)])
    file[f"edge_structure_{index}"] = edges
    file.create_dataset(f"features_{index}", data=unary, **storage)
    file[f"labels_{index}"] = labels.astype(np.int32)[:, None]


def put_names(file: h5py.File, number: int, annotation: str, image: str) -> None:
    """The names of the mask and of the photograph of image `number`."""
    for field, text in (("annotation_file", annotation), ("image_name", image)):
        file[f"{field}_{number:06d}"] = np.array([text], dtype=h5py.string_dtype())


def save(path: Path, pixels: np.ndarray) -> None:
    """An image file: JPEG if its name ends so, else PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, format="JPEG" if path.suffix == ".JPEG" else "PNG")
