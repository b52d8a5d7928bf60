"""Decision by decision, or whole episodes under a rule."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.panda.arrays import RUNNING, WAITING, Cloud, Episodes, Jobs
from cluster_env.worlds.panda.deciding import catch_all, release_all, start_if_satisfied
from cluster_env.worlds.panda.events import begin, move_to, next_clock, tell_time
from cluster_env.worlds.panda.holding import cost, paid_at_finish
from cluster_env.worlds.panda.planning import Plan
from cluster_env.worlds.panda.play import ENVY_FREE, SCORED, decide, line_up, overrules
from cluster_env.worlds.panda.watching import look

RESET, STEP, PLAY = range(3)


@njit_inlined
def act(
    c: Cloud,
    jobs: Jobs,
    e: Episodes,
    episode: int,
    rows: NDArray[np.int32],
    bits: NDArray[np.int8],
    needs: NDArray[np.float32],
    rewards: NDArray[np.float64],
    held_before: NDArray[np.int64],
    first: int,
    last: int,
    plan: Plan,
) -> int:
    """Carries out the actions of ``rows[first:last]``, all that wait in an episode.

    At some clocks of a hybrid, the static scheduler decides in their place.

    Returns:
        The clock of the next instant.
    """
    at, moved = e.of[episode], False
    now = at.time
    for i in range(first, last):
        waits = e.agent[rows[i]].stage == WAITING
        held_before[i] = e.agent[rows[i]].held if waits else -1
    static = overrules(c, now)
    if static:
        n = line_up(e, episode, plan, False)
        decide(c, jobs, e, episode, np.int64(ENVY_FREE), n, plan, np.uint64(0))
    else:
        catch_all(c, jobs, e, episode, rows, bits, needs, first, last)
    for i in range(first, last):
        if held_before[i] >= 0 and not static:
            moved |= e.agent[rows[i]].held > held_before[i]
            release_all(c, e, episode, np.int64(rows[i]), bits[i], held_before[i])
            moved |= e.agent[rows[i]].held != held_before[i]
            start_if_satisfied(c, jobs, e, episode, np.int64(rows[i]), bits[i])
            moved |= e.agent[rows[i]].stage == RUNNING
    at.round = at.round + 1 if moved and at.num_waiting and at.round + 1 < c.rounds else 0
    for i in range(first, last):
        row = np.int64(rows[i])
        agent, job = e.agent[row], at.first + row - at.row
        if held_before[i] < 0:
            continue
        since = now - jobs.of[job].arrival
        if agent.stage == RUNNING:
            paid = paid_at_finish(c, jobs, job, agent.finish)
        else:
            paid = cost(jobs, job, since + (at.round == 0))
        rewards[i] = agent.owed + cost(jobs, job, since) - paid
        agent.owed = 0.0
    if at.round:
        return now
    return now + 1 if at.num_waiting else next_clock(c, jobs, e, episode)


@njit_kernel
def run_episodes(
    c: Cloud,
    jobs: Jobs,
    e: Episodes,
    mode: int,
    rows: NDArray[np.int32],
    bits: NDArray[np.int8],
    needs: NDArray[np.float32],
    rewards: NDArray[np.float64],
    held_before: NDArray[np.int64],
    choice: int,
    shortest: bool,
    plan: Plan,
    keys: NDArray[np.uint64],
) -> int:
    """Puts episodes back to their first decision, takes one in each, or plays them to the end.

    All three are one kernel, because the passage of time is most of it and is compiled once so.

    Args:
        c: the cloud.
        jobs: of all jobsets.
        e: all episodes.
        mode: `RESET`, `STEP` or `PLAY`.
        rows: int32 ``(n,)``, rising; to step, all that wait in each of their episodes; else any row
            of each episode.
        bits: int8 ``(n, observed + held + 1)``, see `Panda`; read by `STEP` alone, as the next
            three.
        needs: float32 ``(n, observed)``; not read if collisions are resolved by arrival.
        rewards: written, float64 of at least n elements.
        held_before: room for n numbers.
        choice: how nodes are chosen, index in `CHOICES`; read by `PLAY` alone, as all that follow.
        shortest: whether those with the least left go first.
        plan: room.
        keys: of random numbers, uint64 ``(num_rows,)``; those of each episode's first row count.

    Returns:
        How many of the rows are active.
    """
    first, left = np.int64(0), 0  # not a literal, which would compile `act` once more
    while first < rows.size:
        episode, last, clock = np.int64(e.episode[rows[first]]), first, np.int64(0)
        while last < rows.size and e.episode[rows[last]] == episode:
            if mode == STEP:
                rewards[last] = 0.0
            last += 1
        at = e.of[episode]
        if mode != STEP:
            begin(c, jobs, e, episode)
        elif at.active:
            clock = act(
                *(c, jobs, e, episode, rows, bits, needs, rewards, held_before),
                *(first, last, plan),
            )
        while at.active:
            move_to(c, jobs, e, episode, clock)
            if at.active and at.num_waiting:
                if mode != PLAY:
                    break
                n = line_up(e, episode, plan, shortest)
                static = choice == SCORED and overrules(c, at.time)
                how = np.int64(ENVY_FREE) if static else choice
                decide(c, jobs, e, episode, how, n, plan, keys[at.row])
            clock = next_clock(c, jobs, e, episode)
            if choice == SCORED and mode == PLAY and at.num_waiting:
                clock = min(clock, at.time + 1)  # whoever is held back is looked at again
        tell_time(e, episode)
        if mode != PLAY:
            look(c, jobs, e, episode, plan)
        for i in range(first, last):
            left += e.active[rows[i]]
        first = last
    return left
