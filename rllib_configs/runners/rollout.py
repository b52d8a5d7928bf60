"""Episodes of one unit, from first to last decision, as columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import row_keys, uniforms
from cluster_env.core.spec import spec_of
from cluster_env.core.world import State, World
from cluster_env.evaluation import Metric, get_metric
from cluster_env.objectives import Objective
from rllib_configs.networks.sampling import SamplingPolicy


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What happened in the episodes of a unit; no Python object per step.

    Entries are decisions, first those of all first steps, then of the second, and so on: within
    an episode they are in order of time.

    Attributes:
        states: ``(num_rows, state_size)``, the state of each decision.
        actions: int32 ``(num_rows,)``, or ``(num_rows, num_actions)`` where agents do several
            things at once.
        log_probabilities: float32 ``(num_rows,)``, of the actions under the policy that chose them.
        rewards: float64 ``(num_rows,)``.
        row: int32 ``(num_rows,)``, index of the decider, whose rewards add up to a return: a row
            of the simulator, the episode itself where one agent decides in each.
        episode: int32 ``(num_rows,)``, index of the episode.
        decision: int32 ``(num_rows,)``, index of the step in its episode.
        time: ``(num_rows,)``, clock of the simulator at the decision.
        jobset: int32 ``(episodes,)``, index of the jobset that each episode ran.
        outcome: how each episode went, arrays ``(episodes,)`` by name: ``weight``, what it counts
            for among episodes of other lengths, as DeepRM's arrival window; ``headline_sum`` and
            ``headline_count``, whose quotient is the mean of the world's headline metric, to which
            unfinished jobs add what they have spent in the system; ``num_jobs`` and
            ``num_unfinished``.
        final: ``(deciders, state_size)``, the states in which deciders end; None if nobody asked.
    """

    states: State
    actions: NDArray[np.int32]
    log_probabilities: NDArray[np.float32]
    rewards: NDArray[np.float64]
    row: NDArray[np.int32]
    episode: NDArray[np.int32]
    decision: NDArray[np.int32]
    time: NDArray[Any]
    jobset: NDArray[np.int32]
    outcome: Mapping[str, NDArray[Any]]
    final: State | None = None

    @property
    def num_rows(self) -> int:
        """Number of decisions."""
        return len(self.actions)

    @property
    def num_episodes(self) -> int:
        """Number of episodes."""
        return int(self.jobset.size)

    @property
    def headline(self) -> float:
        """Mean of the world's headline metric; 0 where nothing counts."""
        outcome = self.outcome
        return float(outcome["headline_sum"].sum() / max(1, outcome["headline_count"].sum()))

    @property
    def alone(self) -> bool:
        """Whether one agent decides in each episode."""
        return self.row is self.episode

    @cached_property
    def row_jobset(self) -> NDArray[np.int32]:
        """Index of the jobset of each decider; `jobset` where one agent decides in an episode."""
        if self.alone:
            return self.jobset
        found = np.zeros(int(self.row.max(initial=-1)) + 1, np.int32)
        found[self.row] = self.jobset[self.episode]
        return found


def rollout(
    world: World,
    policy: SamplingPolicy,
    jobsets: Sequence[JobSet],
    objective: Objective,
    episodes_per_jobset: int,
    keys: NDArray[np.uint64],
    *,
    keep_final: bool = False,
) -> Rollouts:
    """Runs the episodes of a unit to their ends.

    Args:
        world: what runs the jobs.
        policy: chooses actions.
        jobsets: the unit's jobsets.
        objective: what the rewards are.
        episodes_per_jobset: episodes of each jobset.
        keys: uint64 ``(len(jobsets) * episodes_per_jobset,)``, key of each episode's random
            stream; see `cluster_env.core.seeding.episode_keys`.
        keep_final: whether to keep the states in which episodes end.
    """
    simulator = world.simulator()
    simulator.load(jobsets, objective, episodes_per_jobset)
    alone = simulator.num_rows == keys.size
    if not alone:
        keys = row_keys(keys, simulator.episode)
    rows = np.arange(simulator.num_rows, dtype=np.int32)
    if not alone:
        rows = rows[simulator.active]
    steps: list[tuple[NDArray[Any], ...]] = []
    while rows.size:
        states = simulator.states.take(rows, axis=0)
        time = simulator.time.take(rows)
        actions, log_probabilities = policy.sample(states, uniforms(keys[rows], len(steps)))
        rewards = np.empty(rows.size, np.float64)
        left = simulator.step(rows, actions, rewards)
        steps.append((states, actions, log_probabilities, rewards, rows, time))
        if not alone:  # agents may have arrived
            rows = np.flatnonzero(simulator.active).astype(np.int32)
        elif left < rows.size:
            rows = rows[simulator.active[rows]]
    states, actions, log_probabilities, rewards, row, time = (
        np.concatenate(column) for column in zip(*steps, strict=True)
    )
    schedule = simulator.schedule()
    return Rollouts(
        states=states,
        actions=actions,
        log_probabilities=log_probabilities,
        rewards=rewards,
        row=row,
        episode=row if alone else simulator.episode[row],
        decision=np.repeat(np.arange(len(steps), dtype=np.int32), [len(step[1]) for step in steps]),
        time=time,
        jobset=schedule.jobset,
        outcome=_outcome(schedule, get_metric(spec_of(world).headline)),
        final=simulator.states.copy() if keep_final else None,
    )


def split(rollouts: Rollouts, num_jobsets: Sequence[int]) -> list[Rollouts]:
    """Cuts rollouts of one agent an episode, as if their jobsets had been sampled apart.

    Args:
        rollouts: of several jobsets.
        num_jobsets: of each part, in order.
    """
    last = np.cumsum(num_jobsets)
    part_of = np.searchsorted(last, rollouts.jobset, side="right")
    row_part = part_of[rollouts.episode]
    parts = []
    for k, end in enumerate(last.tolist()):
        rows, episodes = np.flatnonzero(row_part == k), np.flatnonzero(part_of == k)
        episode = rollouts.episode[rows] - np.int32(episodes[0])
        parts.append(
            Rollouts(
                states=rollouts.states[rows],
                actions=rollouts.actions[rows],
                log_probabilities=rollouts.log_probabilities[rows],
                rewards=rollouts.rewards[rows],
                row=episode,
                episode=episode,
                decision=rollouts.decision[rows],
                time=rollouts.time[rows],
                jobset=rollouts.jobset[episodes] - np.int32(end - num_jobsets[k]),
                outcome={name: values[episodes] for name, values in rollouts.outcome.items()},
            )
        )
    return parts


def _outcome(schedule: Schedule, headline: Metric) -> dict[str, NDArray[Any]]:
    count = schedule.num_episodes

    def sums(group: NDArray[Any], values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(group, values, count).astype(np.float64, copy=False)

    values = headline.values(schedule)
    group = schedule.episode if headline.per == "job" else np.arange(count)
    if headline.counts is not None:
        chosen = headline.counts(schedule)
        values, group = values[chosen], group[chosen]
    return {
        "weight": schedule.window,
        "headline_sum": sums(group, values),
        "headline_count": np.bincount(group, minlength=count).astype(np.int32),
        "num_jobs": np.bincount(schedule.episode, minlength=count).astype(np.int32),
        "num_unfinished": sums(schedule.episode, ~schedule.finished).astype(np.int32),
    }
