"""A batch-scheduled machine as a world: its options, and what a network sees of it."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.checks import FromFile, outputs, require_option_types, require_states
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import LARGEST, JobSet, require_classes, require_num_classes
from cluster_env.core.registry import unknown
from cluster_env.core.world import Features
from cluster_env.sites.description import RESOURCES, Site
from cluster_env.sites.reading import read_site
from cluster_env.sites.requests import check_site
from cluster_env.sites.weights import Weights
from cluster_env.workloads.estimates import BELIEVED
from cluster_env.worlds.hpc.decisions import REWARDS
from cluster_env.worlds.hpc.features import context_names, describe, item_names
from cluster_env.worlds.hpc.rules import BACKFILLING
from cluster_env.worlds.hpc.run_times import RUN_TIMES
from cluster_env.worlds.hpc.simulator import HPCSimulator
from cluster_env.worlds.hpc.site_simulator import SiteSimulator
from cluster_env.worlds.hpc.state import StateLayout


@dataclass(frozen=True)
class HPC:
    """A machine of identical processors, and rigid jobs that run to their ends.

    The decision process of the environment ``HPC-v0``:

    * Clock: whole seconds, from event to event. At one instant jobs finish, then jobs arrive, then
      the policy starts jobs one after the other, until it waits or no job that it sees fits.
    * State: int32 ``(state_size,)``, see `cluster_env.worlds.hpc.state`: sums over waiting and
      running jobs, means over recent arrivals, free units, and the `queue` oldest waiting jobs.
      Run times are not in it, but what is believed of them. Networks see `features` of it.
    * Action: k, 0 to `queue` - 1, starts the k-th oldest waiting job. `queue` waits for the next
      event at which a job that is seen fits, and so does whatever is not allowed.
    * Mask: jobs that fit may start. Waiting is allowed where a job runs; where none does, the
      oldest job starts instead.
    * Reward: minus all that a job will have cost under the objective when it is done, at the
      decision that starts it; it is known then. So no decision is charged for what it cannot
      change, and the undiscounted return is minus what the schedule costs. It is 0 at most where an
      objective only costs, and has no lower bound.
    * End: terminated when all jobs have finished. Truncated when the clock would pass `max_time`;
      what waits is then charged with what it has cost.

    At a site (`site`), a job may start where its nodes, the limits that hold for it and the
    calendar allow that, and jobs are seen in the order of tiers and then of their entry into the
    queue. A state also shows, of each job, whether it may start and whether it would delay the
    first job of a partition, what is free in its partition, and what room its limits leave
    (`cluster_env.worlds.hpc.site_arrays.SITE_JOB`); what networks see of a job is of its partition
    as of a machine by itself. An empty machine may wait there, for a reservation or the end of an
    outage, as long as anything is to come. A run that a failing node cuts short is paid back; a job
    that is lost has cost what it had until then.

    The formulations of Cunha's thesis (2022), chapter 4, are options of the same world:

    ===============  ==========  ============  ==================================================
    id               asked       `reward`      thesis
    ===============  ==========  ============  ==================================================
    HPC-v0           at events   ``at_start``  none
    HPCBase-v0       every step  ``base``      section 4.4, eq. 4.1
    HPCSparse-v0     if one fits ``sparse``    section 4.6.2
    HPCReduced-v0    if one fits ``reduced``   sections 4.6.2 and 4.6.3
    HPCOptions-v0    if one fits ``options``   section 4.7, eq. 2.18
    ===============  ==========  ============  ==================================================

    The online cost of a job in a second is what the objective says; under ``slowdown`` that is
    1 / duration (eq. 2.1). ``base``: minus the online cost of all jobs in the system while time
    passes; starting a job takes no time and so costs nothing (eq. 4.1). ``sparse``: of the time
    between two decisions only one time step counts, and none after a start, since intermediate
    rewards are lost (figure 4.4). ``reduced``: the same of the waiting jobs that the policy sees
    alone. ``options``: of these jobs all the time until the next decision, discounted by the second
    (eq. 2.18). Training may then use ``gamma`` 1, as section 4.7.3 does with PPO, or the same
    discount by the second from one decision to the next (eq. 2.19); anything else would discount
    twice, and is refused. Deliberate differences: figure 4.4 counts a job that runs in the
    semi-MDP, section 4.7.2 jobs that wait alone, and ``options`` follows the section; the thesis
    lets an empty machine wait, which never ends under a policy that always does.

    The bound on waits: with `max_wait` L, a waiting job is overdue at an event (an arrival or a
    finish) later than L after its arrival. Overdue jobs stand before all others, in order of
    arrival, and get reservations one after the other, each the earliest that delays none before
    it by the estimates; these are made anew at each event. A job starts at once if its reservation
    begins now. Others start, in the order of the rule or policy, only where they delay none of
    these. In the environment an overdue job that may start does so whatever the action is, and an
    action that would delay one waits.

    Theorem: let job j wait at s = arrival(j) + L, let A be the jobs that arrived before j and
    wait at s, and E the latest end, by the estimates, of the jobs that run at s. Then j starts
    by E + the sum of the estimates of A. It holds where no job outlives its estimate (or jobs
    are killed at it), jobs that run are believed to take that long (what is believed of those
    that wait does not matter), no node is lost, every job fits the empty machine, the clock
    does not end (`max_time`), and decisions come at events (without `every_step`); a policy
    that decides by states must see the overdue jobs (`queue`). Proof: some job runs at s, else
    j would have started, so the next event is no later than E. There each of A and j has a
    reservation, and as the earliest room is taken in order, each begins by E + the estimates of
    A before it. Later, what runs only ends earlier than expected or, if it is new, leaves room
    for all these reservations. So a job fits beside what runs from its last reservation on, or
    from the last end of the overdue jobs before it, whichever is later, and by induction over
    these jobs and over events no reservation moves beyond the bound.

    Versions: all ids are the first.

    Attributes:
        processors: at least 1.
        memory: units of memory, in whatever unit jobs ask for it; 0 if it is not counted.
        gpus: GPUs; 0 if they are not counted.
        num_classes: classes of jobs (queues, groups of users) that networks tell apart, 1 to 16;
            with 1, jobs of all classes are alike.
        queue: waiting jobs that a policy sees, the first in order of arrival, and may start.
        backfilling: ``strict``, ``skip``, ``easy`` or ``conservative``, what rules do that are
            named without it (`cluster_env.worlds.hpc.rules.Rule`).
        priority: weights of the order `priority`, as the site has them.
        kill_at_estimate: whether jobs are killed when they have run for as long as they asked for,
            and not left to run on. They are shorter then for rewards and metrics alike.
        max_time: clock after which an episode is truncated, in seconds.
        max_wait: seconds after which a job that waits is overdue, under every rule and policy; 0:
            never. See `The bound on waits` above.
        run_times: what a scheduler believes of jobs, ``user``, ``actual``, ``recent`` or ``mixed``
            (`cluster_env.worlds.hpc.run_times.RUN_TIMES`). Jobs of which something is believed
            already (`BELIEVED`) stay as they are.
        time_step: seconds that pass where a policy waits; 0: until the next event at which a job
            that it sees fits.
        every_step: whether a policy is asked after every step, and not only where a job fits.
        reward: ``at_start``, ``base``, ``sparse``, ``reduced`` or ``options``.
        reward_discount: of a second, in the reward ``options``.
        horizon: rows in which a state also shows what is expected of the machine, which the
            observations `image`, `compact` and `events` draw; 0 for none. Those observations take
            rows of their own where it is 0.
        horizon_step: seconds from one row of the horizon to the next; 0: each row is the next time
            at which a job is expected to end.
        site: nodes, partitions, limits and calendar (`cluster_env.sites`), or the files
            that describe them; its totals are then the machine's. None is one pool of processors.

    Raises:
        InputError: for an option of another type, or out of range.
    """

    kind: ClassVar[str] = "hpc"

    processors: int = 256
    memory: int = 0
    gpus: int = 0
    num_classes: int = 1
    queue: int = 64
    backfilling: str = "easy"
    priority: Weights = field(default_factory=Weights)
    kill_at_estimate: bool = False
    max_time: int = LARGEST
    max_wait: int = 0
    run_times: str = RUN_TIMES[0]
    time_step: int = 0
    every_step: bool = False
    reward: str = "at_start"
    reward_discount: float = 0.99
    horizon: int = 0
    horizon_step: int = 0
    site: Annotated[Site | None, FromFile(read_site)] = None

    def __post_init__(self) -> None:
        if self.site is not None:
            for name, total in zip(RESOURCES, self.site.totals, strict=True):
                object.__setattr__(self, name, total)
        require_option_types(self)
        if not 1 <= self.processors <= LARGEST:
            raise InputError(
                f"a machine needs 1 to {LARGEST:,} processors, but {self.processors} was given"
            )
        for name in ("memory", "gpus"):
            if not 0 <= getattr(self, name) <= LARGEST:
                raise InputError(
                    f"{name} must be 0 (not counted) to {LARGEST:,}, but {getattr(self, name)} was "
                    f"given"
                )
        if not 1 <= self.max_time <= LARGEST:
            raise InputError(
                f"max_time must be 1 to {LARGEST:,} seconds, but {self.max_time} was given"
            )
        if not 0 <= self.max_wait <= LARGEST:
            raise InputError(
                f"max_wait must be 0 (no bound) to {LARGEST:,} seconds, but {self.max_wait} was "
                f"given"
            )
        if self.backfilling not in BACKFILLING:
            raise unknown("kind of backfilling", self.backfilling, BACKFILLING)
        if self.run_times not in RUN_TIMES:
            raise unknown("model of run times", self.run_times, RUN_TIMES)
        require_num_classes(self.num_classes)
        StateLayout(1, self.queue, self.horizon)
        most = LARGEST // max(self.horizon, 1)
        if not 0 <= self.horizon_step <= most or (self.horizon_step and not self.horizon):
            raise InputError(
                f"horizon_step must be 0 to {most:,} seconds, and goes with a horizon, but "
                f"{self.horizon_step:,} was given with a horizon of {self.horizon}"
            )
        if self.reward not in REWARDS:
            raise unknown("reward", self.reward, tuple(REWARDS))
        if self.time_step < 0 or (self.every_step and not self.time_step):
            raise InputError(
                f"time_step must be 0 (until the next event) or more seconds, and 1 or more with "
                f"every_step, but {self.time_step} was given"
            )
        if not 0 < self.reward_discount <= 1:
            raise InputError(
                f"a discount must be above 0 and at most 1, not {self.reward_discount:g}"
            )

    @cached_property
    def capacity(self) -> tuple[int, ...]:
        """Units of each resource that is counted, processors first."""
        return (self.processors, *(units for units in (self.memory, self.gpus) if units))

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Names of the resources that are counted."""
        counted = (name for name in ("memory", "gpus") if getattr(self, name))
        return ("processors", *counted)

    @cached_property
    def layout(self) -> StateLayout:
        """Where the parts of a state lie."""
        at_site, shows_classes = self.site is not None, self.num_classes > 1
        return StateLayout(len(self.capacity), self.queue, self.horizon, at_site, shows_classes)

    @cached_property
    def state_space(self) -> spaces.Box:
        """Whole numbers, see `cluster_env.worlds.hpc.state`."""
        return self.layout.space

    @property
    def num_actions(self) -> int:
        """One for each job that is seen, and waiting."""
        return self.queue + 1

    @cached_property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """See `cluster_env.worlds.hpc.features`."""
        return item_names(self.resources, self.num_classes), context_names(self.resources)

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every job can run on the empty machine.

        Raises:
            InputError: if one cannot, or has an impossible estimate.
        """
        if jobset.num_resources != len(self.capacity):
            raise InputError(
                f"jobs of this machine ask for {' and '.join(self.resources)}, but they ask for "
                f"{jobset.num_resources} resources"
            )
        too_large = (jobset.demand > np.asarray(self.capacity)).any(axis=1)
        narrow = jobset.demand[:, 0] < 1
        for broken, what in ((too_large, "more than the machine has"), (narrow, "no processor")):
            if broken.any():
                job = int(np.argmax(broken))
                raise InputError(
                    f"job {job} asks for {what}: {jobset.demand[job].tolist()} of "
                    f"{list(self.capacity)} {', '.join(self.resources)}"
                )
        if self.num_classes > 1:
            require_classes(jobset, self.num_classes)
        for name in BELIEVED:
            estimate = jobset.attributes.get(name)
            if estimate is None or not jobset.num_jobs:
                continue
            if estimate.ndim != 1 or estimate.min() < 1 or estimate.max() > LARGEST:
                raise InputError(
                    f"estimates must be 1 to {LARGEST:,} seconds, one for each job, but those of "
                    f"the attribute {name} reach from {estimate.min()} to {estimate.max()}"
                )
        if self.site is not None:
            check_site(self.site, jobset)

    def served(self, jobset: JobSet) -> JobSet:
        """The jobs as they run: those that outlive their estimates are cut, where jobs are killed.

        The attribute ``run_time`` keeps for how long they would have run.
        """
        limit = jobset.attributes.get("estimate")
        if not self.kill_at_estimate or limit is None or "run_time" in jobset.attributes:
            return jobset
        duration = np.minimum(jobset.duration, limit).astype(np.int32)
        attributes = {**jobset.attributes, "run_time": jobset.duration}
        return replace(jobset, duration=duration, attributes=attributes)

    def simulator(self) -> HPCSimulator | SiteSimulator:
        """A new simulator, with nothing loaded."""
        return HPCSimulator(self) if self.site is None else SiteSimulator(self)

    def features(self, states: NDArray[np.int32], out: Features | None = None) -> Features:
        """What a network sees: waiting jobs, the machine, and what may be done.

        A job may be started if it fits. Waiting is forbidden where nothing runs.

        Raises:
            InputError: if the arrays are not of this world.
        """
        require_states(states, self.state_space)
        n, (of_item, of_context) = states.shape[0], self.feature_names
        arrays = outputs(
            out,
            ((n, self.queue, len(of_item)), np.float32),
            ((n, len(of_context)), np.float32),
            ((n, self.num_actions), np.bool_),
        )
        layout = self.layout
        describe(states, self._units, layout.jobs_at, layout.job_size, *arrays, layout.site)
        return Features(*arrays)

    @cached_property
    def _units(self) -> NDArray[np.int64]:
        """`capacity` for compiled code, int64 ``(num_resources,)``."""
        return np.asarray(self.capacity, np.int64)
