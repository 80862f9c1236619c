"""Scenes with a horse, composed from pictures that scikit-image ships: the silhouette in a new pose, coats and backgrounds
from photographs and textures, distractors in coats, light, blur and noise. A scene is a function of (seed, split, number)
alone. Colour and texture of a single superpixel are ambiguous on purpose: the pairwise part of a model has to learn that
neighbours belong together."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.vision.pictures import Picture

PHOTOGRAPHS = ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg", "camera.png")
TEXTURES = ("grass.png", "gravel.png", "brick.png", "moon.png", "ihc.png")
FUR = ("chelsea.png", (60, 20, 150, 110))
"""A file, and a box (left, top, right, bottom) in it that shows only fur."""
SILHOUETTE = "horse.png"
FILES = tuple(sorted({*PHOTOGRAPHS, *TEXTURES, FUR[0], SILHOUETTE}))
HEIGHT, WIDTH = 120, 160

COATS = np.array([[120, 78, 48], [150, 92, 52], [96, 70, 52], [58, 48, 42], [128, 120, 112], [176, 148, 108]])
"""Coat colours (RGB): bay, chestnut, dark bay, black, grey, palomino."""
GROUNDS = np.array([[96, 110, 60], [130, 118, 90], [112, 84, 58], [140, 136, 128], [84, 84, 70], [160, 150, 124]])
"""Tints of grey textures behind the horse: grass, sand, earth, stone, shade, straw."""


SHARE = 0.42
"""Share of a coat that looks like ground, and of a ground that looks like a coat (in relief, not in colour)."""


def folder() -> Path:
    """Where scikit-image keeps the pictures it ships; does not import it."""
    spec = find_spec("skimage")
    if spec is None or spec.origin is None:
        raise DataError("scikit-image is not installed; the scenes are composed of pictures that it ships")
    return Path(spec.origin).parent / "data"


@lru_cache(maxsize=len(FILES))
def shipped(name: str) -> np.ndarray:
    """One shipped picture as float32 (h, w, 3) RGB in 0..255; nothing is downloaded, DataError if it is missing."""
    from PIL import Image

    path = folder() / name
    if not path.is_file():
        raise DataError(f"{path}: missing; the installed scikit-image does not ship it")
    return np.asarray(Image.open(path).convert("RGB"), dtype=np.float32)


@lru_cache(maxsize=1)
def silhouette() -> np.ndarray:
    """The horse, cut to its bounding box: float32 (h, w), 1 inside."""
    inside = shipped(SILHOUETTE)[..., 0] < 128
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    return inside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].astype(np.float32)


def smooth_noise(rng: np.random.Generator, cell: float, *, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Noise that varies over about `cell` pixels: float32 (height, width), mean about 0, deviation about 1."""
    import cv2

    grid = rng.normal(size=(max(2, round(height / cell) + 1), max(2, round(width / cell) + 1))).astype(np.float32)
    return cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC) * np.float32(1.3)


def patch(rng: np.random.Generator, picture: np.ndarray) -> np.ndarray:
    """A random window of a picture at a random scale, perhaps mirrored: float32 (HEIGHT, WIDTH, 3)."""
    import cv2

    limit = min(picture.shape[0] / HEIGHT, picture.shape[1] / WIDTH)
    scale = limit * rng.uniform(0.45, 0.95)
    h, w = int(HEIGHT * scale), int(WIDTH * scale)
    top, left = int(rng.integers(picture.shape[0] - h + 1)), int(rng.integers(picture.shape[1] - w + 1))
    window = picture[top : top + h, left : left + w]
    if rng.random() < 0.5:
        window = cv2.flip(window, 1)
    return cv2.resize(window, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)


def hair(rng: np.random.Generator) -> np.ndarray:
    """Relief of a coat: cat's fur, or strokes drawn from noise; float32 (HEIGHT, WIDTH), mean 0, deviation 1."""
    import cv2

    if rng.random() < 0.5:
        left, top, right, bottom = FUR[1]
        return relief(patch(rng, shipped(FUR[0])[top:bottom, left:right]))
    sigma = float(rng.uniform(2.5, 5.0)), float(rng.uniform(0.4, 0.8))
    strokes = rng.normal(size=(HEIGHT, WIDTH, 1)).astype(np.float32)
    along, across = sigma if rng.random() < 0.5 else sigma[::-1]
    return relief(cv2.GaussianBlur(strokes, (0, 0), sigmaX=along, sigmaY=across)[..., None])


def soil(rng: np.random.Generator) -> np.ndarray:
    """Relief of a shipped texture; float32 (HEIGHT, WIDTH), mean 0, deviation 1."""
    return relief(patch(rng, shipped(TEXTURES[rng.integers(len(TEXTURES))])))


def relief(picture: np.ndarray) -> np.ndarray:
    """Grey values of (h, w, 1 or 3), standardised: float32 (h, w)."""
    grey = picture[..., 0]
    if picture.shape[2] == 3:  # numpy's mean over so short an axis takes four times as long
        grey = (grey + picture[..., 1] + picture[..., 2]) / np.float32(3.0)
    return (grey - grey.mean()) / (grey.std() + 1e-3)


def surface(rng: np.random.Generator, tints: np.ndarray, mostly: np.ndarray, partly: np.ndarray) -> np.ndarray:
    """A surface of one colour near one of the tints: mostly of one relief, in patches of a superpixel's size of another.

    float32 (HEIGHT, WIDTH, 3).
    """
    tint = tints[rng.integers(len(tints))] * rng.uniform(0.8, 1.2) + rng.normal(scale=6.0, size=3)
    patches = smooth_noise(rng, 11.0)
    height = np.where(patches < np.quantile(patches, SHARE), partly, mostly)
    shade = 1.0 + rng.uniform(0.05, 0.13) * height + 0.05 * smooth_noise(rng, 30.0)
    return np.asarray(shade[..., None] * tint, np.float32)


