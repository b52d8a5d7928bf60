"""When the jobs that wait will start: the queue is played on many times, as it may go on.

The ideas, in the order of the calls:

* `MachineMoment` is a machine at one instant, and `SitePast` what is known of a site by then.
  `moment_of` takes both out of a schedule; a live queue and its log give the same.
* `forecast` plays futures under the policy in charge. A future is a jobset that leads to the
  present and on: the jobs that run start at its beginning, beside one that holds all that is free;
  those that wait arrive as long ago as they really wait; then that one job ends, and jobs of the
  past arrive again. So the simulator of the world decides, as it will when the time comes.
* `RunTimes` draws run times, see `cluster_env.forecasting.past`.
* What arrives is a stretch of the past of `BLOCK_S`, whole weeks back where the log is long enough,
  and then another. Under ``fcfs:strict`` nothing that arrives later matters, and nothing does.
* `Forecast.plan` is the usual way beside it: one future, with the users' estimates and no arrivals.
* `latest_starts` is what the theorem of `HPC` guarantees where waits are bounded.

Not in it: sites of several nodes (jobs that run would have to be put on the nodes that they have),
what users had used before (fair shares begin anew), and that users submit jobs because others have
ended. `cluster_env.forecasting.checks` measures how often intervals hold, and learns from that
how to correct them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import PlayedPolicy, Policy
from cluster_env.forecasting.past import NEVER, RunTimes, Seconds, SitePast, asked, user_of
from cluster_env.objectives import get_objective
from cluster_env.workloads.run_times import BELIEVED

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles that are shown: the ends of the interval of 90 %, of that of 50 %, and the median."""

NUM_FUTURES = 100

BLOCK_S = 7 * 86_400
"""Length of a stretch of the past that arrives again."""

_DAY_S = 86_400
_REACH_S = 28 * _DAY_S  # behind which nothing arrives
_LONGEST_S = 2**29  # that a sequence reaches back
_SIDE_BY_SIDE = 32  # futures in memory at once


@dataclass(frozen=True, eq=False)
class MachineMoment:
    """A machine at one instant, after what starts then has started.

    Attributes:
        time: the instant, in seconds of the clock of the arrivals.
        jobs: those that run or wait, by arrival, with what is believed of them (`BELIEVED`).
        start: when each started, int64 ``(num_jobs,)``; -1 for those that wait.
    """

    time: int
    jobs: JobSet
    start: Seconds

    @cached_property
    def waiting(self) -> NDArray[np.int64]:
        """Which jobs wait, int64 ``(num_waiting,)``."""
        return np.flatnonzero(self.start < 0)

    @cached_property
    def running(self) -> NDArray[np.int64]:
        """Which jobs run, int64 ``(num_running,)``."""
        return np.flatnonzero(self.start >= 0)


def moment_of(
    jobset: JobSet, start: Seconds, finish: Seconds, time: int
) -> tuple[MachineMoment, SitePast]:
    """What was there at an instant of a schedule, and what was known by then.

    Args:
        jobset: all jobs.
        start: when each started, int64 ``(num_jobs,)``.
        finish: when each finished, likewise.
        time: an arrival or a finish, because it is at these that a policy decides.
    """
    num = int(np.searchsorted(jobset.arrival, time, side="right"))
    arrived = jobset.select(slice(num), window=int(time) + 1)
    begun, over = start[:num] <= time, finish[:num] <= time
    there = np.flatnonzero(~over)
    begin = np.where(begun[there], start[there], -1).astype(np.int64)
    run = np.where(over, arrived.duration, asked(arrived)).astype(np.int64)
    end = np.where(over, finish[:num], NEVER).astype(np.int64)
    return MachineMoment(time, arrived.select(there), begin), SitePast(time, arrived, run, end)


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
    played = require_played(policy, world)
    sequence = _Sequence(moment, world)
    if not moment.waiting.size:
        return Forecast(np.zeros((num_futures, 0), np.int64), np.zeros(0, np.int64))
    simulator = world.simulator()
    as_asked = sequence.jobset(asked(moment.jobs), _nothing(past.jobs))
    plan = _starts([as_asked], sequence, simulator, played)[0]
    reach = 0 if _never_waits_for_later(policy) else min(int(plan.max()) + _DAY_S, _REACH_S)
    elapsed = np.where(moment.start >= 0, moment.time - moment.start, 0)
    drawn = RunTimes(past, world.kill_at_estimate).draw(moment.jobs, elapsed, num_futures, rng)
    after = _starts(_futures(sequence, drawn, past, reach, rng), sequence, simulator, played)
    # Where later jobs go first, some may wait for longer than the usual way says.
    while 0 < reach < min(int(after.max()), _REACH_S):
        reach = min(2 * reach, _REACH_S)
        after = _starts(_futures(sequence, drawn, past, reach, rng), sequence, simulator, played)
    return Forecast(np.sort(after, axis=0), plan)


