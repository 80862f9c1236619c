"""A user's own pictures and masks: layouts, kinds of masks, void, splits, encoding, and errors that name the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numba
import numpy as np
import pytest
from leaves_home import check_same_bits, made
from memory_sink import problems, read
from PIL import Image

from gapwise.stages.datasets import DataError, Predicted, open_dataset, specimen
from gapwise.stages.datasets.images import Images
from gapwise.stages.datasets.vision.masks import load_masked
from gapwise.stages.problems import build
from gapwise.stages.problems.capabilities import certainty_of
from gapwise.stages.problems.losses import VOID

SMALL = {"superpixels": 16, "colour_words": 4, "sift_words": 5}
INK = {0: (200, 40, 40), 1: (40, 200, 40), 2: (40, 40, 200), VOID: (90, 90, 90)}
"""What a class looks like in the pictures."""
TWO, THREE = "classes: [ground, thing]\nvoid: 255\n", "classes: {sky: 0, tree: 1, road: 2}\nvoid: 255\n"
COLOURED = "classes: {sky: [10, 20, 30], tree: '#00FF00', road: [1, 2, 3]}\nvoid: [0, 0, 0]\n"
COLOURS = {0: (10, 20, 30), 1: (0, 255, 0), 2: (1, 2, 3), VOID: (0, 0, 0)}
"""The marks of `COLOURED`."""


def scene(number: int, classes: int, void: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """A picture of 32 x 32 pixels in stripes of the classes, with noise, and its mask."""
    rng = np.random.default_rng(number)
    mask = np.repeat(np.arange(32)[:, None] * classes // 32, 32, axis=1)
    mask = np.roll(mask, int(rng.integers(32)), axis=0).astype(np.uint8)
    if void:
        mask[:16, :16] = VOID
    rgb = np.array([INK[int(k)] for k in mask.ravel()]).reshape(32, 32, 3) + rng.normal(scale=12, size=(32, 32, 3))
    return np.clip(rgb, 0, 255).astype(np.uint8), mask


def save(folder: Path, name: str, rgb: np.ndarray, mask, ending: str = "png") -> None:
    for kind in ("images", "masks"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    Image.fromarray(rgb).save(folder / "images" / f"{name}.{ending}")
    (mask if isinstance(mask, Image.Image) else Image.fromarray(mask)).save(folder / "masks" / f"{name}.png")


def folder_of(root: Path, text: str = TWO, count: int = 5, void: bool = False, mask=lambda mask: mask) -> Path:
    """`count` scenes with two classes, or with three, in images/ and masks/."""
    for number in range(count):
        rgb, classes = scene(number, 2 if text == TWO else 3, void)
        save(root, f"scene{number}", rgb, mask(classes))
    (root / "classes.yaml").write_text(text)
    return root


def reader(root: Path, **more):
    return open_dataset("images", {"name": "images", "root": str(root), **SMALL, **more})


def palette(mask: np.ndarray) -> Image.Image:
    """A palette mask whose numbers are not in the order of the classes, and whose colours are those of `COLOURED`."""
    image = Image.fromarray(mask).convert("P")
    numbers = {0: 7, 1: 3, 2: 200, VOID: 9}
    colours = np.zeros((256, 3), np.uint8)
    for k, number in numbers.items():
        colours[number] = COLOURS[k]
    image.putdata([numbers[int(k)] for k in mask.ravel()])
    image.putpalette(colours.ravel().tolist())
    return image


def painted(mask: np.ndarray) -> np.ndarray:
    return np.array([COLOURS[int(k)] for k in mask.ravel()], np.uint8).reshape(*mask.shape, 3)


def opaque(mask: np.ndarray) -> np.ndarray:
    return np.dstack([painted(mask), np.full(mask.shape, 255, np.uint8)])


def test_two_classes__are_the_exact_structure_and_void_counts_for_nothing(tmp_path):
    train, test, sink, meta = problems(reader(folder_of(tmp_path, void=True)))
    assert (train.n, test.n, train.labels, certainty_of(train)) == (4, 1, 2, "exact")
    assert meta["class_names"] == ["ground", "thing"]
    arrays = sink.arrays("train")
    void = arrays["labels"] == VOID
    assert void.any()
    assert not arrays["unary"][void].any()
    assert not train.images.loss_if_wrong[void].any()
    assert (train.images.loss_if_wrong[~void] > 0.0).all()
    per_image = np.add.reduceat(train.images.loss_if_wrong, train.label_ptr[:-1])
    np.testing.assert_allclose(per_image, 1.0)  # void superpixels take nothing of the classes' halves
    assert arrays["area"].sum() <= 4 * (32 * 32 - 16 * 16)
    other = sink.arrays("test")
    assert set(np.unique(other["mask"])) == {0, 1, VOID}
    assert all(train.least_loss(i) > 0.0 for i in range(train.n))


def test_two_classes__with_a_fixed_weight_cut_no_edge_of_a_void_superpixel_in_training(tmp_path):
    options = {"name": "images", "root": str(folder_of(tmp_path, void=True)), **SMALL, "potts": 0.5}
    train, test, sink, meta = problems(open_dataset("images", options))
    weights = train.lower[meta["d_unary"] :]
    assert (weights == 0.5).all()
    assert (train.upper[meta["d_unary"] :] == weights).all()
    void = sink.arrays("train")["labels"] == VOID
    image = np.repeat(np.arange(train.n), np.diff(train.images.edge_ptr))
    ends = void[train.label_ptr[image][:, None] + train.images.edges].any(axis=1)
    strength = train.pairwise @ weights
    assert (strength[ends] == 0.0).all()
    assert (strength[~ends] >= 0.5).all()
    assert (test.pairwise @ weights >= 0.5).all()  # void ones too: they are neighbours
    encoded = specimen(options)
    assert numba.typeof(build(encoded.structure, encoded.arrays, encoded.meta)) == numba.typeof(train)


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        (COLOURED, painted),
        (COLOURED, palette),
        (COLOURED, opaque),
        ("classes: {sky: 7, tree: 3, road: 200}\nvoid: 9\n", palette),
    ],
    ids=["colours", "palette colours", "opaque alpha", "palette numbers"],
)
def test_masks__of_every_kind_give_the_same_blocks(tmp_path, text, mask):
    (tmp_path / "plain").mkdir()
    (tmp_path / "other").mkdir()
    plain, facts = read(reader(folder_of(tmp_path / "plain", THREE, 3, void=True)))
    other, meta = read(reader(folder_of(tmp_path / "other", text, 3, void=True, mask=mask)))
    assert reader(tmp_path / "other").structure == "potts"
    assert meta["classes"] == 3
    assert meta.pop("class_colours", None) == ([[10, 20, 30], [0, 255, 0], [1, 2, 3]] if text == COLOURED else None)
    assert {**meta, "class_values": facts["class_values"]} == facts
    for split in ("train", "test"):
        for name, array in plain.arrays(split).items():
            np.testing.assert_array_equal(array, other.arrays(split)[name], err_msg=name)


def test_layouts__folders_lists_and_a_share(tmp_path):
    root = folder_of(tmp_path / "one")
    names = [f"scene{k}" for k in range(5)]
    share = reader(root, test_fraction=0.4).pairs
    assert sorted([*share["train"], *share["test"]]) == names
    assert len(share["test"]) == 2
    assert {tuple(reader(root, seed=seed).pairs["test"]) for seed in range(8)} != {("scene0",)}
    (root / "test.txt").write_text("# the last\nscene4\n\nscene1.png\n")
    images = reader(root)
    assert {split: list(pairs) for split, pairs in images.pairs.items()} == {
        "train": ["scene0", "scene2", "scene3"], "test": ["scene4", "scene1"],
    }  # fmt: skip
    assert {"test.txt", "classes.yaml", "images/scene0.png", "masks/scene0.png"} <= set(images.files())
    (root / "train.txt").write_text("scene2\n")
    assert list(reader(root).pairs["train"]) == ["scene2"]
    two = tmp_path / "two"
    two.mkdir()
    shutil.copytree(root, two / "train")
    shutil.copytree(root, two / "test")
    shutil.copy(root / "classes.yaml", two)
    assert [len(reader(two).pairs[split]) for split in ("train", "test")] == [5, 5]
    assert {"train/images/scene0.png", "test/masks/scene4.png"} <= set(reader(two).files())


def deep(mask: np.ndarray) -> Image.Image:
    return Image.fromarray(mask.astype(np.uint16))


def holes(mask: np.ndarray) -> np.ndarray:
    pixels = opaque(mask)
    pixels[3, 5, 3] = 0
    return pixels


def odd(mask: np.ndarray) -> np.ndarray:
    out = mask.copy()
    out[2, 3], out[4, 4] = 17, 18
    return out


@pytest.mark.parametrize(
    ("text", "mask", "message"),
    [
        (TWO, odd, r"masks/scene2\.png: the value 17 at row 2, column 3 \(and 2 pixels in all .*not in classes\.yaml"),
        (THREE, painted, r"masks/scene2\.png: is a mask of colours \(mode RGB\), but classes\.yaml gives numbers"),
        (TWO, deep, r"masks/scene2\.png: has 16 bits or more a pixel \(mode I;16\); save it with 8"),
        (
            COLOURED,
            holes,
            r"masks/scene2\.png: has transparent pixels, the first at row 3, column 5; give pixels without",
        ),
        (TWO, lambda mask: mask[1:], r"masks/scene2\.png: is 32 x 31 pixels, but .*scene2\.png is 32 x 32 pixels"),
    ],
)
def test_masks__that_cannot_be_used_are_named(tmp_path, text, mask, message):
    folder_of(tmp_path, text, mask=painted if text == COLOURED else lambda mask: mask)
    rgb, classes = scene(2, 2 if text == TWO else 3)
    save(tmp_path, "scene2", rgb, mask(classes))
    with pytest.raises(DataError, match=message):
        read(reader(tmp_path))


def test_files__that_cannot_be_used_are_named(tmp_path):
    folder_of(tmp_path)
    picture, mask = tmp_path / "images" / "scene2.png", tmp_path / "masks" / "scene2.png"
    Image.fromarray(scene(2, 2)[1]).save(mask, "JPEG")
    with pytest.raises(DataError, match=r"masks/scene2\.png: is a JPEG, which does not keep exact values"):
        read(reader(tmp_path))
    mask.unlink()
    with pytest.raises(DataError, match=r"images/scene2\.png: has no mask; expected .*masks/scene2\.png"):
        reader(tmp_path)
    picture.rename(mask)
    with pytest.raises(DataError, match=r"masks/scene2\.png: has no picture; expected .*images/scene2\.jpg"):
        reader(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("test.txt", "scene1\nscene9\n", r"test\.txt: line 2: there is no picture 'scene9' in images/"),
        ("train.txt", "# none\n", r"train\.txt: names no picture"),
        ("classes.yaml", "classes: [a]\n", r"classes\.yaml: classes must name 2 to 254 classes"),
        ("classes.yaml", "classes: [a, a]\n", r"classes\.yaml: expected different names in classes; got 'a'"),
        ("classes.yaml", "classes: {a: 0, b: 0}\n", r"classes\.yaml: b and a both have the value 0"),
        ("classes.yaml", "classes: {a: 0, no: 1}\n", r"classes\.yaml: the class False is no text; write it in quotes"),
        (
            "classes.yaml",
            "classes: {a: 0, b: [1, 2, 3]}\n",
            r"classes\.yaml: some classes have numbers and others colours",
        ),
    ],
)
def test_texts__that_cannot_be_used_are_named(tmp_path, name, text, message):
    (folder_of(tmp_path) / name).write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        reader(tmp_path)
    assert "\n" not in str(caught.value)


def test_masks__of_0_and_255_with_255_for_void_are_told_to_give_it_to_the_class(tmp_path):
    folder_of(tmp_path, mask=lambda mask: mask * 255)
    with pytest.raises(DataError) as caught:
        read(reader(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}/classes.yaml: no training mask shows the class thing and no test mask; "
        "all other pixels are void (the value 255); if that marks thing, give it to that class, not to void"
    )
    (tmp_path / "classes.yaml").write_text("classes: {ground: 0, thing: 255}\n")
    masks = read(reader(tmp_path))[0].arrays("test")["mask"]
    assert masks.tolist() == read(reader(folder_of(tmp_path / "same")))[0].arrays("test")["mask"].tolist()
    (tmp_path / "classes.yaml").write_text("classes: [ground, thing]\n")
    with pytest.raises(
        DataError, match=r"the value 255 at .* is not in classes\.yaml; give it to a class there, or to void"
    ):
        read(reader(tmp_path))


@pytest.mark.parametrize("text", [TWO, THREE])
def test_new_pictures__are_encoded_as_featurized(tmp_path, text):
    options = {"name": "images", "root": str(folder_of(tmp_path, text)), **SMALL}
    feature_map, stored = made(options, tmp_path)
    pictures = [scene(int(name[-1]), 2 if text == TWO else 3)[0] for name in feature_map.meta["images"]["test"]]
    known = {name: array for name, array in stored.items() if not name.startswith("counts")}  # pixels of true classes
    check_same_bits(feature_map.encode(pictures), known, pictures=True)


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("classes: {ground: 0, thing: 255}\n", lambda mask: mask * 255),
        ("classes: {thing: 9, ground: 4}\nvoid: 0\n", lambda mask: np.array([4, 9], np.uint8)[mask]),
        (THREE, lambda mask: mask),
        ("classes: {sky: 7, tree: 3, road: 200}\nvoid: 9\n", palette),
        (COLOURED, painted),
        (COLOURED, palette),
    ],
)
def test_predicted_masks__are_training_masks_with_the_same_classes(tmp_path, text, mask):
    """What is predicted right comes out as the true masks: each value or colour of the table, on every picture."""
    for number in range(4):
        rgb, labels = scene(number, 2 if "ground" in text else 3)
        save(tmp_path, f"scene{number}", rgb, mask(labels))
    (tmp_path / "classes.yaml").write_text(text)
    opened = reader(tmp_path)
    sink, meta = read(opened)
    item = opened.pairs["test"][meta["images"]["test"][0]]
    truth = load_masked(item, opened.classes)
    new = Images.read_new([str(item[0])], meta)
    arrays = {"superpixel_map": np.arange(1024), "superpixel_map_ptr": [0, 1024], "hw": [[32, 32]], "hw_ptr": [0, 1]}
    predicted = Predicted(truth.mask.ravel(), np.array([0, 1024]), meta["class_names"], arrays)
    files = dict(Images.show(new, predicted).files or ())
    item[1].write_bytes(files[f"{item[0].stem}.png"])
    np.testing.assert_array_equal(load_masked(item, opened.classes).mask, truth.mask)
    stored = Images.stored_input(sink.arrays("test"), meta)
    assert dict(Images.show(stored, predicted).files or ()) == files
