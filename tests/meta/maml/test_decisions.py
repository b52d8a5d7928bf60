"""What is kept of a stage, and its scale."""

from dataclasses import replace

import numpy as np
import pytest

from meta.maml.decisions import decisions_of
from tests.meta.maml.tiny import tiny_rollouts


def test_only_decisions_with_a_choice_are_kept_and_scaled_by_spread_and_floor() -> None:
    rollouts = tiny_rollouts(0)
    decisions = decisions_of(rollouts, gamma=1.0, floor=0.5)
    keep = rollouts.log_probabilities < 0
    assert 0 < decisions.num_rows < rollouts.num_rows
    assert np.array_equal(decisions.states, rollouts.states[keep])
    assert np.array_equal(decisions.actions, rollouts.actions[keep])

    to_go = np.empty(rollouts.num_rows)  # return from the row's clock on, by hand
    for row in range(rollouts.num_rows):
        later = (rollouts.episode == rollouts.episode[row]) & (rollouts.time >= rollouts.time[row])
        to_go[row] = rollouts.rewards[later].sum()
    expected = []
    for row in np.flatnonzero(keep):
        mine = rollouts.episode[row]
        others = []
        for other in np.flatnonzero(rollouts.jobset == rollouts.jobset[mine]):
            later = (rollouts.episode == other) & (rollouts.time >= rollouts.time[row])
            others.append((other, rollouts.rewards[later].sum()))
        expected.append(to_go[row] - np.mean([value for other, value in others if other != mine]))
    returns = [rollouts.rewards[rollouts.episode == e].sum() for e in range(6)]
    scale = np.std(expected) + 0.5 * abs(np.mean(returns))
    assert np.allclose(decisions.advantages, np.array(expected) / scale, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_advantages_do_not_depend_on_the_unit_of_the_reward(unit: float) -> None:
    rollouts = tiny_rollouts(1)
    before = decisions_of(rollouts, gamma=0.9, floor=0.03).advantages
    rollouts.rewards[:] *= unit
    after = decisions_of(rollouts, gamma=0.9, floor=0.03).advantages
    assert np.abs(before).max() > 0.5
    assert np.allclose(after, before, rtol=1e-4, atol=1e-6)


def test_episodes_that_came_out_alike_teach_nothing() -> None:
    rollouts = tiny_rollouts(2)
    rollouts.rewards[:] = 0.0
    assert np.all(decisions_of(rollouts, gamma=1.0, floor=0.03).advantages == 0)
    rollouts.log_probabilities[:] = 0.0
    assert decisions_of(rollouts, gamma=1.0, floor=0.03).num_rows == 0


def test_decisions_of_a_jobset_are_those_of_its_episodes() -> None:
    whole = decisions_of(tiny_rollouts(0), gamma=1.0, floor=0.03)
    jobsets = np.unique(whole.jobset)
    assert jobsets.size > 1
    parts = [whole.of_jobset(k) for k in jobsets]
    assert sum(part.num_rows for part in parts) == whole.num_rows
    for k, part in zip(jobsets, parts, strict=True):
        assert np.array_equal(part.states, whole.states[whole.jobset == k])
        assert set(part.jobset) == {k}


def test_relative_advantages_count_in_units_of_the_mean_return() -> None:
    rollouts = tiny_rollouts(0)
    plain = decisions_of(rollouts, gamma=1.0, floor=1e9).advantages * 1e9
    relative = decisions_of(rollouts, gamma=1.0, floor=0.03, relative=True).advantages
    assert np.abs(relative).max() > 1e-3
    assert np.allclose(relative, plain, rtol=1e-4)
    ten = decisions_of(
        replace(rollouts, rewards=10 * rollouts.rewards), gamma=1.0, floor=0.0, relative=True
    )
    assert np.allclose(ten.advantages, relative, rtol=1e-5)
