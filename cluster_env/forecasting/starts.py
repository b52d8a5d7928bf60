"""When the jobs that wait will start: the queue is played on many times, as it may go on.

The ideas, in the order of the calls:

* `MachineMoment` is a machine at one instant, and `SitePast` what is known of a site by then.
  `moment_of` takes both out of a schedule; a live queue and its log give the same.
* `forecast` plays futures under the policy in charge. A future is a jobset that leads to the
  present and on (`JobSequence`): on one pool the jobs that run start at its beginning, beside one
  that holds all that is free; those that wait arrive as long ago as they really wait; then that one
  job ends, and jobs of the past arrive again. At a site the jobs that run get their nodes at the
  present, and nothing starts before. So the simulator of the world decides, as it will when the
  time comes, with nodes, partitions, limits, throttles, dependencies and what is known of the
  calendar.
* `RunTimes` draws run times, see `cluster_env.forecasting.past`.
* What arrives is a stretch of the past of a week, whole weeks back where the log is long enough,
  and then another. Under ``fcfs:strict`` nothing that arrives later matters, and nothing does.
* `Forecast.plan` is the usual way beside it: one future, with the users' estimates and no arrivals.
* `latest_starts` is what the theorem of `HPC` guarantees where waits are bounded.

Not in it: failures of nodes to come, what users had used before (fair shares begin anew), and that
users submit jobs because others have ended. `cluster_env.forecasting.checks` measures how often
intervals hold, and learns from that how to correct them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import PlayedPolicy, Policy
from cluster_env.forecasting.moments import MachineMoment
from cluster_env.forecasting.past import RunTimes, Seconds, SitePast, asked
from cluster_env.forecasting.sequences import (
    DAY_S,
    LONGEST_S,
    JobSequence,
    arrivals,
    believed,
    nothing,
)
from cluster_env.sites.placements import known_at

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles that are shown: the ends of the interval of 90 %, of that of 50 %, and the median."""

NUM_FUTURES = 100

_REACH_S = 28 * DAY_S  # behind which nothing arrives
_SIDE_BY_SIDE = 32  # futures in memory at once