def require_played(policy: Policy, world: Any) -> PlayedPolicy:
    """The policy, if the simulator of a world can play it by itself from any moment on.

    Raises:
        InputError: if not.
    """
    if world.site is not None:
        raise InputError(
            "start times are foreseen on one pool of processors, because where jobs of a site run "
            "cannot be built again; leave out --site, and take one partition with --partition NAME "
            "and its --processors"
        )
    if not isinstance(policy, PlayedPolicy):
        raise InputError(
            f"start times need a rule or a linear scorer, whose queues the simulator plays by "
            f"itself, and {policy.name} is neither"
        )
    return policy


def _never_waits_for_later(policy: Policy) -> bool:
    """Whether jobs that arrive later change nothing for those that wait."""
    rule: Any = getattr(policy, "rule", None)  # a scorer has none
    return rule is not None and (rule.order, rule.backfilling) == ("fcfs", "strict")


def _futures(
    sequence: "_Sequence", runs: Seconds, past: SitePast, reach: int, rng: np.random.Generator
) -> list[JobSet]:
    """One for each row of the run times, int64 ``(num_futures, num_jobs)``."""
    return [sequence.jobset(run, _arrivals(past, reach, rng)) for run in runs]


@dataclass(frozen=True, eq=False)
class _Later:
    """Jobs that arrive so many seconds after an instant, and run for so long."""

    jobs: JobSet
    rows: NDArray[np.int64]
    after: Seconds
    run: Seconds


def stretch_of(span: int) -> int:
    """Length of the stretches that a past of so many seconds consists of: weeks, or days."""
    return BLOCK_S if span >= 2 * BLOCK_S else _DAY_S


def _nothing(jobs: JobSet) -> _Later:
    none = np.zeros(0, np.int64)
    return _Later(jobs, none, none, none)


