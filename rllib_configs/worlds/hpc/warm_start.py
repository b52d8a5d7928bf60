"""A set scorer that begins as a linear scorer of the HPC world, so that gradients need not find it.

Most of what a linear scorer sees is a feature of the set scorer in other units. Weights of jobs go
into its skip connection. Void stands below whatever the mode of the scorer lets start.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.scorer import JOB_FEATURES
from rllib_configs.networks.registry import Weights
from rllib_configs.networks.set_scorer.kernels import SKIP_GAIN
from rllib_configs.worlds.hpc.scorer import parts_of

if TYPE_CHECKING:
    from rllib_configs.config.schema import ExperimentConfig

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

SHARPNESS = 0.3
"""Logits are minus the scores times this: what is likeliest stays, and the rest is still tried. A
search makes scores so large that next to nothing would be left to chance."""

_BARRED = 30.0
"""By how much the logit of void is below those of jobs, and below it those of jobs that would delay
the oldest one, as with EASY; the logits of jobs lie within about 10 of their mean."""


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
        experiment: config of the set scorer, with a skip connection.
        own: weights of the set scorer by name; those that have no part in it stay.

    Raises:
        InputError: if the scorer is bilinear or strict, or the set scorer has no room.
    """
    training = experiment.training
    if source.training.bilinear or source.training.mode == "strict":
        raise InputError(
            "a set_scorer can start from a linear hpc_scorer of the mode easy or skip, but "
            f"{source.name} is none"
        )
    if not training.skip_connection:
        raise InputError(
            "a set_scorer that starts from an hpc_scorer needs its skip connection; set "
            "training.skip_connection=true"
        )
    world = experiment.task.world
    if not isinstance(world, HPC):
        raise InputError(
            f"an hpc_scorer scores jobs of the world hpc alone, but the world is {world.kind}; "
            f"leave out training.start"
        )
    of_item, _ = world.feature_names
    job = SHARPNESS * parts_of(source, weights)[0].astype(np.float64)
    skip = np.zeros(own["network.skip"].size)
    for name, weight in zip(JOB_FEATURES, job, strict=True):
        if name in _JOB:
            feature, factor = _JOB[name]
            skip[of_item.index(feature)] += factor * weight
    # ln(processors / N) / 4, of which the set scorer sees ln(processors) / ln(N).
    quarter = float(job[JOB_FEATURES.index("log_share")]) * math.log(max(world.processors, 2)) / 4
    skip[of_item.index("log_size")] += quarter
    void = -quarter - _BARRED
    if source.training.mode == "easy":
        skip[of_item.index("backfills")] -= 2 * _BARRED
        void += 2 * _BARRED
    # Items score by the skip connection alone, and void is a constant.
    made = {name: np.array(value, np.float32) for name, value in own.items()}
    made["network.skip"] = (-skip / float(SKIP_GAIN)).astype(np.float32)
    for name in ("score", "void"):
        made[f"network.{name}.weight"][:] = 0.0
        made[f"network.{name}.bias"][:] = 0.0
    made["network.void.bias"][:] = void
    return made
