"""Numbers by which a consumer and some nodes are judged, by a central scorer and by agents."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.panda.consumers import ONE_RACK, ONE_REGION

PAIR = (
    *("left", "cores", "waited", "stretched", "one_region", "one_rack", "core_type"),
    *("slow", "excess", "capacity", "share", "nodes", "exposure", "wanted"),
    *("busy", "busy_left", "busy_slow", "busy_excess"),
    *("cores_slow", "left_slow", "cores_excess", "left_excess"),
    *("cores_cores", "left_left", "left_cores", "constant"),
)
"""Names of the features of a pair: a consumer, and nodes that satisfy it.

* ``left``, ``cores``: log2 of the steps at speed 1 that are left to do, less 4, and of the cores
  that are asked for, less 2; ``waited``: log2(1 + steps), less 4;
  ``stretched``: log2(1 + steps waited over ``left``), at most 8; ``one_region``, ``one_rack``,
  ``core_type``: 1 if the consumer wants that.
* ``slow``: log2 of the run time on these nodes over ``left``; ``excess``: log2 of the cores that
  they have over those that are asked for; ``capacity``: log2 of what they could do in the run time
  over the work of the consumer; ``share``: what they can do over what they and all free nodes can;
  ``nodes``: log2 of their number; ``exposure``: their number times the run time, over 100;
  ``wanted``: log2(1 + consumers that wait for which these are nodes of the nearest type), less 2,
  a mean over the nodes.
* ``busy``: log2(1 + consumers that wait), less 3; then products of others, and ``constant``, 1.
"""

START = {"left": -2.0, "excess": -0.5, "slow": -0.3, "constant": 10.0}
"""The shortest first, on nodes that fit, nearly: weights that a search begins with."""


@njit_inlined
def write_pair(
    left: float,
    cores: int,
    waited: int,
    topology: int,
    core_type: bool,
    waiting: int,
    free: float,
    nodes: int,
    have: int,
    work: float,
    steps: int,
    wanted: float,
    out: NDArray[np.floating[Any]],
) -> None:
    """Writes the features of a pair; see `PAIR`.

    Args:
        left: steps at speed 1.
        cores: that are asked for.
        waited: steps.
        topology: see `cluster_env.worlds.panda.consumers`.
        core_type: whether it insists on one.
        waiting: consumers that wait.
        free: cores x speed of all free nodes.
        nodes: that it would have.
        have: cores of these.
        work: cores x speed of these.
        steps: run time on these.
        wanted: consumers that wait for which a node's type is the nearest, a mean over these.
        out: written, ``(len(PAIR),)``.
    """
    size, wide = math.log2(max(left, 1e-3)) - 4.0, math.log2(max(cores, 1)) - 2.0
    slow, excess = math.log2(steps) - size - 4.0, math.log2(have) - wide - 2.0
    busy = math.log2(1.0 + waiting) - 3.0
    out[0], out[1], out[2] = size, wide, math.log2(1.0 + waited) - 4.0
    out[3] = min(math.log2(1.0 + waited / max(left, 1e-3)), 8.0)
    out[4], out[5], out[6] = topology == ONE_REGION, topology == ONE_RACK, core_type
    out[7], out[8] = slow, excess
    out[9] = math.log2(work * steps) - size - wide - 6.0
    out[10], out[11], out[12] = work / (work + free), math.log2(nodes), nodes * steps / 100.0
    out[13] = math.log2(1.0 + wanted) - 2.0
    out[14], out[15], out[16], out[17] = busy, busy * size, busy * slow, busy * excess
    out[18], out[19], out[20], out[21] = wide * slow, size * slow, wide * excess, size * excess
    out[22], out[23], out[24], out[25] = wide * wide, size * size, size * wide, 1.0
