"""Weizmann horses (Borenstein and Ullman, ECCV 2002): 328 photographs with hand-made masks.

`dataset.root` holds one of: `weizmann_horses_160.npz` (decoded, longer side 160 pixels), the folders `rgb` and
`figure_ground` (and `gray`) of the publisher, or these in one .tar file. The originals give the same pixels as the .npz:
masks set the size, photographs are reduced by Lanczos, masks by a box filter and a threshold.

The split is fixed: names in sorted order are permuted by `numpy.random.default_rng(2004).permutation`;
byte-identical photographs (horse006 = horse018, horse240 = horse274) stay together, at the position of the first of
them; the first 147 are for training, the other 181 for test. A pair that would straddle the border goes to test, and
the next single photograph replaces it. `dataset.seed` does not change the split.

New input for `encoder`: pictures whose longer side is about 160 pixels (`vision.reader.PictureEncoder`)."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import UNREADABLE, DataError, MapBlocks, Report, Sink
from gapwise.stages.datasets.common.files import named_arrays
from gapwise.stages.datasets.common.options import Natural, Values, Whole
from gapwise.stages.datasets.vision.own_columns import ModelOptions
from gapwise.stages.datasets.vision.picture_files import Opened, opened, pixels_of
from gapwise.stages.datasets.vision.pictures import FeatureOptions, Load, Picture, featurize_pictures, write_specimen
from gapwise.stages.datasets.vision.reader import PictureReader

SPLIT_SEED = 2004
TWINS = (("horse006", "horse018"), ("horse240", "horse274"))
LONGER_SIDE = 160
ASPECT_TOLERANCE = 0.02
NPZ, TAR = "weizmann_horses_160.npz", "weizmann_horses_original.tar"


@dataclass(frozen=True)
class Weizmann(PictureReader):
    """The horses."""

    root: Annotated[Path, Values(f"the folder that holds {NPZ}, {TAR} or rgb/ and figure_ground/")]
    features: FeatureOptions
    model: ModelOptions
    n_train: Whole = 147
    n_test: Whole | None = None
    seed: Natural = 0
    structure = "segmentation"
    longer_side = LONGER_SIDE

    def __post_init__(self) -> None:
        _find(self.root)

    def files(self) -> dict[str, Path]:
        pictures = _find(self.root)
        if not pictures.is_dir():
            return {"pictures": pictures}
        folders = [pictures / name for name in ("rgb", "figure_ground", "gray")]
        return {
            path.relative_to(pictures).as_posix(): path for folder in folders for path in sorted(folder.glob("*.jpg"))
        }

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write the blocks of both splits; see `featurize_pictures`."""
        path = _find(self.root)
        stored = _open_npz(path) if path.name == NPZ else {}
        names = sorted(stored) or _names(path)
        load: Load = _whole if stored else partial(_load_original, source=str(path))
        train, test = split(names, self.n_train)
        if len(train) < self.n_train:
            raise DataError(f"{path}: {len(names)} images, too few for dataset.n_train={self.n_train}")
        images = {"train": train, "test": test[: self.n_test]}
        items = {part: [stored.get(name, name) for name in chosen] for part, chosen in images.items()}
        meta = featurize_pictures(load, items, self.features, self.seed, sink, map_blocks, report, model=self.model)
        return meta | {"images": images}

    def specimen(self, sink: Sink) -> Record:
        return write_specimen(sink) | self.model.facts()


def split(names: list[str], n_train: int) -> tuple[list[str], list[str]]:
    """Training and test names, as the module's docstring describes."""
    first_of_pair = {b: a for a, b in TWINS if a in names and b in names}
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(first_of_pair.get(name, name), []).append(name)
    heads = sorted(groups)
    train: list[str] = []
    test: list[str] = []
    for k in np.random.default_rng(SPLIT_SEED).permutation(len(heads)):
        group = groups[heads[k]]
        (train if len(train) + len(group) <= n_train else test).extend(group)
    return train, test


def _find(root: Path) -> Path:
    """The .npz in `root`, else the folder, else the .tar."""
    if not root.is_dir():
        raise DataError(f"dataset.root={root}: no such folder; it should hold {NPZ}, {TAR} or rgb/ and figure_ground/")
    if (root / NPZ).is_file():
        return root / NPZ
    if (root / "rgb").is_dir():
        return root
    if (root / TAR).is_file():
        return root / TAR
    raise DataError(f"dataset.root={root}: holds neither {NPZ} nor {TAR} nor the folders rgb/ and figure_ground/")


