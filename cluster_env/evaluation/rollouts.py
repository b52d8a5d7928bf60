"""From a policy and jobsets to a schedule."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import PlayedPolicy, Policy, ViewingPolicy, choose
from cluster_env.core.schedule import Schedule, join_attributes, join_pieces
from cluster_env.core.seeding import episode_keys, row_keys, uniforms
from cluster_env.core.world import Simulator, World
from cluster_env.objectives import OBJECTIVES

BATCH_EPISODES = 256

# First key of evaluation's random streams; training uses the numbers of `Split` there.
_EVALUATION = 1000


def evaluate(
    policy: Policy,
    jobsets: Sequence[JobSet],
    world: World,
    *,
    run_seed: int = 0,
    episodes_per_jobset: int = 1,
    batch_episodes: int = BATCH_EPISODES,
    first_position: int = 0,
) -> Schedule:
    """Runs a policy on jobsets until every episode has ended.

    The random numbers of a decision depend on the seed, the position of the jobset, the episode
    and the number of the decision alone: neither the policies nor the jobsets evaluated beside it,
    nor the batches that episodes are simulated in, change what a policy draws.

    Args:
        policy: what decides; called with the episodes that still go on, and only with them.
        jobsets: what is scheduled.
        world: what runs the jobs.
        run_seed: seed of the policy's random numbers, at least 0.
        episodes_per_jobset: episodes that run each jobset, at least 1.
        batch_episodes: episodes simulated side by side; only speed depends on it.
        first_position: position of the first jobset, where these are a part of more.

    Returns:
        The schedule of episodes ``0..len(jobsets) * episodes_per_jobset - 1``; episode ``e`` ran
        jobset ``e // episodes_per_jobset``.

    Raises:
        InputError: if there is no jobset, a job cannot run in the world, or a number is out of
            range.
    """
    if not jobsets:
        raise InputError("at least one jobset is needed")
    if batch_episodes < 1:
        raise InputError(f"a batch has at least 1 episode, but {batch_episodes} was given")
    if episodes_per_jobset < 1:
        raise InputError(
            f"each jobset needs at least 1 episode, but {episodes_per_jobset} was given"
        )
    if isinstance(policy, ViewingPolicy):
        world = policy.view(world)
    for jobset in jobsets:
        world.check(jobset)
    simulator = world.simulator()
    # Schedules do not depend on the objective, but what a policy that looks ahead does.
    objective = getattr(policy, "objective", OBJECTIVES.get("completion_time"))
    # Whole jobsets to a batch, so that the episodes of one are simulated side by side.
    size = max(1, batch_episodes // episodes_per_jobset)
    parts = []
    for first in range(0, len(jobsets), size):
        batch = jobsets[first : first + size]
        simulator.load(batch, objective, episodes_per_jobset)
        # Keys follow from the position of a jobset among all, not from its place in the batch.
        start = first_position + first
        positions = range(start, start + len(batch))
        keys = [
            episode_keys(run_seed, _EVALUATION, position, count=episodes_per_jobset)
            for position in positions
        ]
        _run(policy, simulator, np.concatenate(keys))
        parts.append(simulator.schedule())
    return concatenate(parts)


def concatenate(schedules: Sequence[Schedule]) -> Schedule:
    """Joins schedules on one cluster; episodes and jobsets of later ones are counted on.

    Raises:
        InputError: if some have attributes, pieces or nodes that others do not have.
    """
    episodes = np.cumsum([0] + [part.num_episodes for part in schedules])
    jobsets = np.cumsum([0] + [int(part.jobset.max(initial=-1)) + 1 for part in schedules])

    def joined(name: str, offsets: NDArray[np.int64] | None = None) -> NDArray[np.int32]:
        arrays = [getattr(part, name) for part in schedules]
        if offsets is not None:
            arrays = [array + offset for array, offset in zip(arrays, offsets[:-1], strict=True)]
        return np.concatenate(arrays).astype(np.int32)

    return Schedule(
        episode=joined("episode", episodes),
        job=joined("job"),
        arrival=joined("arrival"),
        start=joined("start"),
        finish=joined("finish"),
        duration=joined("duration"),
        demand=joined("demand"),
        end=joined("end"),
        window=joined("window"),
        jobset=joined("jobset", jobsets),
        capacity=schedules[0].capacity,
        job_class=np.concatenate([part.job_class for part in schedules]),
        attributes=join_attributes([part.attributes for part in schedules]),
        pieces=join_pieces(schedules),
    )


def _run(policy: Policy, simulator: Simulator, keys: NDArray[np.uint64]) -> None:
    """Decides until all rows have ended; those that have leave the batch."""
    keys = row_keys(keys, simulator.episode)
    # A rule plays whole episodes in compiled code; any other policy is asked state by state.
    if isinstance(policy, PlayedPolicy):
        policy.play(simulator, keys)
        return
    rows = np.flatnonzero(simulator.active).astype(np.int32)
    rewards = np.empty(simulator.num_rows, np.float64)
    decision = 0
    while rows.size:
        actions = choose(policy, simulator, rows, uniforms(keys[rows], decision))
        simulator.step(rows, actions, rewards)
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        decision += 1
