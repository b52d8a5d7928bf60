"""Advantages of agents against a double loop."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from rllib_configs.learning.agents import advantages_of_agents


@pytest.mark.parametrize("joint", [0.0, 0.4, 1.0])
def test_advantages_compare_with_the_other_episodes_of_the_jobset(joint: float) -> None:
    rng = np.random.default_rng(0)
    jobset, agents, gamma = np.array([0, 0, 1, 1, 1], np.int32), 3, 0.9
    episode = rng.permutation(np.repeat(np.arange(5, dtype=np.int32), 12))
    row = episode * agents + rng.integers(0, agents, 60, dtype=np.int32)
    row[:15] = np.arange(15)  # each agent decides at least once
    episode = row // agents
    time, rewards = rng.integers(0, 8, 60), rng.normal(size=60)
    found = advantages_of_agents(rewards, row, episode, time, jobset, gamma, joint)
    for i in range(60):
        own, ahead = np.zeros(5), np.zeros(5)
        for k in range(60):
            if row[k] % agents == row[i] % agents:
                own[episode[k]] += rewards[k]
            if time[k] >= time[i]:
                ahead[episode[k]] += gamma ** (time[k] - time[i]) * rewards[k]
        others = (jobset == jobset[episode[i]]) & (np.arange(5) != episode[i])
        parts = [each[episode[i]] - each[others].mean() for each in (own, ahead)]
        assert found[i] == pytest.approx((1 - joint) * parts[0] + joint * parts[1], abs=1e-12)


def test_a_jobset_needs_two_episodes() -> None:
    one = np.zeros(1, np.int32)
    with pytest.raises(InputError, match="two of each"):
        advantages_of_agents(np.zeros(1), one, one, one, one, 1.0, 0.5)
