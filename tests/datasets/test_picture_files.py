"""One decoder: a picture's file gives the same pixels to training and to prediction, or the same refusal."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from gapwise.stages.datasets import Blocks, DataError
from gapwise.stages.datasets.vision.features import Words
from gapwise.stages.datasets.vision.masks import load_masked, read_classes
from gapwise.stages.datasets.vision.reader import PictureEncoder, PictureReader

RGB = np.random.default_rng(0).integers(256, size=(12, 20, 3), dtype=np.uint8)
PLAIN = Image.fromarray(RGB)
MASK = (RGB[..., 0] > 127).astype(np.uint8)


def with_alpha(picture: Image.Image, opaque: bool) -> Image.Image:
    alpha = np.full((12, 20), 255, np.uint8)
    alpha[2, 3] = 255 if opaque else 0
    picture = picture.copy()
    picture.putalpha(Image.fromarray(alpha))
    return picture


def saved(picture: Image.Image, form: str = "PNG", **more: object) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, format=form, **more)
    return stream.getvalue()


USED = {
    "grey.png": saved(PLAIN.convert("L")),
    "colour.PNG": saved(PLAIN),
    "palette.png": saved(PLAIN.convert("P")),
    "bits.png": saved(PLAIN.convert("1")),
    "opaque.png": saved(with_alpha(PLAIN, True)),
    "ink.jpg": saved(PLAIN.convert("CMYK"), "JPEG"),
    "upper.JPG": saved(PLAIN, "JPEG"),
    "two.jpeg": saved(PLAIN, "MPO", save_all=True, append_images=[PLAIN.transpose(Image.Transpose.ROTATE_180)]),
    "colour.tif": saved(PLAIN, "TIFF"),
    "colour.TIFF": saved(PLAIN, "TIFF", compression="tiff_lzw"),
    "lab.tif": saved(Image.merge("LAB", PLAIN.split()), "TIFF"),
    "colour.bmp": saved(PLAIN, "BMP"),
    "colour.webp": saved(PLAIN, "WEBP"),
    "colour.ppm": saved(PLAIN, "PPM"),
    "grey.pgm": saved(PLAIN.convert("L"), "PPM"),
}
GREY16, FLOAT = (Image.fromarray(RGB[..., 0].astype(kind) * 257) for kind in (np.uint16, np.float32))
FRAMES = {"save_all": True, "append_images": [PLAIN.transpose(Image.Transpose.ROTATE_180)]}
REFUSED = {
    "deep.png": (saved(GREY16), "has more than 8 bits a channel"),
    "float.tif": (saved(FLOAT, "TIFF"), "has more than 8 bits a channel"),
    "holes.png": (saved(with_alpha(PLAIN, False)), "has transparent pixels, the first at row 2, column 3"),
    "palette_holes.png": (saved(PLAIN.convert("P"), transparency=bytes(256)), "has transparent pixels"),
    "moving.png": (saved(PLAIN, **FRAMES), "holds 2 pictures"),
    "small.png": (saved(PLAIN.crop((0, 0, 20, 7))), "is 20 x 7 pixels; expected at least 8 x 8"),
    "cut.jpg": (saved(PLAIN, "JPEG")[:300], "cannot be decoded"),
}


@pytest.fixture
def classes(tmp_path: Path):
    (tmp_path / "classes.yaml").write_text("classes: [ground, thing]\n")
    Image.fromarray(MASK).save(tmp_path / "mask.png")
    return read_classes(tmp_path / "classes.yaml")


@pytest.mark.parametrize("name", USED)
def test_picture__has_the_same_pixels_in_training_and_prediction(tmp_path, classes, name):
    (tmp_path / "new").mkdir()
    file = tmp_path / "new" / name
    file.write_bytes(USED[name])
    (file.parent / "._hidden.jpg").write_bytes(b"left by another system")
    expected = np.asarray(Image.open(io.BytesIO(USED[name])).convert("RGB"))
    assert np.array_equal(load_masked((file, tmp_path / "mask.png"), classes).rgb, expected)
    for word in (file, file.parent):  # the folder's files are those that training takes
        assert np.array_equal(PictureReader.read_new([str(word)], {}).raw[0], expected)


@pytest.mark.parametrize("name", REFUSED)
def test_picture__that_training_refuses_is_refused_by_prediction(tmp_path, classes, name):
    contents, message = REFUSED[name]
    file = tmp_path / name
    file.write_bytes(contents)
    encoder = PictureEncoder(Words(np.zeros((2, 3)), np.zeros((2, 128))), superpixels=4, pairwise=False)
    for read, where in (
        (lambda: load_masked((file, tmp_path / "mask.png"), classes), name),
        (lambda: PictureReader.read_new([str(file)], {}), name),
        (lambda: encoder.encode([contents], Blocks("segmentation", decoding=True), map), "input: picture 0"),
    ):
        with pytest.raises(DataError, match=f"{where}: {message}"):
            read()


def exif(orientation: int) -> Image.Exif:
    made = Image.Exif()
    made[0x0112] = orientation
    return made


def turned(upright: np.ndarray, orientation: int) -> Image.Image:
    """Pixels that EXIF data with this orientation turn into `upright`."""
    inverse = {6: 8, 8: 6}.get(orientation, orientation)
    image = Image.fromarray(upright)
    image.info["exif"] = exif(inverse).tobytes()
    return Image.fromarray(np.asarray(ImageOps.exif_transpose(image)))


@pytest.mark.parametrize("form", ["png", "tif"])
@pytest.mark.parametrize("width", [12, 20])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_mask__fits_an_exif_turned_picture_or_is_refused(tmp_path, classes, orientation, width, form):
    rgb, labels = RGB[:, :width], MASK[:, :width]
    picture, mask = tmp_path / f"picture.{form}", tmp_path / f"mask.{form}"
    turned(rgb, orientation).save(picture, exif=exif(orientation))
    known, upright, stored = {"exif": exif(orientation)}, Image.fromarray(labels), turned(labels, orientation)
    sideways = orientation > 4 and width != 12
    for kept, more, fits in ((stored, known, True), (upright, {}, orientation == 1 or sideways), (stored, {}, False)):
        kept.save(mask, **more)
        if fits or orientation == 1:
            assert all(map(np.array_equal, load_masked((picture, mask), classes), (rgb, labels)))
        else:
            said = (
                r"mask\.\w+: (may be turned or mirrored against|is 12 x 20 pixels, but .* is 20 x 12 .*EXIF data say)"
            )
            with pytest.raises(DataError, match=said):
                load_masked((picture, mask), classes)
    assert np.array_equal(PictureReader.read_new([str(picture)], {}).raw[0], rgb)
