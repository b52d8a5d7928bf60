"""Episodes of one unit, from first to last decision, as columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import uniforms
from cluster_env.objectives import Objective
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator


class SamplingPolicy(Protocol):
    """Chooses actions and says how likely they were."""

    def sample(
        self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Returns actions, int32 ``(n,)``, and their log-probabilities, float32 ``(n,)``."""


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What happened in the episodes of a unit; no Python object per step.

    Rows are decisions, first those of all episodes' first decision, then of the second, and so
    on: within an episode they are in order of time.

    Attributes:
        states: uint8 ``(rows, state_size)``, the state of each decision.
        actions: int32 ``(rows,)``.
        log_probabilities: float32 ``(rows,)``, of the actions under the policy that chose them.
        rewards: float64 ``(rows,)``.
        episode: int32 ``(rows,)``, index of the episode.
        decision: int32 ``(rows,)``, index of the decision in its episode.
        time: int32 ``(rows,)``, clock of the simulator at the decision.
        jobset: int32 ``(episodes,)``, index of the jobset that each episode ran.
        window: int32 ``(episodes,)``, time steps in which its jobs may arrive.
        slowdown_sum: float64 ``(episodes,)``, over the jobs; unfinished ones count what they have
            spent in the system.
        num_jobs: int32 ``(episodes,)``.
        num_unfinished: int32 ``(episodes,)``.
    """

    states: NDArray[np.uint8]
    actions: NDArray[np.int32]
    log_probabilities: NDArray[np.float32]
    rewards: NDArray[np.float64]
    episode: NDArray[np.int32]
    decision: NDArray[np.int32]
    time: NDArray[np.int32]
    jobset: NDArray[np.int32]
    window: NDArray[np.int32]
    slowdown_sum: NDArray[np.float64]
    num_jobs: NDArray[np.int32]
    num_unfinished: NDArray[np.int32]

    @property
    def num_rows(self) -> int:
        """Number of decisions."""
        return int(self.actions.size)

    @property
    def num_episodes(self) -> int:
        """Number of episodes."""
        return int(self.jobset.size)

    @staticmethod
    def join(parts: Sequence["Rollouts"]) -> "Rollouts":
        """Puts the rows of several units one after the other; episodes and jobsets count on."""
        episodes = np.cumsum([0, *(part.num_episodes for part in parts)])
        jobsets = np.cumsum([0, *(int(part.jobset[-1]) + 1 for part in parts)])
        joined = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in Rollouts.__dataclass_fields__
            if name not in ("episode", "jobset")
        }
        return Rollouts(
            **joined,
            episode=np.concatenate(
                [
                    part.episode + np.int32(first)
                    for part, first in zip(parts, episodes, strict=False)
                ]
            ),
            jobset=np.concatenate(
                [part.jobset + np.int32(first) for part, first in zip(parts, jobsets, strict=False)]
            ),
        )


def rollout(
    simulator: DeepRMSimulator,
    policy: SamplingPolicy,
    jobsets: Sequence[JobSet],
    objective: Objective,
    episodes_per_jobset: int,
    keys: NDArray[np.uint64],
) -> Rollouts:
    """Runs the episodes of a unit to their ends.

    Args:
        simulator: the cluster; what it had loaded is replaced.
        policy: chooses actions.
        jobsets: the unit's jobsets.
        objective: what the rewards are.
        episodes_per_jobset: episodes of each jobset.
        keys: uint64 ``(len(jobsets) * episodes_per_jobset,)``, key of each episode's random
            stream; see `cluster_env.core.seeding.episode_keys`.
    """
    simulator.load(jobsets, objective, episodes_per_jobset)
    rows = np.arange(simulator.num_episodes, dtype=np.int32)
    steps: list[tuple[NDArray[np.generic], ...]] = []
    while rows.size:
        states = simulator.states.take(rows, axis=0)
        time = simulator.time.take(rows)
        actions, log_probabilities = policy.sample(states, uniforms(keys, len(steps)))
        rewards = np.empty(rows.size, np.float64)
        left = simulator.step_rows(rows, actions, rewards)
        steps.append((states, actions, log_probabilities, rewards, rows, time))
        if left < rows.size:
            going = simulator.active[rows]
            rows, keys = rows[going], keys[going]
    return _columns(simulator, steps)


def _columns(
    simulator: DeepRMSimulator, steps: Sequence[tuple[NDArray[np.generic], ...]]
) -> Rollouts:
    states, actions, log_probabilities, rewards, episode, time = (
        np.concatenate(column) for column in zip(*steps, strict=True)
    )
    schedule = simulator.schedule()
    count = simulator.num_episodes
    return Rollouts(
        states=states,
        actions=actions,
        log_probabilities=log_probabilities,
        rewards=rewards,
        episode=episode,
        decision=np.repeat(np.arange(len(steps), dtype=np.int32), [step[1].size for step in steps]),
        time=time,
        jobset=schedule.jobset,
        window=schedule.window,
        slowdown_sum=_sums(schedule.episode, schedule.slowdown, count),
        num_jobs=np.bincount(schedule.episode, minlength=count).astype(np.int32),
        num_unfinished=_sums(schedule.episode, ~schedule.finished, count).astype(np.int32),
    )


def _sums(group: NDArray[np.int32], values: NDArray[Any], num_groups: int) -> NDArray[np.float64]:
    return np.bincount(group, values, num_groups).astype(np.float64, copy=False)
