"""Raw input from files, reader by reader, and how predictions for it are shown."""

from __future__ import annotations

import numpy as np
import pytest
from leaves_home import check_same_bits, made

from gapwise.stages.datasets import DataError, FeatureMap, NewInput, Predicted, reader_of
from gapwise.stages.datasets.text.attributes import rows_of_lines
from gapwise.stages.datasets.text.vocabulary import read_vocabulary
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


# -- through the stored feature map: the bits of a test split, without raw data

TRAIN = "The DT B\ncat NN I\nsat VB V\n\nthe DT B\nCat NN I\nran VB V\n\ncats NNS B\n"
TEST = "THE DT B\nÉlan NN I\n\n_B-1 DT Q\n\nsat VB V\nthe DT B\ncat NN I\nran VB V\n"
TEMPLATE = (
    "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[-2,0]\nU:%x[-1,0]\nU:%x[1,0]\nU:%x[-2,0]\nU03:%x[2,1]/%x[-3,0]\nB\n"
)
SLASHES = "a/b c P\na b/c P\n\na/b c Q\na b/c Q\n_B-1 x P\n"
LINES = "P\tw=a\tlen:0.5\nQ\tw=b\ta\\:b:2\n\nP\tw=a\tw=a\n"
NEW_LINES = "P\tw=b\tqq:3\tlen:0.25\n\nQ\ta\\:b\nP\n"


def sequences(folder, train, test, template=None, **options):
    """Options of `sequences_csv` for these texts."""
    given = {"file": train, "test_file": test} | ({"template": template} if template else {})
    for name, text in given.items():
        (folder / name).write_text(text)
    return {"name": "sequences_csv", "unseen_labels": "count"} | options | {n: str(folder / n) for n in given}


def rows(text, separator=None, drop=0):
    """A text as lists of rows, without the last `drop` columns."""
    blocks = text.strip("\n").split("\n\n")
    return [[line.split(separator)[: -drop or None] for line in block.split("\n")] for block in blocks]


@pytest.mark.parametrize("min_count", [1, 2])
@pytest.mark.parametrize(("train", "test"), [(TRAIN, TEST), (SLASHES, SLASHES), (SLASHES, TRAIN)])
def test_columns__of_a_template_are_encoded_as_featurized(tmp_path, train, test, min_count):
    feature_map, stored = made(sequences(tmp_path, train, test, TEMPLATE, min_count=min_count), tmp_path)
    for raw in (test, rows(test), rows(test, drop=1)):
        check_same_bits(feature_map.encode(raw), stored)


def test_vocabulary__has_the_names_of_attributes_in_order_of_their_ids(tmp_path):
    template = "U0:%x[-2,0]/%x[1,1]\nB\n"
    train = "a x P\nb y P\nc z P\n\na x P\n\na x Q\n"
    feature_map, _ = made(sequences(tmp_path, train, "a x P\n", template), tmp_path)
    names = [name.split("\t") for name in read_vocabulary(feature_map.shared)]
    assert names[0] == ["U0:%x/%x", " _B-2", " _B+1"]
    assert sorted(name[1:] for name in names[1:]) == [[" _B-1", "z"], [" _B-2", "y"], ["a", " _B+1"]]


@pytest.mark.parametrize("test", [NEW_LINES, LINES])
def test_lines__of_crfsuite_are_encoded_as_featurized(tmp_path, test):
    feature_map, stored = made(sequences(tmp_path, LINES, test), tmp_path)
    for raw in (test, rows(test, "\t"), test.replace("Q\t", "\t")):
        check_same_bits(feature_map.encode(raw), stored)


def test_lines__keep_values_out_of_stores_that_have_none(tmp_path):
    plain = "P\ta\tb\nQ\tb\n"
    feature_map, stored = made(sequences(tmp_path, plain, plain), tmp_path)
    check_same_bits(feature_map.encode(plain), stored)
    assert "values" not in feature_map.encode(plain).arrays
    assert feature_map.encode("\tb:2\n").arrays["values"].tolist() == [2.0, 1.0, 1.0, 1.0]


def test_conll__is_encoded_as_featurized(tmp_path):
    (tmp_path / "train.txt").write_text(TRAIN)
    (tmp_path / "test.txt").write_text(TEST)
    feature_map, stored = made({"name": "conll", "root": str(tmp_path), "min_count": 2}, tmp_path)
    for raw in (TEST, rows(TEST), rows(TEST, drop=1)):
        check_same_bits(feature_map.encode(raw), stored)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("a\nb\n", r"^input: line 1: 1 columns; expected the 2 feature columns"),
        ([[["a", "x"]], [["b", "x"], ["c", "x", "P"]]], r"^input: line 4: 3 columns, but 2 on line 1"),
        ([[["New York\t", "x"]]], r"^input: line 1: .*: expected text without tabs and line breaks"),
        (
            "a\tx y\nb x\n",
            r"^input: line 2: 1 columns, but 2 on line 1; a line has a tab, so only tabs separate columns",
        ),
        ([[["a", "x"]], []], "^input: sequence 1 has no tokens"),
    ],
)
def test_columns__that_cannot_be_encoded_are_named(tmp_path, raw, message):
    feature_map, _ = made(sequences(tmp_path, TRAIN, TRAIN, TEMPLATE), tmp_path)
    with pytest.raises(DataError, match=message):
        feature_map.encode(raw)


def test_reader__without_encoder_is_named():
    with pytest.raises(DataError, match=r"dataset\.name=usps: .*must define encoder\(meta, shared\)"):
        FeatureMap({"dataset": "usps", "structure": "multiclass"}, {})
