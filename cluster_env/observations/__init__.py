"""Deterministic functions from codes to what a policy looks at."""

from cluster_env.observations.compact import compact, compact_size
from cluster_env.observations.image import ImageLayout, image
from cluster_env.observations.lookups import Block, LookupLayout
from cluster_env.observations.masks import placeable_mask, start_now_mask
from cluster_env.observations.observation import MASKS, OBSERVATIONS, Observation
from cluster_env.observations.slots import (
    context_feature_names,
    slot_feature_names,
    slot_features,
)

__all__ = [
    "MASKS",
    "OBSERVATIONS",
    "Block",
    "ImageLayout",
    "LookupLayout",
    "Observation",
    "compact",
    "compact_size",
    "context_feature_names",
    "image",
    "placeable_mask",
    "slot_feature_names",
    "slot_features",
    "start_now_mask",
]
