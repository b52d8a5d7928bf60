"""Returns and baselines against the paper's pseudo-code, written out with padded tables."""

import numpy as np
import pytest

from rllib_configs.learning.advantages import returns_to_go, subtract_decision_baseline


def test_returns_of_a_hand_worked_pair_of_episodes() -> None:
    # Rows in order of decisions: episode 0 has three decisions, episode 1 has two.
    rewards = np.array([-1.0, -2.0, 0.0, -4.0, -8.0])
    episode = np.array([0, 1, 0, 1, 0], np.int32)
    assert returns_to_go(rewards, episode, 2, 1.0).tolist() == [-9, -6, -8, -4, -8]
    assert returns_to_go(rewards, episode, 2, 0.5).tolist() == [-3, -4, -4, -4, -8]


def test_an_ended_episode_counts_as_zero_in_the_baseline() -> None:
    returns = np.array([-9.0, -6.0, -8.0, -4.0, -8.0])
    episode = np.array([0, 1, 0, 1, 0], np.int32)
    decision = np.array([0, 0, 1, 1, 2], np.int32)
    advantages = subtract_decision_baseline(returns, episode, decision, np.zeros(2, np.int32))
    assert advantages.tolist() == [-1.5, 1.5, -2.0, 2.0, -4.0]


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_advantages_equal_the_pseudo_code_of_figure_3(gamma: float) -> None:
    rng = np.random.default_rng(3)
    num_jobsets, repeats = 3, 4
    lengths = rng.integers(1, 9, num_jobsets * repeats)
    jobset = np.repeat(np.arange(num_jobsets, dtype=np.int32), repeats)
    decision, episode = (
        index.astype(np.int32) for index in np.nonzero(np.arange(lengths.max())[:, None] < lengths)
    )
    rewards = rng.normal(size=episode.size)

    padded = np.zeros((lengths.size, lengths.max()))
    for row, reward in enumerate(rewards):
        for earlier in range(decision[row] + 1):
            discount = gamma ** (decision[row] - earlier)
            padded[episode[row], earlier] += discount * reward
    baseline = padded.reshape(num_jobsets, repeats, -1).mean(axis=1)
    expected = padded[episode, decision] - baseline[jobset[episode], decision]

    returns = returns_to_go(rewards, episode, lengths.size, gamma)
    found = subtract_decision_baseline(returns, episode, decision, jobset)
    assert np.allclose(found, expected, rtol=0, atol=1e-12)
