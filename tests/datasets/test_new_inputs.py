"""Raw input from files, reader by reader, and how predictions for it are shown."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.inputs import Predicted, read_new, show
from gapwise.stages.datasets.text.crfsuite import listed
from gapwise.stages.datasets.vision import masks

LETTER = "{number}\t{letter}\t{next}\t{word}\t{position}\t0\t{pixels}\n"


def predicted(labels, sizes, names=(), **arrays):
    return Predicted(np.array(labels, np.uint8), np.cumsum([0, *sizes]), list(names), arrays)


def test_usps__reads_every_form_of_images(tmp_path):
    rng = np.random.default_rng(0)
    grey = rng.integers(-1000, 1001, size=(3, 256)) / 1000.0
    np.save(tmp_path / "a.npy", grey.reshape(3, 16, 16))
    np.savez(tmp_path / "b.npz", images=(1000 * grey).round().astype(np.int16))
    np.savetxt(tmp_path / "c.csv", grey, delimiter=",", fmt="%.17g")
    rows = "".join(f"{k}.0 " + " ".join(f"{value:.17g}" for value in row) + "\n" for k, row in enumerate(grey))
    (tmp_path / "zip.test.gz").write_bytes(gzip.compress(rows.encode()))
    for name in ("a.npy", "b.npz", "c.csv", "zip.test.gz"):
        new = read_new({"dataset": "usps"}, [str(tmp_path / name)])
        assert np.allclose(new.raw, grey, rtol=0.0, atol=1e-15), name
        assert (new.source is None) == (name != "zip.test.gz")
    assert (
        show({"dataset": "usps"}, new, predicted([7, 1, 2], [1] * 3)).text
        == "image,digit,predicted\n0,0,7\n1,1,1\n2,2,2\n"
    )
    both = read_new({"dataset": "usps"}, [str(tmp_path / "a.npy"), str(tmp_path / "zip.test.gz")])
    assert show({"dataset": "usps"}, both, predicted([7] * 6, [1] * 6)).text.startswith("image,predicted\n0,7\n")


def test_ocr__reads_arrays_and_the_publishers_lines_and_spells_words(tmp_path):
    rng = np.random.default_rng(0)
    pixels = (rng.random((5, 128)) < 0.3).astype(np.uint8)
    np.savez(tmp_path / "new.npz", pixels=pixels.reshape(5, 16, 8), word_start=[0, 2, 5])
    lines = [
        LETTER.format(number=k, letter="abcde"[k], next=-1, word=int(k > 1), position=(k if k < 2 else k - 2) + 1,
                      pixels="\t".join(map(str, row)))
        for k, row in enumerate(pixels)
    ]  # fmt: skip
    (tmp_path / "letter.data").write_text("".join(lines))
    labels = predicted([0, 1, 25, 25, 25], [2, 3], [chr(97 + k) for k in range(26)])
    for name, text in (("new.npz", "number,predicted\n0,ab\n1,zzz\n"),
                       ("letter.data", "number,word,predicted\n0,ab,ab\n1,cde,zzz\n")):  # fmt: skip
        new = read_new({"dataset": "ocr"}, [str(tmp_path / name)])
        assert [word.tolist() for word in new.raw] == [pixels[:2].tolist(), pixels[2:].tolist()]
        assert show({"dataset": "ocr"}, new, labels).text == text
    for arrays, message in (
        ({"pixels": pixels}, "expected arrays pixels"),
        ({"pixels": pixels[:, :9], "word_start": [0, 5]}, r"pixels has shape \(5, 9\)"),
        ({"pixels": pixels, "word_start": [0, 2, 2, 5]}, "word_start must rise from 0 to 5"),
        ({"pixels": 2 * pixels, "word_start": [0, 5]}, "neither 0 nor 1"),
    ):
        np.savez(tmp_path / "bad.npz", **arrays)
        with pytest.raises(DataError, match=message):
            read_new({"dataset": "ocr"}, [str(tmp_path / "bad.npz")])


def picture(file, height=40, width=60):
    from PIL import Image

    rgb = np.random.default_rng(0).integers(256, size=(height, width, 3), dtype=np.uint8)
    Image.fromarray(rgb).save(file)
    return rgb


@pytest.mark.parametrize("name", ["horses_sample", "weizmann", "stanford", "msrc"])
def test_pictures__are_read_from_files_and_folders(tmp_path, name):
    (tmp_path / "folder").mkdir()
    for file in ("b.png", "a.JPG", "notes.txt"):
        (tmp_path / "folder" / file).write_bytes(b"") if file == "notes.txt" else picture(tmp_path / "folder" / file)
    rgb = picture(tmp_path / "c.png")
    new = read_new({"dataset": name}, [str(tmp_path / "folder"), str(tmp_path / "c.png")])
    assert (new.source.names, new.several) == (("a", "b", "c"), True)
    assert np.array_equal(new.source.rgb[2], rgb)
    assert new.raw[2].shape == ((107, 160, 3) if name == "weizmann" else rgb.shape)


def test_masks__have_the_size_of_the_file_and_names_of_classes():
    import io

    from PIL import Image

    rgb = np.zeros((4, 6, 3), np.uint8)
    labels = predicted([2, 1], [2], ["sky", "tree", "road"], superpixel_map=[0, 1, 1, 0, 1, 1],
                      superpixel_map_ptr=[0, 6], hw=[[2, 3]], hw_ptr=[0, 1])  # fmt: skip
    files = dict(masks._shown(masks.Pictures(("x",), (rgb,), (0,)), labels))
    assert files["labels.csv"].decode().splitlines()[3].startswith("2,road,")
    with Image.open(io.BytesIO(files["x.png"])) as mask:
        assert np.asarray(mask).tolist() == [[2, 2, 1, 1, 1, 1]] * 4
    with Image.open(io.BytesIO(files["x-overlay.png"])) as overlay:
        assert overlay.size == (6, 4)


def test_lines__of_crfsuite_keep_their_form_and_errors_name_the_file_of_the_token(tmp_path):
    meta = {"dataset": "sequences_csv", "text": {"templates": None}}
    (tmp_path / "a.txt").write_text("P\tw=a\tlen:0.5\n\tw=b\n\nQ\tw=c\n")
    (tmp_path / "b.txt").write_text("P\tw=a\n\nQ\tlen:x\n")
    new = read_new(meta, [str(tmp_path / "a.txt")])
    shown = show(meta, new, predicted([1, 0, 0], [2, 1], ["P", "Q"]))
    assert (shown.text, shown.suffix) == ("P\tw=a\tlen:0.5\tQ\n\tw=b\tP\n\nQ\tw=c\tP\n", ".txt")
    both = read_new(meta, [str(tmp_path / name) for name in ("a.txt", "b.txt")]).raw
    assert both.start.tolist() == [0, 2, 3, 4, 5]
    assert [both.where(token) for token in (2, 4)] == [f"{tmp_path}/a.txt: line 4", f"{tmp_path}/b.txt: line 3"]
    with pytest.raises(DataError, match=r"b\.txt: line 3: 'len:x': expected a finite number"):
        listed(both, lambda name: -1)


def rows_of_both(tmp_path, ending):
    """Facts of a tiny store, and a new file of that form with three examples of two features."""
    from scipy import sparse

    x = np.array([[0.5, 0.0], [0.0, 2.0], [1.5, -1.0]])
    file = tmp_path / f"new.{ending}"
    if ending == "npy":
        np.save(file, x)
    elif ending == "npz":
        np.savez(file, x=x, y=np.array([3, 7, 7]))
    elif ending == "sparse.npz":
        sparse.save_npz(file, sparse.csr_array(x))
    elif ending == "csv":
        file.write_text(
            "a,b,class\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x.tolist(), (3, 7, 7), strict=True))
        )
    elif ending == "txt":
        np.savetxt(file, x, delimiter=",")
    else:
        file.write_text("3 1:0.5\n7 2:2\n7 1:1.5 2:-1 9:4\n")
    return {"dataset": "multiclass_arrays", "arrays": {"width": 2}, "first_index": 1}, file, x


@pytest.mark.parametrize("ending", ["npy", "npz", "sparse.npz", "csv", "txt", "svmlight"])
def test_multiclass_arrays__reads_every_form_with_and_without_labels(tmp_path, ending):
    from scipy import sparse

    meta, file, x = rows_of_both(tmp_path, ending)
    new = read_new(meta, [str(file), str(file)])
    raw = new.raw.toarray() if sparse.issparse(new.raw) else new.raw
    assert np.array_equal(raw, np.concatenate([x, x]))
    shown = show(meta, new, predicted([0, 1, 1, 1, 0, 0], [1] * 6, ("3", "7"))).text.splitlines()
    if ending in ("npz", "csv", "svmlight"):
        assert shown[:3] == ["example,label,predicted", "0,3,3", "1,7,7"]
    else:
        assert shown[:3] == ["example,predicted", "0,3", "1,7"]