def ground(rng: np.random.Generator) -> np.ndarray:
    """A background, a part of a photograph or an earthy surface: float32 (HEIGHT, WIDTH, 3)."""
    if rng.random() < 0.25:
        return patch(rng, shipped(PHOTOGRAPHS[rng.integers(len(PHOTOGRAPHS))]))
    return surface(rng, GROUNDS, soil(rng), hair(rng))


def coat(rng: np.random.Generator) -> np.ndarray:
    """The coat of a horse or a distractor: float32 (HEIGHT, WIDTH, 3)."""
    return surface(rng, COATS, hair(rng), soil(rng))


def posed_horse(rng: np.random.Generator) -> np.ndarray:
    """The silhouette scaled, mirrored, rotated, sheared, with legs and neck moved and all of it warped smoothly:
    bool (HEIGHT, WIDTH)."""
    import cv2

    horse = silhouette()
    height, width = horse.shape
    length = WIDTH * rng.uniform(0.45, 0.9)
    tall = length * height / width * rng.uniform(0.8, 1.1)
    centre = WIDTH * rng.uniform(0.3, 0.7), HEIGHT * rng.uniform(0.4, 0.62)
    angle, shear = np.deg2rad(rng.uniform(-18.0, 18.0)), rng.uniform(-0.25, 0.25)
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float64)
    x, y = x - centre[0], y - centre[1]
    x, y = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    u, v = (x + shear * y) / length, y / tall  # -0.5..0.5 over the horse
    if rng.random() < 0.5:
        u = -u
    u = u + 0.035 * smooth_noise(rng, 28.0)
    v = v + 0.035 * smooth_noise(rng, 28.0)
    stride, phase = rng.uniform(0.0, 0.5), rng.uniform(0.0, 2.0 * np.pi)
    u = u + stride * np.maximum(v - 0.05, 0.0) * np.sin(7.0 * u + phase)
    v = v + rng.uniform(-0.9, 0.35) * np.maximum(u - 0.22, 0.0)
    columns, rows = ((u + 0.5) * width).astype(np.float32), ((v + 0.5) * height).astype(np.float32)
    return cv2.remap(horse, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=0) > 0.5


def blob(rng: np.random.Generator) -> np.ndarray:
    """A rounded shape with a wavy outline somewhere in the picture: bool (HEIGHT, WIDTH)."""
    centre = rng.uniform(0, WIDTH), rng.uniform(0, HEIGHT)
    angle, radius = rng.uniform(0, np.pi), rng.uniform(6.0, 14.0)
    waves = [(rng.normal(scale=0.25 / k), rng.uniform(0, 2 * np.pi)) for k in range(2, 6)]
    length = rng.uniform(1.0, 2.0)
    reach = length * radius * (1.0 + sum(abs(size) for size, _ in waves)) + 1.0  # no pixel farther away is inside
    left, top = (max(0, int(middle - reach)) for middle in centre)
    inside = np.zeros((HEIGHT, WIDTH), bool)
    window = inside[top : int(centre[1] + reach) + 1, left : int(centre[0] + reach) + 1]
    y, x = np.mgrid[top : top + window.shape[0], left : left + window.shape[1]].astype(np.float64)
    x, y = x - centre[0], y - centre[1]
    x, y = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    turn = np.arctan2(y, x)
    wave = sum(size * np.cos(k * turn + phase) for k, (size, phase) in enumerate(waves, 2))
    window[:] = np.hypot(x / length, y) < radius * (1.0 + wave)
    return inside


@lru_cache(maxsize=512)
def compose(seed: int, split: int, number: int) -> Picture:
    """Scene `number` of a split (0 train, 1 test, 2 validation).

    The last few hundred are kept: training scenes are looked at twice, and a scene takes as long as its superpixels.
    """
    rng = np.random.default_rng([seed, split, number])
    horse = posed_horse(rng)
    down = np.linspace(-1.2, 1.2, HEIGHT, dtype=np.float32)[:, None]
    layers = [ground(rng) for _ in range(3)]
    fields = np.stack([smooth_noise(rng, 45.0) + slope * down for slope in (-1.5, 0.0, 1.5)])
    nearest = fields.argmax(axis=0)[..., None]
    scene = np.take_along_axis(np.stack(layers), nearest[None], axis=0)[0]
    wears = coat(rng)
    for _ in range(int(rng.integers(1, 4))):
        inside = blob(rng)
        scene[inside] = coat(rng)[inside]
    scene[horse] = wears[horse]
    picture = Picture(developed(rng, scene), horse.astype(np.uint8))
    for part in picture:  # shared by all who ask for it
        part.flags.writeable = False
    return picture


def developed(rng: np.random.Generator, scene: np.ndarray) -> np.ndarray:
    """The scene under uneven light, slightly blurred, with noise: uint8 (HEIGHT, WIDTH, 3)."""
    import cv2

    light = rng.uniform(0.75, 1.25) * (1.0 + 0.08 * smooth_noise(rng, 40.0))
    cast = 1.0 + rng.normal(scale=0.03, size=3)
    lit = ((scene * light[..., None]) * cast).astype(np.float32)
    blurred = cv2.GaussianBlur(lit, (0, 0), sigmaX=float(rng.uniform(0.4, 1.1)))
    noisy = blurred + rng.normal(scale=rng.uniform(2.0, 8.0), size=blurred.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
