"""When the jobs that wait at a site start, from its queue and its log.

The log says how far users' estimates have been off, and what arrives. Played again under the policy
in charge, it also says how far what is foreseen holds, which corrects the intervals.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.evaluation.metrics import size_class_of
from cluster_env.forecasting.checks import Calibration, check_starts
from cluster_env.forecasting.moments import MachineMoment
from cluster_env.forecasting.past import NEVER, SitePast, asked
from cluster_env.forecasting.sequences import LONGEST_S as NEVER_STARTS_S
from cluster_env.forecasting.starts import (
    NUM_FUTURES,
    forecast,
    latest_starts,
    require_played,
)
from cluster_env.sites.description import Site
from cluster_env.sites.recorded_jobs import on_site
from cluster_env.workloads.hashing import hashed_name
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.worlds.hpc.world import HPC
from rllib_configs.snapshot import RESOURCES, RUNNING, Queue, SiteJob, Snapshot, StartTime
from rllib_configs.worlds.hpc.advice import (
    LEAST_LIMIT_S,
    LONGEST_S,
    QueuedMachine,
    demand_of,
    machine_of_queue,
)
from rllib_configs.worlds.hpc.live_moment import LiveSite
from rllib_configs.worlds.hpc.live_site import jobset_of, number_of

__all__ = ["Foreseer", "check_starts"]

CYCLE_S = 60
"""A cycle of Slurm's scheduler, which starts jobs, and looks for those that are over their limits,
every half minute by default. What is foreseen knows no cycles, so one is added at the late end."""

_WEEK_S = 7 * 86_400
_NUMBER = re.compile(r"\d+")


class Foreseer:
    """Foresees the starts at a site.

    Args:
        log: of the site.
        world: from a queue, which resources count.
        make: makes the policy in charge for a machine.
        num_instants: of the log, at which what is foreseen is checked once, to correct intervals; 0
            for no correction.
        num_futures: that are played on at each look.
        seed: of the futures.
    """

    def __init__(
        self,
        log: RecordedJobs,
        world: Callable[[Queue], HPC],
        make: Callable[[HPC], Policy],
        *,
        num_instants: int,
        num_futures: int = NUM_FUTURES,
        seed: int = 0,
    ) -> None:
        self._log, self._world, self._make = log, world, make
        self._num_instants, self._num_futures, self._seed = num_instants, num_futures, seed
        self._calibrations: dict[HPC, Calibration] = {}
        self._logs: dict[Site, RecordedJobs] = {}

    def check(self, queue: Queue) -> None:
        """Makes sure that the policy can be played on, on the machine of a queue.

        Raises:
            InputError: if not.
        """
        require_played(self._make(machine_of_queue(self._world(queue), queue).world))

    def foresee(self, queue: Queue, snapshot: Snapshot | None = None) -> tuple[StartTime, ...]:
        """When each job that waits starts, by arrival.

        With a snapshot that has the site's rules, it is the site that is played; then jobs that
        only a limit keeps from starting are foreseen, too. Else the machine is one pool, and jobs
        that can never start are left out.

        Raises:
            InputError: if the policy cannot be played on, or no job of the log fits the machine.
        """
        if snapshot is not None and _is_described(snapshot):
            return self._at_site(queue, snapshot)
        machine = machine_of_queue(self._world(queue), queue)
        # What a site calls a limit ends the job.
        world = replace(machine.world, kill_at_estimate=True)
        if not machine.waiting:
            return ()
        moment = self._moment([*machine.running, *machine.waiting], machine, queue.time)
        names = [RESOURCES[k] for k in machine.counted]
        log = _of_resources(self._log, names)
        fits = np.asarray((log.demand <= np.asarray(world.capacity)).all(axis=1))
        past = self._past(log, fits, queue.time)
        seen = self._seen(moment, past, world, world)
        waiting = sorted(machine.waiting, key=_by_arrival)
        return self._times(waiting, seen, queue.time, {})

    def _at_site(self, queue: Queue, snapshot: Snapshot) -> tuple[StartTime, ...]:
        live = LiveSite(snapshot, self._log.names.get("constraint", ()))
        never = live.never()
        waiting = [job for job in live.waiting if job.job not in never]
        rest = tuple(
            StartTime(job.job, job.expected, 0, None, None, (never[job.job],))
            for job in live.waiting
            if job.job in never
        )
        if not waiting:
            return rest
        base = machine_of_queue(self._world(queue), queue).world
        base = replace(base, kill_at_estimate=True)
        world, usual = (replace(base, site=site) for site in (live.site, live.usual))
        log = self._log_at(live.usual)
        past = self._past(log, np.ones(log.num_jobs, np.bool_), queue.time)
        moment = self._moment_at(live, waiting, queue.time)
        seen = self._seen(moment, past, world, usual)
        lacks = {job.job: live.without_model(job) for job in waiting}
        return self._times(sorted(waiting, key=_by_arrival), seen, queue.time, lacks) + rest

    def _seen(self, moment: MachineMoment, past: SitePast, world: HPC, usual: HPC) -> "_Seen":
        """What is foreseen, in seconds after the moment; the log was of the usual machine."""
        policy = self._make(world)
        rng = np.random.default_rng(self._seed)
        made = forecast(moment, past, world, policy, num_futures=self._num_futures, rng=rng)
        size = size_class_of(moment.jobs.demand[moment.waiting], np.asarray(world.capacity))
        levels = self._calibration(usual, past.jobs).levels[:, size]
        shown = np.rint(made.quantiles(levels)).astype(np.int64)
        longest = int(max(asked(past.jobs).max(), asked(moment.jobs).max()))
        never = np.asarray((made.after >= NEVER_STARTS_S).any(axis=0))
        return _Seen(made.plan, shown, latest_starts(moment, world, longest), never)

    def _times(
        self,
        waiting: Sequence[SiteJob],
        seen: "_Seen",
        time: int,
        lacks: Mapping[str, tuple[str, ...]],
    ) -> tuple[StartTime, ...]:
        """By Unix time. A cycle of the site's scheduler may pass before it starts what it can."""
        rows = []
        for k, job in enumerate(waiting):
            at: Any = tuple(int(time + after) for after in seen.shown[:, k])
            at = (*at[:-1], at[-1] + CYCLE_S)
            words = lacks.get(job.job, ())
            if seen.never[k]:
                at, words = None, (*words, "does not start in all simulations")
            latest = None if seen.latest is None else time + int(seen.latest[k])
            plan = time + int(seen.plan[k])
            rows.append(StartTime(job.job, job.expected, plan, at, latest, words))
        return tuple(rows)

    def _calibration(self, world: HPC, jobs: JobSet) -> Calibration:
        if not self._num_instants:
            return Calibration.none()
        if world not in self._calibrations:
            checked = check_starts(
                jobs,
                world,
                self._make(world),
                num_instants=self._num_instants,
                num_futures=self._num_futures,
                seed=self._seed,
            )
            self._calibrations = {world: checked.calibration}  # of the machine as it is
        return self._calibrations[world]

    def _log_at(self, site: Site) -> RecordedJobs:
        """The log's jobs at a site."""
        if site not in self._logs:
            self._logs = {site: on_site(self._log, site)}
        return self._logs[site]

    def _past(self, log: RecordedJobs, fits: NDArray[np.bool_], time: int) -> SitePast:
        """What the log says, on its own clock, which begins with its first submission."""
        first, last = int(log.submit[0]), int(log.submit[-1])
        now = last if log.epoch is None else time - log.epoch
        if not first < now <= last:
            # The log's last moment at the same hour of the same day of the week.
            now = last - (last - now) % _WEEK_S
        rows = fits & (log.submit <= now)
        if not rows.any():
            raise InputError(f"no job of {log.path} was submitted by then and fits the site")
        estimate, run = np.minimum(log.estimate[rows], LONGEST_S), log.run[rows]
        end = (log.start + log.run)[rows]
        known = (end <= now) | (now == last)
        attributes = {"estimate": estimate}
        if "user" in log.ids:
            attributes["user"] = log.ids["user"][rows]
        attributes |= {name: column[rows] for name, column in log.attributes.items()}
        jobs = JobSet.of(log.submit[rows] - first, run, log.demand[rows], attributes=attributes)
        return SitePast(
            now - first, jobs, np.where(known, run, estimate), np.where(known, end, NEVER)
        )

    @cached_property
    def _users(self) -> dict[str, int]:
        """Numbers of users in the log, by their names and by hashes of these."""
        return _by_name(self._log, "user")

    def _user(self, jobs: Sequence[SiteJob]) -> NDArray[np.int64]:
        known = dict(self._users)
        return np.array([number_of(known, job.user) for job in jobs], np.int64)

    def _numbers_at(self, site: Site) -> tuple[dict[str, int], dict[str, int]]:
        """Numbers of users and accounts as `on_site` gives them to jobs of the log."""
        users, accounts = (
            {name: len(own) + number for name, number in known.items()}
            | {name: place for place, name in enumerate(own)}
            for known, own in (
                (self._users, site.user_names),
                (_by_name(self._log, "group"), site.account_names),
            )
        )
        return users, accounts

    def _moment(self, jobs: Sequence[SiteJob], machine: QueuedMachine, time: int) -> MachineMoment:
        """The machine now, by a clock that begins with its oldest job."""
        clock = _Clock(jobs, time)
        jobs = sorted(jobs, key=_by_arrival)
        running = {job.job for job in machine.running}
        limit = [clock.limit(job, job.job in running) for job in jobs]
        made = JobSet.of(
            [clock.arrival(job) for job in jobs],
            limit,
            demand_of(jobs, machine.counted),
            attributes={"estimate": limit, "user": self._user(jobs)},
        )
        begin = [clock.start(job) if job.job in running else -1 for job in jobs]
        return MachineMoment(time - clock.base, made, np.array(begin, np.int64))

    def _moment_at(self, live: LiveSite, waiting: Sequence[SiteJob], time: int) -> MachineMoment:
        """The site now, likewise."""
        place = {job.job: k for k, job in enumerate(live.running)}
        jobs = sorted([*live.running, *waiting], key=_by_arrival)
        clock = _Clock(jobs, time)
        known = jobset_of(live.site, live.rows(jobs), *self._numbers_at(live.site))
        limit = [clock.limit(job, job.job in place) for job in jobs]
        made = JobSet.of(
            [clock.arrival(job) for job in jobs],
            limit,
            known.demand,
            attributes={**known.attributes, "estimate": limit},
        )
        begin = [clock.start(job) if job.job in place else -1 for job in jobs]
        order = [place[job.job] for job in jobs if job.job in place]
        return MachineMoment(
            time - clock.base,
            made,
            np.array(begin, np.int64),
            live.nodes.select(np.array(order, np.int64)),
            shift=clock.base,
        )