def _arrivals(past: SitePast, reach: int, rng: np.random.Generator) -> _Later:
    """Stretches of the past, one after the other, until so many seconds after the instant."""
    if not reach or not past.jobs.num_jobs:
        return _nothing(past.jobs)
    arrival = past.jobs.arrival
    span = past.time - int(arrival[0])
    block = stretch_of(span)
    most = max(span // block, 1)
    rows, after = [], []
    for begin in range(0, reach, block):
        first = past.time - int(rng.integers(1, most + 1)) * block
        last = first + min(block, reach - begin)
        stretch = slice(*np.searchsorted(arrival, [first + 1, last + 1]))
        rows.append(np.arange(stretch.start, stretch.stop))
        after.append(arrival[stretch].astype(np.int64) - first + begin)
    chosen = np.concatenate(rows)
    return _Later(past.jobs, chosen, np.concatenate(after), past.run[chosen])


class _Sequence:
    """The jobs that lead to an instant, the same in all futures: what runs, then what waits.

    Attributes:
        now: the instant by the clock of the sequence.
        num_before: jobs that run, and one that holds what is free, if anything is.
        num_waiting: jobs that wait, which come next.
    """

    def __init__(self, moment: MachineMoment, world: Any) -> None:
        jobs, running, waiting = moment.jobs, moment.running, moment.waiting
        capacity = np.asarray(world.capacity, np.int64)
        held = jobs.demand[running].astype(np.int64)
        free = capacity - held.sum(axis=0)
        if free.min() < 0:
            raise InputError(
                f"the jobs that run hold {held.sum(axis=0).tolist()} of "
                f"{', '.join(world.resources)}, more than the machine's {capacity.tolist()}"
            )
        num_free = int(free[0] > 0)  # else nothing can start, nor be held
        waited = moment.time - jobs.arrival[waiting].astype(np.int64)
        self.now = min(int(waited.max(initial=0)), _LONGEST_S) + 1
        self.num_before, self.num_waiting = running.size + num_free, waiting.size
        self._order, self._num_free = np.concatenate([running, waiting]), num_free
        self._elapsed = (moment.time - moment.start[running]).astype(np.int64)
        self._jobs, self._time = jobs, moment.time
        self._arrival = np.concatenate(
            [np.zeros(self.num_before, np.int64), self.now - np.clip(waited, 0, self.now - 1)]
        )
        self._demand = np.vstack([free[None][:num_free], held, jobs.demand[waiting]])
        self._believed = {name: self._lasting(_believed(jobs, name)) for name in BELIEVED}
        self._believed["order_estimate"][: self.num_before] = 1  # any rule starts them at once

    def _lasting(self, seconds: Seconds) -> Seconds:
        """Lengths in the sequence of jobs that last for so long in all, int64 ``(num_jobs,)``.

        What is free is held up to the instant, and what runs ends as long after it as really.
        """
        ordered, num = seconds[self._order], self._elapsed.size
        left = np.maximum(ordered[:num] - self._elapsed, 1) + self.now
        return np.concatenate([np.full(self._num_free, self.now), left, ordered[num:]])

    def jobset(self, run: Seconds, later: _Later) -> JobSet:
        """One future, from run times of the moment's jobs, int64 ``(num_jobs,)``."""
        more, rows = later.jobs, later.rows
        columns = {
            name: np.concatenate([known, _believed(more, name)[rows]])
            for name, known in self._believed.items()
        }
        nobody = np.zeros(self._num_free, np.int64)
        columns["user"] = np.concatenate(
            [nobody, user_of(self._jobs)[self._order], user_of(more)[rows]]
        )
        submit = np.concatenate([self._arrival - self.now, later.after]) + self._time
        columns["submit"] = np.maximum(submit, 0)
        return JobSet.of(
            np.concatenate([self._arrival, self.now + later.after]),
            np.concatenate([self._lasting(run), later.run]),
            np.vstack([self._demand, more.demand[rows]]),
            attributes=columns,
        )


def _believed(jobs: JobSet, name: str) -> Seconds:
    """One of `BELIEVED`, or what the user asked for."""
    return np.asarray(jobs.attributes.get(name, asked(jobs)), np.int64)


def _starts(
    jobsets: list[JobSet], sequence: _Sequence, simulator: Any, policy: PlayedPolicy
) -> Seconds:
    """Seconds after the instant, int64 ``(num_jobsets, num_waiting)``."""
    after = np.empty((len(jobsets), sequence.num_waiting), np.int64)
    before, waiting = np.arange(sequence.num_before), np.arange(sequence.num_waiting)
    for first in range(0, len(jobsets), _SIDE_BY_SIDE):
        part = jobsets[first : first + _SIDE_BY_SIDE]
        simulator.load(part, get_objective("completion_time"))
        policy.play(simulator, np.zeros(len(part), np.uint64))
        start, place = simulator.rows.start, simulator.batch.place[:, None]
        if start[place + before].any():
            raise InputError(
                f"{policy.name} holds back jobs that fit, so the present cannot be built again in "
                f"its simulator; take a policy that only orders jobs"
            )
        begun = start[place + before.size + waiting]
        # A job that does not start before the clock ends starts after all that anybody asks for.
        after[first : first + len(part)] = np.where(begun < 0, _LONGEST_S, begun - sequence.now)
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
        None where the assumptions do not hold: without a bound, where reservations do not go by
        what users ask for, or where a job has outlived that.
    """
    jobs, now, limit = moment.jobs, moment.time, asked(moment.jobs)
    ends = moment.start[moment.running] + limit[moment.running]
    corrected = (_believed(jobs, "reserve_estimate") != limit).any()
    if not world.max_wait or corrected or (ends < now).any() or world.every_step:
        return None
    last = int(ends.max(initial=now))
    due = jobs.arrival[moment.waiting].astype(np.int64) + world.max_wait
    begun = np.where(due < now, last, np.maximum(last, due + longest))
    before = np.cumsum(limit[moment.waiting]) - limit[moment.waiting]
    return np.asarray(begun + before - now, np.int64)
