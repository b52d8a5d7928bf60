"""Returns and baselines against the paper's pseudo-code, written out with padded tables."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from rllib_configs.learning.advantages import (
    advantages_by_clock,
    returns_to_go,
    subtract_decision_baseline,
)


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


def sparse_rows(rng: np.random.Generator) -> tuple[NDArray[np.int32], ...]:
    """Two jobsets of three trajectories with events at few times, some of them shared.

    They are decided for side by side, so their rows take turns.
    """
    jobset = np.int32([1, 0, 1, 0, 0, 1])
    rows = [
        (e, t)
        for e in range(6)
        for t in np.sort(rng.choice(12, rng.integers(1, 6), replace=False))
        for _ in range(rng.integers(1, 3))
    ]
    rows.sort(key=lambda row: row[1])
    episode, time = np.array(rows, np.int32).T.copy()
    return episode, time, jobset


class Worked:
    """Sums as the docstring has them, by a search through all rows at every time."""

    def __init__(self, seed: int, gamma: float, trace: float) -> None:
        rng = np.random.default_rng(seed)
        self.episode, self.time, self.jobset = sparse_rows(rng)
        self.rewards, self.values = rng.normal(size=(2, self.episode.size))
        self.gamma, self.trace = gamma, trace

    def events(self, e: int) -> list[int]:
        return sorted(set(self.time[self.episode == e].tolist()))

    def value(self, e: int, t: int) -> float:
        return float(self.values[(self.episode == e) & (self.time == t)][0])

    def deltas(self, e: int, per_decision: bool) -> Iterator[tuple[int, float]]:
        events = self.events(e)
        for t, following in zip(events, [*events[1:], None], strict=True):
            delta = self.rewards[(self.episode == e) & (self.time == t)].sum() - self.value(e, t)
            if following is not None:
                discount = self.gamma ** (1 if per_decision else following - t)
                delta += discount * self.value(e, following)
            yield t, float(delta)

    def onward(self, e: int, t: int, per_decision: bool) -> float:
        """What a trajectory adds up to from a time on."""
        deltas = [(when, delta) for when, delta in self.deltas(e, per_decision) if when >= t]
        rate = self.gamma * self.trace
        return sum(
            rate ** (k if per_decision else when - t) * delta
            for k, (when, delta) in enumerate(deltas)
        )

    def check(self, per_decision: bool) -> None:
        found, targets = advantages_by_clock(
            self.rewards,
            self.values,
            self.episode,
            self.time,
            self.jobset,
            self.gamma,
            self.trace,
            "decision" if per_decision else "time_unit",
        )
        for row, (e, t) in enumerate(zip(self.episode, self.time, strict=True)):
            others = [o for o in range(6) if o != e and self.jobset[o] == self.jobset[e]]
            own = self.onward(e, t, per_decision)
            baseline = np.mean([self.onward(o, t, per_decision) for o in others])
            first = self.value(e, t)
            assert targets[row] == pytest.approx(own + first, abs=1e-12)
            assert found[row] == pytest.approx(own - baseline + first - self.values[row], abs=1e-12)


@pytest.mark.parametrize("per_decision", [False, True])
@pytest.mark.parametrize(("gamma", "trace"), [(1.0, 1.0), (0.9, 1.0), (0.8, 0.7), (0.5, 0.0)])
def test_advantages_of_sparse_events_are_the_sums_of_the_docstring(
    gamma: float, trace: float, per_decision: bool
) -> None:
    for seed in range(20):
        Worked(seed, gamma, trace).check(per_decision)


def test_the_discount_of_a_time_unit_counts_what_lies_between() -> None:
    """Two trajectories, one of which does nothing: closed forms with dt of 10 and 30."""
    episode = np.int32([0, 0, 0, 1])
    time = np.int64([0, 10, 40, 0])
    rewards = np.array([0.0, 0.0, 8.0, 0.0])
    given = (rewards, np.zeros(4), episode, time, np.zeros(2, np.int32))
    found, targets = advantages_by_clock(*given, 0.99, 1.0)
    assert targets == pytest.approx([8 * 0.99**40, 8 * 0.99**30, 8, 0], rel=1e-13)
    assert found == pytest.approx([*targets[:3], -8 * 0.99**40], rel=1e-13)
    _, targets = advantages_by_clock(*given, 0.99, 0.5)
    assert targets[0] == pytest.approx(8 * (0.99 * 0.5) ** 40, rel=1e-12)
    found, targets = advantages_by_clock(*given, 0.99, 1.0, "decision")
    assert targets == pytest.approx([8 * 0.99**2, 8 * 0.99, 8, 0], rel=1e-13)
    assert found[3] == pytest.approx(-8 * 0.99**2, rel=1e-13)
    # With values, and no trust in later rewards: the error of one event alone.
    values = np.array([1.0, 2.0, 4.0, 0.0])
    found, _ = advantages_by_clock(rewards, values, *given[2:], 0.9, 0.0)
    expected = [0.9**10 * 2 - 1, 0.9**30 * 4 - 2, 8 - 4]
    assert found[:3] == pytest.approx(expected, rel=1e-13)


def test_returns_discounted_by_time() -> None:
    rewards = np.array([-1.0, -2.0, -3.0, -4.0, -8.0])
    episode = np.int32([0, 1, 0, 1, 0])
    time = np.int64([0, 5, 0, 8, 20])
    found = returns_to_go(rewards, episode, 2, 0.9, time, "time_unit")
    last = -8 * 0.9**20
    assert found == pytest.approx([-1 - 3 + last, -2 - 4 * 0.9**3, -3 + last, -4, -8], rel=1e-14)
    every = np.int32([0, 0, 1, 1, 2])
    by_decision = returns_to_go(rewards, episode, 2, 0.9)
    assert returns_to_go(rewards, episode, 2, 0.9, every, "time_unit").tobytes() == (
        by_decision.tobytes()
    )
    with pytest.raises(InputError, match="needs the time of each row"):
        returns_to_go(rewards, episode, 2, 0.9, discount_per="time_unit")
    with pytest.raises(InputError, match="unknown discount_per 'second'"):
        returns_to_go(rewards, episode, 2, 0.9, time, "second")  # type: ignore[arg-type]


def test_an_average_reward_drops_out_of_differential_returns() -> None:
    """What is taken from every trajectory for each unit of time, its baseline gives back."""
    rng = np.random.default_rng(5)
    steps, episodes, average = 30, 6, -7.5
    episode, time = (grid.ravel().astype(np.int32) for grid in np.indices((episodes, steps)))
    rewards = rng.normal(size=episode.size)
    jobset = np.array([0, 0, 0, 1, 1, 1], np.int32)
    values = np.zeros(episode.size)

    def found(given: NDArray[np.float64], trace: float) -> NDArray[np.float64]:
        return advantages_by_clock(given, values, episode, time, jobset, 1.0, trace)[0]

    for trace in (1.0, 0.9):
        differential = found(rewards - average, trace)
        assert np.allclose(differential, found(rewards, trace), rtol=0, atol=1e-9)
    alone = returns_to_go(rewards - average, episode, episodes, 1.0)
    assert not np.allclose(alone, returns_to_go(rewards, episode, episodes, 1.0))


def test_several_deciders_of_one_episode_are_trajectories_of_their_own() -> None:
    """Two episodes of one jobset, two agents in each: four trajectories, each other's baseline."""
    trajectory = np.int32([0, 1, 2, 3, 0, 2])
    time = np.int32([0, 0, 0, 0, 7, 3])
    rewards = np.array([1.0, 2.0, 3.0, 4.0, 10.0, 20.0])
    found, targets = advantages_by_clock(
        rewards, np.zeros(6), trajectory, time, np.zeros(4, np.int32), 1.0, 1.0
    )
    assert targets.tolist() == [11, 2, 23, 4, 10, 20]
    assert found[:4] == pytest.approx([11 - 29 / 3, 2 - 38 / 3, 23 - 17 / 3, 4 - 36 / 3])
    assert found[4:] == pytest.approx([10, 20 - 10 / 3])  # at 7 and at 3


@pytest.mark.parametrize("discount_per", ["time_unit", "decision"])
def test_a_week_in_seconds_takes_no_memory_of_the_clock(discount_per: str) -> None:
    """Arrays of 20 episodes x 600,000 s would hold 96 MB each, 60 episodes three times that.

    The longest here are those of the rows and of one jobset's events, 8 bytes each.
    """
    resource = pytest.importorskip("resource")
    rng = np.random.default_rng(0)
    jobset = np.repeat(np.arange(3, dtype=np.int32), 20)
    events = 2_000
    time = np.sort(rng.integers(0, 600_000, (jobset.size, events)), axis=1).astype(np.int64)
    episode = np.repeat(np.arange(jobset.size, dtype=np.int32), events)
    rewards, values = rng.normal(size=(2, episode.size))
    small = slice(0, 40 * events)  # compiles, and takes what little there is to take
    given = (jobset[:40], 0.9999, 0.95, discount_per)
    advantages_by_clock(rewards[small], values[small], episode[small], time.ravel()[small], *given)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found, _ = advantages_by_clock(
        rewards, values, episode, time.ravel(), jobset, 0.9999, 0.95, discount_per
    )
    assert np.isfinite(found).all()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # KiB
