"""When the jobs that wait at a site start, from its queue and its log.

The log says how far users' estimates have been off, and what arrives. Played again under the policy
in charge, it also says how far what is foreseen holds, which corrects the intervals.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.evaluation.metrics import size_class_of
from cluster_env.forecasting.checks import Calibration, check_starts
from cluster_env.forecasting.moments import MachineMoment
from cluster_env.forecasting.past import NEVER, SitePast, asked
from cluster_env.forecasting.starts import (
    NUM_FUTURES,
    forecast,
    latest_starts,
    require_played,
)
from cluster_env.workloads.hashing import hashed_name
from cluster_env.workloads.histories import ends_in_log
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.worlds.hpc.world import HPC
from rllib_configs.snapshot import RESOURCES, Queue, SiteJob, StartTime
from rllib_configs.worlds.hpc.advice import (
    LEAST_LIMIT_S,
    LONGEST_S,
    QueuedMachine,
    demand_of,
    machine_of_queue,
)

__all__ = ["Foreseer", "check_starts"]

_WEEK_S = 7 * 86_400


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

    def check(self, queue: Queue) -> None:
        """Makes sure that the policy can be played on, on the machine of a queue.

        Raises:
            InputError: if not.
        """
        require_played(self._make(machine_of_queue(self._world(queue), queue).world))

    def foresee(self, queue: Queue) -> tuple[StartTime, ...]:
        """When each job that waits starts, by arrival; jobs that can never start are left out.

        Raises:
            InputError: if the policy cannot be played on, or no job of the log fits the machine.
        """
        machine = machine_of_queue(self._world(queue), queue)
        # What a site calls a limit ends the job.
        machine = replace(machine, world=replace(machine.world, kill_at_estimate=True))
        if not machine.waiting:
            return ()
        policy, past = self._make(machine.world), self._past(machine, queue.time)
        moment = self._moment(machine, queue.time)
        rng = np.random.default_rng(self._seed)
        made = forecast(moment, past, machine.world, policy, num_futures=self._num_futures, rng=rng)
        demand = moment.jobs.demand[moment.waiting]
        size = size_class_of(demand, np.asarray(machine.world.capacity))
        calibration = self._calibration(machine.world, policy, past.jobs)
        shown = np.rint(made.quantiles(calibration.levels[:, size])).astype(np.int64) + queue.time
        longest = int(max(asked(past.jobs).max(), asked(moment.jobs).max()))
        latest = latest_starts(moment, machine.world, longest)
        return tuple(
            StartTime(
                job.job,
                job.expected,
                queue.time + int(made.plan[k]),
                tuple(map(int, shown[:, k])),  # type: ignore[arg-type]
                None if latest is None else queue.time + int(latest[k]),
            )
            for k, job in enumerate(machine.waiting)
        )

    def _calibration(self, world: HPC, policy: Policy, jobs: JobSet) -> Calibration:
        if not self._num_instants:
            return Calibration.none()
        if world not in self._calibrations:
            checked = check_starts(
                jobs,
                world,
                policy,
                num_instants=self._num_instants,
                num_futures=self._num_futures,
                seed=self._seed,
            )
            self._calibrations = {world: checked.calibration}  # of the machine as it is
        return self._calibrations[world]

    def _past(self, machine: QueuedMachine, time: int) -> SitePast:
        """What the log says, on its own clock, which begins with its first submission."""
        log, world = self._log, machine.world
        names = [RESOURCES[k] for k in machine.counted]
        columns = [
            log.demand[:, log.resources.index(name)]
            if name in log.resources
            else np.zeros(log.num_jobs, np.int64)
            for name in names
        ]
        demand = np.stack(columns, axis=1)
        first, last = int(log.submit[0]), int(log.submit[-1])
        now = last if log.epoch is None else time - log.epoch
        if not first < now <= last:
            # The log's last moment at the same hour of the same day of the week.
            now = last - (last - now) % _WEEK_S
        rows = (demand <= np.asarray(world.capacity)).all(axis=1) & (log.submit <= now)
        if not rows.any():
            raise InputError(f"no job of {log.path} was submitted by then and fits the site")
        estimate, run = np.minimum(log.estimate[rows], LONGEST_S), log.run[rows]
        end = ends_in_log(log)[rows]
        known = (end <= now) | (now == last)
        jobs = JobSet.of(
            log.submit[rows] - first,
            run,
            demand[rows],
            attributes={"estimate": estimate, "user": log.ids["user"][rows]}
            if "user" in log.ids
            else {"estimate": estimate},
        )
        return SitePast(
            now - first, jobs, np.where(known, run, estimate), np.where(known, end, NEVER)
        )

    @cached_property
    def _users(self) -> dict[str, int]:
        """Numbers of users in the log, by their names and by hashes of these."""
        names = [str(name) for name in self._log.names.get("user", ())]
        plain = {name: number for number, name in enumerate(names)}
        return {**{hashed_name("user", name): number for name, number in plain.items()}, **plain}

    def _user(self, jobs: Sequence[SiteJob]) -> NDArray[np.int64]:
        others: dict[str, int] = {}
        return np.array(
            [
                self._users.get(
                    job.user, len(self._users) + others.setdefault(job.user, len(others))
                )
                for job in jobs
            ],
            np.int64,
        )

    def _moment(self, machine: QueuedMachine, time: int) -> MachineMoment:
        """The machine now, by a clock that begins with its oldest job."""
        jobs = sorted(
            [*machine.running, *machine.waiting],
            key=lambda job: (job.eligible, len(job.job), job.job),  # as `waiting` is
        )
        running = {job.job for job in machine.running}
        base = min(time, *(job.eligible for job in jobs))
        base = max(base, time - LONGEST_S)
        begin = [max(job.start, base) - base if job.job in running else -1 for job in jobs]
        usual = max(LEAST_LIMIT_S, *(job.limit for job in jobs))
        limit = [
            min(job.limit or max(usual, time - job.start if job.job in running else 0), LONGEST_S)
            for job in jobs
        ]
        made = JobSet.of(
            [np.clip(job.eligible, base, time) - base for job in jobs],
            limit,
            demand_of(jobs, machine.counted),
            attributes={"estimate": limit, "user": self._user(jobs)},
        )
        return MachineMoment(time - base, made, np.array(begin, np.int64))
