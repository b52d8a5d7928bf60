"""Decisions in all episodes of a simulator at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def step_all(simulator: Any, actions: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Rewards of a decision in every episode, and which have ended."""
    rewards = np.empty(simulator.num_rows)
    simulator.step(simulator.episode, actions, rewards)
    return rewards, ~simulator.active
