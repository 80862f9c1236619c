"""The tree of 26 nodes over the 14 joints of Leeds Sports Pose (Yang and Ramanan, CVPR 2011; O16 App. I.4).

The neck is the root. Twelve nodes lie on the way between two joints: the middle of every upper arm, forearm, thigh and
shank, and two on either side of the trunk.
"""

from __future__ import annotations

import numpy as np

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