@dataclass(frozen=True, eq=False)
class _Seen:
    """Seconds after a moment, ``(num_waiting,)``; `shown` has a row for each of `LEVELS`."""

    plan: NDArray[np.int64]
    shown: NDArray[np.int64]
    latest: NDArray[np.int64] | None
    never: NDArray[np.bool_]


class _Clock:
    """Seconds of a clock that begins with the oldest of some jobs, from Unix time."""

    def __init__(self, jobs: Sequence[SiteJob], time: int) -> None:
        self._time = time
        self.base = max(min(time, *(job.eligible for job in jobs)), time - LONGEST_S)
        self._usual = max(LEAST_LIMIT_S, *(job.limit for job in jobs))

    def arrival(self, job: SiteJob) -> int:
        return min(max(job.eligible, self.base), self._time) - self.base

    def start(self, job: SiteJob) -> int:
        return max(job.start, self.base) - self.base

    def limit(self, job: SiteJob, runs: bool) -> int:
        elapsed = self._time - job.start if runs else 0
        return min(job.limit or max(self._usual, elapsed), LONGEST_S)


def _by_arrival(job: SiteJob) -> tuple[int, list[int], str]:
    """By time, and those of one second by their numbers: 2_1, 2_10, 3."""
    return job.eligible, [int(number) for number in _NUMBER.findall(job.job)], job.job


def _by_name(log: RecordedJobs, kind: str) -> dict[str, int]:
    """Numbers of users or groups in a log, by their names and by hashes of these."""
    plain = {str(name): number for number, name in enumerate(log.names.get(kind, ()))}
    return {**{hashed_name(kind, name): number for name, number in plain.items()}, **plain}


def _is_described(snapshot: Snapshot) -> bool:
    """Whether a site says its rules, its nodes, and where each job runs."""
    placed = all(job.node_list for job in snapshot.in_state(RUNNING))
    return snapshot.restrictions is not None and bool(snapshot.nodes) and placed


def _of_resources(log: RecordedJobs, names: Sequence[str]) -> RecordedJobs:
    """A log with what its jobs ask for of some resources."""
    nothing = np.zeros(log.num_jobs, np.int64)
    columns = dict(zip(log.resources, log.demand.T, strict=True))
    demand = np.stack([columns.get(name, nothing) for name in names], axis=1)
    return replace(log, demand=demand, resources=tuple(names), optional=())
