"""A set scorer that begins as a linear scorer of the HPC world, so that gradients need not find it.

Most of what a linear scorer sees is a feature of the set scorer in other units. Weights of jobs go
into its skip connection. What the scorer sees of machine and queue moves all scores alike, which is
to say the score of waiting: two units of the context, one for each sign, carry it to void.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.scorer import JOB_FEATURES, STATE_FEATURES
from rllib_configs.networks.registry import Weights
from rllib_configs.networks.set_scorer.kernels import SKIP_GAIN
from rllib_configs.worlds.hpc.scorer import HOLDING, parts_of

if TYPE_CHECKING:
    from rllib_configs.schema import ExperimentConfig

_JOB = {
    "log_estimate": ("log_estimate", 3.0),
    "log_size": ("log_size", 1.0),
    "relative_estimate": ("relative_estimate", 4.0),
    "stretch": ("stretch", 2.5),
    "share": ("size", 1.0),
    "of_free": ("of_free", 1.0),
    "fits": ("fits", 1.0),
    "relative_area": ("relative_area", 4.0),
    "log_gaps": ("log_gaps", 3.0),
}
"""Features of a job: that of the set scorer, and how many times it the scorer's is."""

_STATE = {
    "free": ("free_processors", 1.0),
    "waiting": ("waiting", 2.5),
    "queued_work": ("queued_work", 1.5),
    "next_end": ("next_end", 1.5),
    "queue_log": ("queue_log", 3.0),
    "running_work": ("running_work", 1.5),
    "running": ("running", 2.5),
    "running_log": ("running_log", 3.0),
    "recent_load": ("recent_load", 2.0),
    "recent_deviation": ("recent_deviation", 2.0),
}
"""Features of the state, likewise."""

SHARPNESS = 0.3
"""Logits are minus the scores times this: what is likeliest stays, and the rest is still tried. A
search makes scores so large that next to nothing would be left to chance."""

_BARRED = 20.0
"""Logit that a job loses which would delay the oldest one, as with EASY."""


def as_set_scorer(
    source: "ExperimentConfig", weights: Weights, experiment: "ExperimentConfig", own: Weights
) -> dict[str, NDArray[np.float32]]:
    """The weights of a set scorer that decides as a linear scorer does.

    On the machine of the experiment logits are minus the scores times `SHARPNESS`, but for what the
    set scorer sees otherwise: standard deviations below 0.5 and features more than four of them
    from the mean.
    On a machine of another size the share of the processors counts a little more or less.

    Args:
        source: config of the scorer.
        weights: of the scorer.
        experiment: config of the set scorer, with a skip connection and two hidden units or more.
        own: weights of the set scorer by name; those that have no part in it stay.

    Raises:
        InputError: if the scorer is bilinear or holds nothing back, or the set scorer has no room.
    """
    training = experiment.training
    if source.training.bilinear or source.training.mode not in HOLDING:
        raise InputError(
            "a set_scorer can start from a linear hpc_scorer that may delay jobs (mode "
            f"{' or '.join(HOLDING)}), but {source.name} is none"
        )
    if not training.skip_connection or training.hidden < 2:
        raise InputError(
            "a set_scorer that starts from an hpc_scorer needs its skip connection and two "
            "hidden units; set training.skip_connection=true and training.hidden to 2 or "
            "more"
        )
    world = experiment.task.world
    if not isinstance(world, HPC):
        raise InputError(
            f"an hpc_scorer scores jobs of the world hpc alone, but the world is {world.kind}; "
            f"leave out training.start"
        )
    of_item, of_context = world.feature_names
    job, state = (SHARPNESS * part.astype(np.float64) for part in parts_of(source, weights))
    skip = np.zeros(len(of_item))
    for name, weight in zip(JOB_FEATURES, job, strict=True):
        if name in _JOB:
            feature, factor = _JOB[name]
            skip[of_item.index(feature)] += factor * weight
    # ln(processors / N) / 4, of which the set scorer sees ln(processors) / ln(N).
    quarter = float(job[JOB_FEATURES.index("log_share")]) * math.log(max(world.processors, 2)) / 4
    skip[of_item.index("log_size")] += quarter
    constant = float(state[-1]) - quarter
    if source.training.mode == "gated_easy":
        skip[of_item.index("backfills")] -= _BARRED
        constant += _BARRED
    moves = np.zeros(own["network.context.weight"].shape[1])
    for name, weight in zip(STATE_FEATURES, state[:-1], strict=True):
        feature, factor = _STATE[name]
        moves[of_context.index(feature)] += factor * weight
    return _filled(own, -skip / float(SKIP_GAIN), moves, constant)


def _filled(
    own: Weights, skip: NDArray[np.float64], moves: NDArray[np.float64], constant: float
) -> dict[str, NDArray[np.float32]]:
    """Weights whose items score by the skip connection alone, and void by the context alone.

    Args:
        own: see `as_set_scorer`.
        skip: of the skip connection, ``(num_item_features,)``.
        moves: of the context, in the score of void, ``(num_context_features,)``.
        constant: of void.
    """
    made = {name: np.array(value, np.float32) for name, value in own.items()}
    made["network.skip"] = skip.astype(np.float32)
    for sign, unit in ((1.0, 0), (-1.0, 1)):
        made["network.context.weight"][unit] = sign * moves
        made["network.context.bias"][unit] = sign * constant
        made["network.pooled.weight"][unit] = 0.0
        made["network.pooled.weight"][unit, unit] = 1.0  # inputs: the context, then the sum
        made["network.pooled.bias"][unit] = 0.0
    for name in ("score", "void"):
        made[f"network.{name}.weight"][:] = 0.0
        made[f"network.{name}.bias"][:] = 0.0
    made["network.void.weight"][0, :2] = (1.0, -1.0)
    return made
