"""Starts and ends of runs: the same in a pool and at a site, but for what a job holds."""

import numpy as np

from cluster_env.core.compiled import njit_called_where, njit_either, njit_inlined
from cluster_env.worlds.hpc.events import (
    Episode,
    add_units,
    count_end,
    count_start,
    count_usage,
    forget,
    let_run,
)
from cluster_env.worlds.hpc.queue import leave
from cluster_env.worlds.hpc.rules import CONSERVATIVE
from cluster_env.worlds.hpc.site_holding import is_charged, leave_nodes, take_nodes


@njit_inlined
def _take_units(episode: Episode, job: int) -> None:
    add_units(episode.free, episode.demand, job, -1)


@njit_inlined
def _give_units(episode: Episode, job: int) -> None:
    add_units(episode.free, episode.demand, job, 1)


@njit_inlined
def _opens_no_limit(episode: Episode, job: int) -> bool:
    """Whether nobody may start for the end of a job but for what it held."""
    return True


@njit_inlined
def _opens_no_limit_of_site(episode: Episode, job: int) -> bool:
    return not is_charged(episode, job)


_take = njit_either(_take_units, take_nodes, "site")
give_back = njit_either(_give_units, leave_nodes, "site")
_holds_alone = njit_either(_opens_no_limit, _opens_no_limit_of_site, "site")


@njit_called_where("site")
def start(episode: Episode, place: int, now: int, seconds: int) -> None:
    """Starts the job at a place of the queue, which is expected to run for so many seconds.

    Those that wait before it and behind it stay where they are as counted from the head.
    """
    job = np.int64(episode.queue[place])
    leave(episode, place, now)
    run(episode, job, now, seconds)


@njit_inlined
def run(episode: Episode, job: int, now: int, seconds: int) -> None:
    """Lets a job run that does not wait; at a site it gets the nodes that have just been chosen."""
    status = episode.status[0]
    _take(episode, job)
    let_run(episode, job, now, seconds)
    if episode.order.counts:
        count_start(episode, job, now)
    if episode.begun.size > 0:
        episode.begun[status.begun] = job
        status.begun += 1


@njit_inlined
def vacate(episode: Episode, job: int, now: int) -> None:
    """Gives back what a job held whose run is over, and counts it for its user.

    The last pass holds where that is a plan, and this the end that it had foreseen.
    """
    status, order, as_planned = episode.status[0], episode.order, False
    give_back(episode, job)
    if order.tracks:
        end = forget(episode.expected, episode.expected_jobs, status.running, job)
        if order.counts:
            count_end(episode, job, end)
        as_planned = order.rule.mode == CONSERVATIVE and end == now and _holds_alone(episode, job)
    if order.shares:
        count_usage(episode, job, now)
    status.running -= 1
    status.holds = status.holds and as_planned
