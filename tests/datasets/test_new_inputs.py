"""Raw input from files, reader by reader, and how predictions for it are shown."""

from __future__ import annotations

import numpy as np
import pytest

from gapwise.stages.datasets import DataError, NewInput, Predicted, reader_of
from gapwise.stages.datasets.text.attributes import rows_of_lines
from gapwise.stages.datasets.vision.reader import Pictures


def predicted(labels, sizes, names=(), **arrays):
    return Predicted(np.array(labels, np.uint8), np.cumsum([0, *sizes]), list(names), arrays)


def test_benchmarks__have_no_new_input_and_show_blocks_truth_and_predictions():
    with pytest.raises(DataError, match=r"dataset\.name=ocr: this reader takes no new input from files"):
        reader_of("ocr").read_new(["letter.data"], {})
    new = reader_of("ocr").stored_input({"labels": np.array([0, 1, 2, 3, 4], np.uint8)}, {})
    labels = predicted([0, 1, 25, 25, 25], [2, 3], [chr(97 + k) for k in range(26)])
    assert reader_of("ocr").show(new, labels).text == "block,truth,predicted\n0,a b,a b\n1,c d e,z z z\n"
    assert reader_of("usps").show(NewInput(None), predicted([7, 1], [1, 1])).text == "block,predicted\n0,7\n1,1\n"


def picture(file, height=40, width=60):
    from PIL import Image

    rgb = np.random.default_rng(0).integers(256, size=(height, width, 3), dtype=np.uint8)
    Image.fromarray(rgb).save(file)
    return rgb


@pytest.mark.parametrize("name", ["horses_sample", "weizmann", "msrc"])
def test_pictures__are_read_from_files_and_folders(tmp_path, name):
    (tmp_path / "folder").mkdir()
    for file in ("b.png", "a.JPG", "notes.txt"):
        (tmp_path / "folder" / file).write_bytes(b"") if file == "notes.txt" else picture(tmp_path / "folder" / file)
    rgb = picture(tmp_path / "c.png")
    new = reader_of(name).read_new([str(tmp_path / "folder"), str(tmp_path / "c.png")], {})
    assert (new.source.names, new.several) == (("a", "b", "c"), True)
    assert np.array_equal(new.source.rgb[2], rgb)
    assert new.raw[2].shape == ((107, 160, 3) if name == "weizmann" else rgb.shape)


def test_masks__have_the_size_of_the_file_and_names_of_classes():
    import io

    from PIL import Image

    rgb = np.zeros((4, 6, 3), np.uint8)
    labels = predicted([2, 1], [2], ["sky", "tree", "road"], superpixel_map=[0, 1, 1, 0, 1, 1],
                      superpixel_map_ptr=[0, 6], hw=[[2, 3]], hw_ptr=[0, 1])  # fmt: skip
    files = dict(Pictures(("x",), (rgb,), (0,)).files(labels))
    assert files["labels.csv"].decode().splitlines()[3].startswith("2,road,")
    with Image.open(io.BytesIO(files["x.png"])) as mask:
        assert np.asarray(mask).tolist() == [[2, 2, 1, 1, 1, 1]] * 4
    with Image.open(io.BytesIO(files["x-overlay.png"])) as overlay:
        assert overlay.size == (6, 4)


def test_lines__of_crfsuite_keep_their_form_and_errors_name_the_file_of_the_token(tmp_path):
    meta = {"dataset": "sequences_csv", "text": {"templates": None}}
    (tmp_path / "a.txt").write_text("P\tw=a\tlen:0.5\n\tw=b\n\nQ\tw=c\n")
    (tmp_path / "b.txt").write_text("P\tw=a\n\nQ\tlen:x\n")
    new = reader_of("sequences_csv").read_new([str(tmp_path / "a.txt")], meta)
    shown = reader_of("sequences_csv").show(new, predicted([1, 0, 0], [2, 1], ["P", "Q"]))
    assert (shown.text, shown.suffix) == ("P\tw=a\tlen:0.5\tQ\n\tw=b\tP\n\nQ\tw=c\tP\n", ".txt")
    both = reader_of("sequences_csv").read_new([str(tmp_path / name) for name in ("a.txt", "b.txt")], meta).raw
    assert both.start.tolist() == [0, 2, 3, 4, 5]
    assert [both.where(token) for token in (2, 4)] == [f"{tmp_path}/a.txt: line 4", f"{tmp_path}/b.txt: line 3"]
    with pytest.raises(DataError, match=r"b\.txt: line 3: 'len:x': expected a finite number"):
        rows_of_lines(both, lambda name: -1)


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
    new = reader_of("multiclass_arrays").read_new([str(file), str(file)], meta)
    raw = new.raw.toarray() if sparse.issparse(new.raw) else new.raw
    assert np.array_equal(raw, np.concatenate([x, x]))
    shown = (
        reader_of("multiclass_arrays").show(new, predicted([0, 1, 1, 1, 0, 0], [1] * 6, ("3", "7"))).text.splitlines()
    )
    if ending in ("npz", "csv", "svmlight"):
        assert shown[:3] == ["example,label,predicted", "0,3,3", "1,7,7"]
    else:
        assert shown[:3] == ["example,predicted", "0,3", "1,7"]
