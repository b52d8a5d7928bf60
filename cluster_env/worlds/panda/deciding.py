"""One decision of all agents of an episode: collisions, then catch, release, wait."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.panda.arrays import BY_NEED, WAITING, Cloud, Episodes, Jobs
from cluster_env.worlds.panda.holding import can_catch, catch, let_go, satisfy, start


@njit_inlined
def catch_all(
    c: Cloud,
    jobs: Jobs,
    e: Episodes,
    episode: int,
    rows: NDArray[np.int32],
    bits: NDArray[np.int8],
    needs: NDArray[np.float32],
    begin: int,
    end: int,
) -> None:
    """Gives each node that is caught to one of those that catch it.

    Args:
        c: the cloud.
        jobs: of all jobsets.
        e: all episodes.
        episode: which one.
        rows: those that decide, in the order of arrival; these are ``rows[begin:end]``.
        bits: their actions, see `Panda`.
        needs: how much they need each node; with `BY_NEED`, the largest need goes first, and of
            equal ones the first arrival. Not read otherwise.
        begin: first of the rows.
        end: and behind the last.
    """
    first = e.of[episode].row
    for i in range(begin, end):
        row = np.int64(rows[i])
        if e.agent[row].stage != WAITING:
            continue
        for k in range(c.observed):
            node = e.shown[row, k]
            if not bits[i, k] or node < 0 or e.agent[row].held >= c.held:
                continue
            if not can_catch(c, jobs, e, episode, row - first, node):
                continue
            winner = row
            if c.collision == BY_NEED:
                winner = neediest(c, e, rows, bits, needs, i, end, k)
            if winner == row or can_catch(c, jobs, e, episode, winner - first, node):
                catch(c, e, episode, winner - first, node)


@njit_inlined
def neediest(
    c: Cloud,
    e: Episodes,
    rows: NDArray[np.int32],
    bits: NDArray[np.int8],
    needs: NDArray[np.float32],
    i: int,
    end: int,
    k: int,
) -> int:
    """Which of the rows ``i`` to ``end`` needs most the node that row ``i`` sees in place ``k``.

    Rows before ``i`` have had their turn: what they catch and still is free, they had no room for.
    """
    node, found, most = e.shown[rows[i], k], int(rows[i]), needs[i, k]
    for other in range(i + 1, end):
        row = rows[other]
        if e.agent[row].stage != WAITING or e.agent[row].held >= c.held:
            continue
        for place in range(c.observed):
            if e.shown[row, place] == node and bits[other, place] and needs[other, place] > most:
                found, most = int(row), needs[other, place]
    return found


@njit_inlined
def release_all(
    c: Cloud, e: Episodes, episode: int, row: int, bits: NDArray[np.int8], held_before: int
) -> None:
    """Takes back what an agent releases: bits of the places that it held before it caught."""
    for k in range(held_before - 1, -1, -1):  # from behind, so that places stay what they were
        if bits[c.observed + k]:
            let_go(c, e, episode, row - e.of[episode].row, e.held[row, k])


@njit_inlined
def start_if_satisfied(
    c: Cloud, jobs: Jobs, e: Episodes, episode: int, row: int, bits: NDArray[np.int8]
) -> None:
    """Lets an agent consume unless it waits."""
    at, agent = e.of[episode], e.agent[row]
    wants = not bits[c.observed + c.held]
    job = at.first + row - at.row
    nodes = e.held[row, : agent.held]
    if wants and satisfy(c, jobs, job, nodes, agent.held_cores, agent.held_memory):
        start(c, jobs, e, episode, row - at.row)
