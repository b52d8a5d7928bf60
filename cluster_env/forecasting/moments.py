"""A machine at one instant, and how it is taken out of a schedule."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import Attributes, JobSet
from cluster_env.forecasting.past import NEVER, Seconds, SitePast, asked
from cluster_env.sites.placements import Placements


@dataclass(frozen=True, eq=False)
class MachineMoment:
    """A machine at one instant.

    Attributes:
        time: the instant, in seconds of the clock of the arrivals.
        jobs: those that run or wait, by arrival, with what is believed of them (`BELIEVED`). At a
            site they have the attributes that `Site` lists, and arrive when they enter the queue.
        start: when each started, int64 ``(num_jobs,)``; -1 for those that wait.
        nodes: at a site, of those that run.
        decided: whether the policy has decided at this instant; else it does so first of all. On a
            pool both come to the same.
        shift: what the site's calendar shows when the clock shows 0.
        number: of each job in the jobset that the moment is of, int64 ``(num_jobs,)``, if any.
    """

    time: int
    jobs: JobSet
    start: Seconds
    nodes: Placements | None = None
    decided: bool = False
    shift: int = 0
    number: Seconds | None = None

    @cached_property
    def waiting(self) -> NDArray[np.int64]:
        """Which jobs wait, int64 ``(num_waiting,)``."""
        return np.flatnonzero(self.start < 0)

    @cached_property
    def running(self) -> NDArray[np.int64]:
        """Which jobs run, int64 ``(num_running,)``."""
        return np.flatnonzero(self.start >= 0)


@dataclass(frozen=True, eq=False)
class PlayedJobs:
    """What became of all jobs of a jobset, in seconds, int64 ``(num_jobs,)`` each.

    Attributes:
        start: when each started.
        finish: when each finished.
        eligible: when each entered the queue; by default at its arrival.
        nodes: at a site, of all jobs.
    """

    start: Seconds
    finish: Seconds
    eligible: Seconds | None = None
    nodes: Placements | None = None


def moment_of(jobset: JobSet, played: PlayedJobs, time: int) -> tuple[MachineMoment, SitePast]:
    """What was there at an instant of a schedule, and what was known by then.

    Args:
        jobset: all jobs.
        played: their schedule.
        time: an arrival or a finish, because it is at these that a policy decides.
    """
    num = int(np.searchsorted(jobset.arrival, time, side="right"))
    arrived = jobset.select(slice(num), window=int(time) + 1)
    start, finish = played.start[:num], played.finish[:num]
    over = finish <= time
    there = np.flatnonzero(~over)
    run = np.where(over, arrived.duration, asked(arrived)).astype(np.int64)
    past = SitePast(time, arrived, run, np.where(over, finish, NEVER).astype(np.int64))
    shift = (
        int(jobset.attributes["submit"][0] - jobset.arrival[0])
        if "submit" in jobset.attributes
        else 0
    )
    since = arrived.arrival
    if played.eligible is not None:
        # Those that wait for others to end are not in the queue yet; those of a closed loop have
        # not even been submitted.
        eligible = played.eligible[:num]
        loop = arrived.attributes.get("think_s", np.full(num, -1)) >= 0
        there = there[~(loop & (eligible > time))[there]]
        since = np.where(eligible <= time, eligible, since).astype(np.int32)
        there = there[np.argsort(since[there], kind="stable")]
    submit = arrived.attributes.get("submit", arrived.arrival)
    known = Attributes({**arrived.attributes, "submit": submit}, num).select(there)
    jobs = JobSet(
        since[there],
        arrived.duration[there],
        arrived.demand[there],
        int(time) + 1,
        attributes=known,
    )
    begin = np.where(start[there] <= time, start[there], -1).astype(np.int64)
    nodes = None if played.nodes is None else played.nodes.select(there[begin >= 0])
    return MachineMoment(time, jobs, begin, nodes, True, shift, there), past
