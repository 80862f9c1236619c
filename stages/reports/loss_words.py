"""The task's loss in words, so that it is not taken for another measure beside it, and what labels everything alike."""

from __future__ import annotations

from gapwise.records import Facts
from gapwise.stages.problems.losses import BALANCED, PER_IMAGE, PER_PIXEL, PER_SEQUENCE, PER_TOKEN

BALANCED_PICTURE = (
    "the share of each class's pixels in the picture that is labelled wrongly, "
    "averaged over the classes that occur there"
)
SHARE_OF_PICTURE = "the share of the picture's pixels that is labelled wrongly"
PIXELS = (
    "the number of wrong pixels in the picture, divided by the mean number of labelled pixels of a training picture"
)
LOSSES = {
    ("chain", PER_SEQUENCE): "the share of wrong labels in the sequence",
    (
        "chain",
        PER_TOKEN,
    ): "the number of wrong labels in the sequence, divided by the mean length of a training sequence",
    ("segmentation", BALANCED): BALANCED_PICTURE,
    ("segmentation", PER_IMAGE): SHARE_OF_PICTURE,
    ("potts", BALANCED): BALANCED_PICTURE,
    ("potts", PER_IMAGE): SHARE_OF_PICTURE,
    ("segmentation", PER_PIXEL): PIXELS,
    ("potts", PER_PIXEL): PIXELS,
    ("multiclass", ""): "1 for a wrong class, 0 for the right one",
    ("matching", ""): "the cost of missed and of wrong links between the two sentences",
    ("tree", ""): "the squared distance of each part from its true place, at most 1, averaged over the parts",
    ("ranking", ""): "how much worse the ranking is than the ideal one, from 0 to 1",
}
"""Loss of one example by structure and by the name that `meta["loss"]` has."""
USUAL = {"chain": PER_SEQUENCE, "segmentation": BALANCED, "potts": PER_IMAGE}
"""The loss of a structure where nothing else is named."""
COSTS = ("cost", "balanced", "block_weight")
"""Names of arrays and facts that give errors different costs."""


def loss_in_words(structure: str, meta: Facts, weighted: bool = False) -> str:
    """What the loss of one example is, as the end of a sentence; `weighted`: whether errors have costs of their own."""
    name = meta.get("loss") or USUAL.get(structure, "")
    words = LOSSES.get((structure, str(name)), "what the oracle defines as the loss of a labelling")
    return f"{words}, each error weighted by its own cost" if weighted else words


def baseline(measured: Facts) -> tuple[str, float] | None:
    """What a model that has learnt nothing answers, in words, and its mean test loss; None where that is not known."""
    answer, loss = "the first label everywhere", measured.get("all_zero_test_loss")
    if "test_foreground_iou" in measured:
        answer = "all background"
    elif "commonest_label" in measured:
        answer, loss = f"{measured['commonest_label']} everywhere", measured.get("commonest_test_loss")
    if not isinstance(loss, int | float) or isinstance(loss, bool):
        return None
    return f"baseline ({answer})", float(loss)
