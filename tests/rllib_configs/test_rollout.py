"""Episodes of a world where several agents decide in one, and some arrive later."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import episode_keys, uniforms
from cluster_env.core.spec import WORLDS, WorldSpec
from cluster_env.core.world import Features
from cluster_env.objectives import Objective, get_objective
from rllib_configs.algorithms.batched import episode_sums
from rllib_configs.networks.set_scorer import SetScorer, SetScorerOptions, SetScorerSampler
from rllib_configs.runners.rollout import Rollouts, rollout

AGENTS, LAST = 3, 4


class SeatsSimulator:
    """Agent k of an episode arrives at time k, and all leave at `LAST`; a reward is its action."""

    def load(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        self.jobset = np.repeat(np.arange(len(jobsets), dtype=np.int32), episodes_per_jobset)
        self.num_episodes = self.jobset.size
        self.num_rows = AGENTS * self.num_episodes
        self.episode = np.repeat(np.arange(self.num_episodes, dtype=np.int32), AGENTS)
        self.agent = np.tile(np.arange(AGENTS), self.num_episodes)
        self.time = np.zeros(self.num_rows, np.int32)
        self.truncated = np.zeros(self.num_rows, np.bool_)

    @property
    def active(self) -> NDArray[np.bool_]:
        return (self.agent <= self.time) & (self.time < LAST)

    @property
    def states(self) -> NDArray[np.int32]:
        return np.stack([self.agent, self.time], axis=1).astype(np.int32)

    def step(self, rows: Any, actions: Any, rewards: Any) -> int:
        assert np.array_equal(rows, np.flatnonzero(self.active))
        rewards[: rows.size] = actions
        self.time += 1
        return int(self.active[rows].sum())

    def schedule(self) -> Schedule:
        n = self.num_episodes
        zeros, ones = np.zeros(n, np.int32), np.ones(n, np.int32)
        return Schedule(
            episode=np.arange(n, dtype=np.int32),
            job=zeros,
            arrival=zeros,
            start=zeros,
            finish=2 * ones,
            duration=ones,
            demand=ones[:, None],
            end=LAST * ones,
            window=LAST * ones,
            jobset=self.jobset,
            capacity=np.ones(1, np.int32),
        )


@dataclass(frozen=True)
class Seats:
    kind: ClassVar[str] = "seats"
    state_space = spaces.Box(0, 100, (2,), np.int32)
    num_actions = 3
    feature_names = (("present", "seat", "early"), ("time",))

    def check(self, jobset: JobSet) -> None: ...

    def simulator(self) -> SeatsSimulator:
        return SeatsSimulator()

    def features(self, states: NDArray[np.int32], out: Features | None = None) -> Features:
        n = states.shape[0]
        items = np.zeros((n, 2, 3), np.float32)
        items[:, :, 0] = 1
        items[:, :, 1] = states[:, :1] / AGENTS
        items[:, 1, 2] = 1
        context = (states[:, 1:] / LAST).astype(np.float32)
        return Features(items, context, np.ones((n, 3), np.bool_))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Seats:
    monkeypatch.setitem(WORLDS._things, "seats", WorldSpec(Seats, metrics=("makespan", "slowdown")))
    return Seats()


class Noting:
    """Draws an action, and keeps the number that it was drawn with."""

    def sample(self, states: Any, numbers: NDArray[np.float64]) -> tuple[Any, Any]:
        return (3 * numbers).astype(np.int32), numbers.astype(np.float32)


JOBSETS = [JobSet.of([0], [1], [[1]], LAST)] * 2


def play(world: Seats, seed: int = 0) -> Rollouts:
    keys = episode_keys(seed, 0, count=4)
    return rollout(world, Noting(), JOBSETS, get_objective("slowdown"), 2, keys)


def test_agents_decide_from_their_arrival_to_the_end_of_the_episode(world: Seats) -> None:
    played = play(world)
    assert played.num_episodes == 4
    assert played.num_rows == 4 * (LAST + (LAST - 1) + (LAST - 2))
    assert np.array_equal(played.episode, played.row // AGENTS)
    assert np.array_equal(played.states[:, 0], played.row % AGENTS)
    assert np.array_equal(played.decision, played.time)
    assert (played.time >= played.row % AGENTS).all()
    assert np.array_equal(played.row_jobset, np.repeat([0, 0, 1, 1], AGENTS))
    returns = np.bincount(played.row, played.rewards, played.row_jobset.size)
    assert returns.size == 4 * AGENTS


def test_every_agent_draws_from_a_stream_of_its_own(world: Seats) -> None:
    played = play(world)
    assert np.unique(played.log_probabilities).size == played.num_rows
    first = uniforms(episode_keys(0, 0, count=4), 0).astype(np.float32)
    alone = (played.row % AGENTS == 0) & (played.decision == 0)
    assert np.array_equal(played.log_probabilities[alone], first)


def test_the_outcome_is_that_of_episodes_and_adds_up(world: Seats) -> None:
    one = play(world)
    assert one.outcome["weight"].tolist() == [LAST] * 4
    assert one.outcome["headline_count"].tolist() == [1] * 4
    assert one.headline == pytest.approx(2.0)  # of the makespan
    sums = episode_sums(one)
    returns = np.bincount(one.row, one.rewards)
    assert (sums["episodes"], sums["jobsets"], sums["deciders"]) == (4, 2, 4 * AGENTS)
    assert sums["returns"] == returns.sum()
    assert sums["best"] == sum(returns[one.row_jobset == k].max() for k in range(2))
    assert (sums["headline"], sums["headline_count"]) == (8.0, 4)


def test_a_set_scorer_acts_in_any_world_by_its_features(world: Seats) -> None:
    network = SetScorer(world.feature_names, SetScorerOptions(4), 0)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    sampler = SetScorerSampler(network, weights, world)
    keys = episode_keys(0, 0, count=4)
    played = rollout(world, sampler, JOBSETS, get_objective("slowdown"), 2, keys)
    logits = network(world.features(played.states)).detach().numpy()
    assert np.array_equal(sampler.logits(played.states), logits)
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    chosen = expected[np.arange(played.num_rows), played.actions]
    assert np.allclose(played.log_probabilities, chosen, rtol=0, atol=1e-6)