@dataclass(frozen=True, eq=False)
class Forecast:
    """When the jobs that wait start, in seconds after the instant.

    Attributes:
        after: in each future, int64 ``(num_futures, num_waiting)``, rising along the futures.
        plan: with the users' estimates and no arrivals, int64 ``(num_waiting,)``.
    """

    after: Seconds
    plan: Seconds

    def quantiles(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds at levels of each job, both float64 ``(num_levels, num_waiting)``."""
        place = np.clip(levels, 0, 1) * (self.after.shape[0] - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, self.after.shape[0] - 1)
        job = np.arange(self.after.shape[1])
        first, second = self.after[low, job], self.after[high, job]
        return np.asarray(first + (place - low) * (second - first), np.float64)

    def ranks(self, actual: Seconds) -> NDArray[np.float64]:
        """Shares of the futures in which jobs start before they really did, ``(num_waiting,)``.

        Those in which they start at the same second count half.
        """
        before = (self.after < actual).mean(axis=0) + (self.after <= actual).mean(axis=0)
        return np.asarray(before / 2, np.float64)


def forecast(
    moment: MachineMoment,
    past: SitePast,
    world: Any,
    policy: Policy,
    *,
    num_futures: int = NUM_FUTURES,
    rng: np.random.Generator,
) -> Forecast:
    """Plays the queue on, see the head of this module.

    Args:
        moment: the machine now.
        past: of the site.
        world: an `HPC`, whose capacity is that of the machine.
        policy: the one in charge: a rule, or a scorer.
        num_futures: how often.
        rng: the random numbers of the futures.

    Raises:
        InputError: if the simulator cannot play the policy by itself, the policy holds jobs back
            that run already, or what runs does not fit the machine.
    """
    played = require_played(policy)
    if world.site is not None:
        known = known_at(world.site, moment.time + moment.shift)
        world = replace(world, site=known)
        if moment.nodes is None:
            raise InputError("start times at a site need the nodes of the jobs that run")
    sequence = JobSequence(moment, world)
    if not moment.waiting.size:
        return Forecast(np.zeros((num_futures, 0), np.int64), np.zeros(0, np.int64))
    simulator = world.simulator()
    as_asked = sequence.jobset(asked(moment.jobs), nothing(past.jobs))
    plan = _starts([as_asked], sequence, simulator, played)[0]
    reach = 0 if _never_waits_for_later(policy, world) else min(_last(plan) + DAY_S, _REACH_S)
    elapsed = np.where(moment.start >= 0, moment.time - moment.start, 0)
    drawn = RunTimes(past, world.kill_at_estimate).draw(moment.jobs, elapsed, num_futures, rng)

    def played_on() -> Seconds:
        futures = [sequence.jobset(run, arrivals(past, reach, rng)) for run in drawn]
        return _starts(futures, sequence, simulator, played)

    after = played_on()
    # Where later jobs go first, some may wait for longer than the usual way says.
    while 0 < reach < min(_last(after), _REACH_S):
        reach = min(2 * reach, _REACH_S)
        after = played_on()
    return Forecast(np.sort(after, axis=0), plan)


def _last(after: Seconds) -> int:
    """The last start, of jobs that ever start."""
    return int(after[after < LONGEST_S].max(initial=0))


def require_played(policy: Policy) -> PlayedPolicy:
    """The policy, if a simulator can play it by itself from any moment on.

    Raises:
        InputError: if not.
    """
    if not isinstance(policy, PlayedPolicy):
        raise InputError(
            f"start times need a rule or a linear scorer, whose queues the simulator plays by "
            f"itself, and {policy.name} is neither"
        )
    return policy


def _never_waits_for_later(policy: Policy, world: Any) -> bool:
    """Whether jobs that arrive later change nothing for those that wait."""
    rule: Any = getattr(policy, "rule", None)  # a scorer has none
    # At a site later ones may be of a higher tier, or take what a limit leaves.
    return (
        world.site is None
        and rule is not None
        and (rule.order, rule.backfilling) == ("fcfs", "strict")
    )


def _starts(
    jobsets: list[JobSet], sequence: JobSequence, simulator: Any, policy: PlayedPolicy
) -> Seconds:
    """Seconds after the instant, int64 ``(num_jobsets, num_waiting)``."""
    after = np.empty((len(jobsets), sequence.num_waiting), np.int64)
    before, waiting = np.arange(sequence.num_before), np.arange(sequence.num_waiting)
    for first in range(0, len(jobsets), _SIDE_BY_SIDE):
        part = jobsets[first : first + _SIDE_BY_SIDE]
        sequence.load(simulator, part)
        policy.play(simulator, np.zeros(len(part), np.uint64))
        start, place = simulator.starts, simulator.batch.place[:, None]
        if (start[place + before] > sequence.begin).any():
            raise InputError(
                f"{policy.name} holds back jobs that fit, so the present cannot be built again in "
                f"its simulator; take a policy that only orders jobs"
            )
        begun = start[place + before.size + waiting]
        # A job that does not start before the clock ends starts after all that anybody asks for.
        after[first : first + len(part)] = np.where(begun < 0, LONGEST_S, begun - sequence.now)
    return after


def latest_starts(moment: MachineMoment, world: Any, longest: int) -> Seconds | None:
    """Seconds after the instant by which jobs start, guaranteed, int64 ``(num_waiting,)``.

    By the theorem in the docstring of `HPC`. Let L be its bound, j a job that waits, and A those
    that wait and arrived before j. If j is overdue, it starts by the latest end, by the estimates,
    of what runs now, plus the estimates of A. If not, other jobs may start until it is; these end
    within ``longest`` after arrival(j) + L.

    The assumptions: those of the theorem, that the policy in charge keeps the bound, that nobody
    asks for more than ``longest`` seconds, and that the machine stays as it is.

    Args:
        moment: the machine now.
        world: an `HPC`.
        longest: the longest time that a job may ask for.

    Returns:
        None where the assumptions do not hold: without a bound, at a site, where reservations do
        not go by what users ask for, or where a job has outlived that.
    """
    jobs, now, limit = moment.jobs, moment.time, asked(moment.jobs)
    ends = moment.start[moment.running] + limit[moment.running]
    corrected = (believed(jobs, "reserve_estimate") != limit).any()
    if (
        not world.max_wait
        or world.site is not None
        or corrected
        or (ends < now).any()
        or world.every_step
    ):
        return None
    last = int(ends.max(initial=now))
    due = jobs.arrival[moment.waiting].astype(np.int64) + world.max_wait
    begun = np.where(due < now, last, np.maximum(last, due + longest))
    before = np.cumsum(limit[moment.waiting]) - limit[moment.waiting]
    return np.asarray(begun + before - now, np.int64)
