"""Blocks of new pictures of people, from the classifiers of a feature store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from gapwise.stages.datasets import NEW, DataError, MapBlocks, Raw, Sink
from gapwise.stages.datasets.poses import part_maps
from gapwise.stages.datasets.poses.skeleton import NODES
from gapwise.stages.datasets.vision.picture_files import decoded


@dataclass(frozen=True)
class PoseEncoder:
    """Score maps of new pictures, from the classifiers of a feature store."""

    model: part_maps.PartModel
    types: int

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """Pictures, each uint8 (H, W, 3), RGB, or the contents of a picture's file; persons are about 150 pixels long."""
        pictures = [
            decoded(p, f"input: picture {k}") if isinstance(p, bytes) else np.asarray(p) for k, p in enumerate(raw)
        ]
        for k, rgb in enumerate(pictures):
            if (
                rgb.dtype != np.uint8
                or rgb.ndim != 3
                or rgb.shape[2] != 3
                or np.prod(part_maps.grid_of(rgb.shape)) > part_maps.MOST
            ):
                raise DataError(
                    f"input: picture {k} is {rgb.dtype}{rgb.shape}; expected uint8 (H, W, 3), RGB, of at most "
                    f"{part_maps.MOST} cells of {part_maps.CELL} x {part_maps.CELL} pixels"
                )
        maps = partial(part_maps.maps_of, model=self.model, nodes=len(NODES), types=self.types)
        for arrays in map_blocks(maps, pictures):
            labels = np.zeros(len(NODES) + 2 * (len(NODES) - 1), np.int16)
            sink.append(NEW, **arrays, labels=labels, loss_scale=np.ones(1))
