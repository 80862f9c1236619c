"""Types of relations: clusters of the displacements between the two ends of an arc (Yang and Ramanan, CVPR 2011)."""

from __future__ import annotations

import numpy as np

from gapwise.stages.datasets import DataError


def check_images(images: int, types: int, where: str) -> None:
    """DataError, which begins with `where`, unless there are as many training images as types."""
    if images < types:
        raise DataError(
            f"{where}: {images} training images are too few for dataset.types={types}, which divides them into {types} "
            f"clusters for each relation; give {types} images or more, or dataset.types={images} or less"
        )


def cluster(nodes: np.ndarray, parent: np.ndarray, count: int, seed: int) -> np.ndarray:
    """float64 (A, 2, count, 2): usual displacements x, y of the child from the parent, and of the parent from the child.

    nodes : (images, V, 2), x and y of every node in the training images, in cells.
    """
    from sklearn.cluster import KMeans

    displacement = nodes[:, 1:] - nodes[:, parent[1:]]
    anchors = np.empty((displacement.shape[1], count, 2))
    for arc, points in enumerate(displacement.swapaxes(0, 1)):
        clusters = min(
            count, len(np.unique(points, axis=0))
        )  # where there are fewer displacements, the last is repeated
        centres = KMeans(clusters, n_init=4, random_state=seed).fit(points).cluster_centers_
        centres = centres[
            np.lexsort((centres[:, 1], centres[:, 0]))
        ]  # a fixed order, whatever the clustering calls them
        anchors[arc] = centres[np.minimum(np.arange(count), clusters - 1)]
    return np.stack([anchors, -anchors], axis=1)


def nearest(nodes: np.ndarray, parent: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """int64 (images, A): the type of every arc whose usual displacement is nearest to that of the nodes (images, V, 2)."""
    displacement = nodes[:, 1:] - nodes[:, parent[1:]]
    distance = np.linalg.norm(displacement[:, :, None] - anchors[:, 0], axis=-1)
    return np.asarray(distance.argmin(axis=-1))