def _open_npz(path: Path) -> dict[str, Picture]:
    """All pictures of the .npz by name (26 MB)."""
    rgb, mask, hw, offset, names = named_arrays(path, ("rgb", "mask", "hw", "offset", "name")).values()
    sizes = hw.astype(np.int64).prod(axis=1)
    if len(offset) != len(names) + 1 or (np.diff(offset) != sizes).any():
        raise DataError(f"{path}: field offset does not match field hw (height x width of each image)")
    if rgb.shape != (offset[-1], 3) or mask.shape != (offset[-1],):
        raise DataError(f"{path}: rgb is {rgb.shape}, mask is {mask.shape}; offset asks for {offset[-1]} pixels")
    if mask.max() > 1:
        raise DataError(f"{path}: field mask holds {mask.max()}; 0 (background) and 1 (horse) expected")
    return {
        str(name): Picture(rgb[a:b].reshape(h, w, 3), mask[a:b].reshape(h, w))
        for name, a, b, (h, w) in zip(names, offset[:-1], offset[1:], hw, strict=True)
    }


def _whole(item: Picture) -> Picture:
    """The picture itself, where items are pictures."""
    return Picture(*item)


def _names(path: Path) -> list[str]:
    """Names of the images in the publisher's layout; DataError if an image has no mask or there is no image."""
    if path.is_dir():
        listed = [f"{p.parent.name}/{p.name}" for folder in ("rgb", "figure_ground") for p in (path / folder).iterdir()]
    else:
        try:
            with tarfile.open(path) as tar:
                listed = ["/".join(name.split("/")[-2:]) for name in tar.getnames()]
        except UNREADABLE as error:
            raise DataError(f"{path}: cannot be read as a tar archive ({error}); get the file again") from error
    images = {name[4:-4] for name in listed if name.startswith("rgb/") and name.endswith(".jpg")}
    masks = {name[14:-4] for name in listed if name.startswith("figure_ground/") and name.endswith(".jpg")}
    if not images:
        raise DataError(f"{path}: no rgb/*.jpg in it")
    lone = sorted(images - masks)
    if lone:
        raise DataError(f"{path}: rgb/{lone[0]}.jpg has no mask; expected figure_ground/{lone[0]}.jpg")
    return sorted(images)


def _load_original(name: str, source: str) -> Picture:
    """One image of the publisher's layout, reduced to a longer side of 160 pixels."""
    from PIL import Image

    pictures = Path(source)
    folders = ("rgb", "figure_ground", "gray")
    if pictures.is_dir():
        paths = {folder: pictures / folder / f"{name}.jpg" for folder in folders}
        raw = {folder: path.read_bytes() for folder, path in paths.items() if path.is_file()}
    else:
        with tarfile.open(pictures) as tar:
            members = {"/".join(m.name.split("/")[-2:]): m for m in tar.getmembers() if m.isfile()}
            wanted = {folder: members.get(f"{folder}/{name}.jpg") for folder in folders}
            raw = {folder: tar.extractfile(m).read() for folder, m in wanted.items() if m is not None}  # type: ignore[union-attr]

    def image(folder: str) -> Opened:
        return opened(raw[folder], f"{pictures}: {folder}/{name}.jpg")

    rgb, mask = pixels_of(image("rgb")), image("figure_ground").image.convert("L")
    if "gray" in raw and rgb.max() <= 2:
        rgb = pixels_of(image("gray"))  # horse318: the colour file is black
    height, width = rgb.shape[:2]
    if abs((width / height) / (mask.width / mask.height) - 1) > ASPECT_TOLERANCE:
        raise DataError(
            f"{pictures}: rgb/{name}.jpg is {width}x{height} but figure_ground/{name}.jpg is "
            f"{mask.width}x{mask.height}: shapes differ by more than {ASPECT_TOLERANCE:.0%}"
        )
    scale = LONGER_SIDE / max(mask.size)
    size = (round(mask.width * scale), round(mask.height * scale))
    small = np.asarray(mask.resize(size, Image.Resampling.BOX)) > 127
    return Picture(np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.LANCZOS)), small.astype(np.uint8))
