"""The tree of 26 nodes over the 14 joints of Leeds Sports Pose (Yang and Ramanan, CVPR 2011; O16 App. I.4).

The neck is the root. Twelve nodes lie on the way between two joints: the middle of every upper arm, forearm, thigh and
shank, and two on either side of the trunk. Types of the relation between the two ends of an arc are clusters of their
displacements.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.datasets import DataError

JOINTS = (
    "right ankle", "right knee", "right hip", "left hip", "left knee", "left ankle", "right wrist", "right elbow",
    "right shoulder", "left shoulder", "left elbow", "left wrist", "neck", "head top",
)  # fmt: skip
"""In the order of the publisher's files."""

_SIDE = (
    ("shoulder", "neck", ("shoulder",)),
    ("upper arm", "shoulder", ("shoulder", "elbow")),
    ("elbow", "upper arm", ("elbow",)),
    ("forearm", "elbow", ("elbow", "wrist")),
    ("wrist", "forearm", ("wrist",)),
    ("chest", "shoulder", ("shoulder", "shoulder", "hip")),
    ("waist", "chest", ("shoulder", "hip", "hip")),
    ("hip", "waist", ("hip",)),
    ("thigh", "hip", ("hip", "knee")),
    ("knee", "thigh", ("knee",)),
    ("shank", "knee", ("knee", "ankle")),
    ("ankle", "shank", ("ankle",)),
)
"""Node, parent, and the joints whose mean it is, of either side."""

_TABLE = [("neck", "", ("neck",)), ("head top", "neck", ("head top",))] + [
    (f"{side} {name}", "neck" if parent == "neck" else f"{side} {parent}", tuple(f"{side} {joint}" for joint in joints))
    for side in ("right", "left")
    for name, parent, joints in _SIDE
]
NODES = tuple(name for name, _, _ in _TABLE)
"""26, parents first."""

PARENT = np.array([NODES.index(parent) if parent else -1 for _, parent, _ in _TABLE])
"""int64 (26,)"""

JOINT_NODES = np.array([NODES.index(name) for name in JOINTS])
"""int64 (14,): the node of every joint."""

MIRRORED_JOINTS = np.array(
    [
        JOINTS.index({"right": "left", "left": "right"}.get(side := name.split()[0], side) + name[len(side) :])
        for name in JOINTS
    ]
)
"""int64 (14,): the joint that each joint becomes in the mirror image."""

LIMBS = np.array(
    [
        (JOINTS.index(f"{side} {a}"), JOINTS.index(f"{side} {b}"))
        for a, b in (("shoulder", "elbow"), ("elbow", "wrist"), ("hip", "knee"), ("knee", "ankle"))
        for side in ("right", "left")
    ]
    + [(JOINTS.index("neck"), JOINTS.index("head top"))]
)
"""int64 (9, 2): pairs of joints; PCP also counts the trunk, from the neck to the middle of the hips."""


def nodes_of(joints: np.ndarray) -> np.ndarray:
    """(..., 26, 2): positions of all nodes, from the positions of the joints, (..., 14, 2)."""
    joints = np.asarray(joints, float)
    rows = [joints[..., [JOINTS.index(name) for name in names], :].mean(axis=-2) for _, _, names in _TABLE]
    return np.stack(rows, axis=-2)


def trunk_length(joints: np.ndarray) -> np.ndarray:
    """(...,): mean distance of a shoulder from the hip of the other side; joints (..., 14, 2)."""
    pairs = (("right shoulder", "left hip"), ("left shoulder", "right hip"))
    ends = [[joints[..., JOINTS.index(name), :] for name in pair] for pair in pairs]
    return np.asarray(np.mean([np.linalg.norm(a - b, axis=-1) for a, b in ends], axis=0))


def check_images(images: int, types: int, where: str) -> None:
    """DataError, which begins with `where`, unless there are as many training images as types."""
    if images < types:
        raise DataError(
            f"{where}: {images} training images are too few for dataset.types={types}, which divides them into {types} "
            f"clusters for each relation; give {types} images or more, or dataset.types={images} or less"
        )


def clusters_of(nodes: np.ndarray, parent: np.ndarray, count: int, seed: int) -> np.ndarray:
    """float64 (A, 2, count, 2): usual displacements x, y of the child from the parent, and of the parent from the child.

    nodes : (images, V, 2), x and y of every node in the training images, in cells.
    """
    from sklearn.cluster import KMeans

    displacement = nodes[:, 1:] - nodes[:, parent[1:]]
    anchors = np.empty((displacement.shape[1], count, 2))
    for arc, points in enumerate(displacement.swapaxes(0, 1)):
        clusters = min(count, len(np.unique(points, axis=0)))  # where there are fewer, the last is repeated
        centres = KMeans(clusters, n_init=4, random_state=seed).fit(points).cluster_centers_
        centres = centres[
            np.lexsort((centres[:, 1], centres[:, 0]))
        ]  # a fixed order, whatever the clustering calls them
        anchors[arc] = centres[np.minimum(np.arange(count), clusters - 1)]
    return np.stack([anchors, -anchors], axis=1)


def types_of(nodes: np.ndarray, parent: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """int64 (images, A): the type of every arc whose usual displacement is nearest to that of the nodes (images, V, 2)."""
    displacement = nodes[:, 1:] - nodes[:, parent[1:]]
    distance = np.linalg.norm(displacement[:, :, None] - anchors[:, 0], axis=-1)
    return np.asarray(distance.argmin(axis=-1))
