"""Servers with preemption and squeezing as a world: its options, and what a network sees."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.checks import (
    outputs,
    require_option_types,
    require_ranges,
    require_states,
)
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import LARGEST, JobSet
from cluster_env.core.registry import unknown
from cluster_env.core.utility import time_utility_functions
from cluster_env.core.world import Features
from cluster_env.worlds.accrual.features import Context, Item, describe
from cluster_env.worlds.accrual.orders import ALLOCATIONS
from cluster_env.worlds.accrual.simulator import AccrualSimulator
from cluster_env.worlds.accrual.state import CANDIDATE, HEADER, Options


@dataclass(frozen=True)
class Accrual:
    """Servers whose jobs are worth less the later they finish (Vengerov, sections 2 to 6).

    A job asks for K of the N processors of a machine and is K L units of work: L steps on all of
    them, more on fewer. Its *unit utility* decays with its completion time, and its *final utility*
    is that times K L. Running jobs may be preempted, and go on later where they stopped; waiting
    jobs may be squeezed into fewer processors than they ask for. Where there are several machines
    they have one queue (section 4.2), and a job runs on one machine at a time.

    **Clock.** Whole, from instant to instant at which a job arrives or finishes (section 4.1). At
    one instant jobs finish, then jobs arrive, squeezed jobs get free processors, the one of the
    highest unit utility at completion over the time until then first, and waiting jobs start that
    fit, by best fit. Then each machine decides in its turn, first on preemption and then
    on squeezing, where waiting jobs leave something to decide. A machine that has acted gives free
    processors away again. A decision takes no time.

    **Projects.** With several projects (section 6), a job's class is its project, and those of
    higher numbers have higher priority. From the highest to the lowest, each project in turn grows
    and starts its jobs and decides, as above, as if there were no jobs of lower ones: what those
    hold counts as free. Where it is needed, jobs of lower projects are preempted, those of the
    lowest remaining utility first. That is no action, and does not depend on `preempt`.

    **State.** int32, the columns `Header` and, for each of the `candidates`, `Candidate` of
    `cluster_env.worlds.accrual.state`: the machine whose turn it is, the queue, and for each
    candidate, a waiting job, the state that the machine would be in at once. Networks see the
    features `Item` and `Context` of `cluster_env.worlds.accrual.features`, all from 0 to 1.

    **Action.** One of ``candidates + 1``: start that candidate, by preempting jobs of no higher
    remaining utility (section 4.1, step 4) or on all that is free; the last one, void, starts none.

    **Mask.** Candidates that are there, and void, always. Other actions do nothing, as void.

    **Reward.** What jobs gained, less what they cost, until the next decision, by the objective.
    Under ``utility`` it is the final utility of the jobs that finished, so at least 0; under costs
    such as ``slowdown`` at most 0. The return of an episode that finishes all jobs is minus what
    the objective costs.

    **Episode.** It begins at time 0 with a decision, even if nothing can be chosen. It is
    *terminated* when all jobs have finished or been dropped, and *truncated* at `max_time`.

    What the paper leaves open is an option. It expects the allocation ``machine`` to be better than
    ``job`` where there are fewer machines than waiting jobs.

    Attributes:
        processors: processors of each machine, N in the paper.
        longest: steps by which times are divided in x2, an input of the value function; the paper's
            MaxJobLength.
        preempt: whether jobs may be preempted.
        squeeze: whether jobs may start on fewer processors than they ask for.
        candidates: number of waiting jobs that a decision can choose from, those that would gain
            the most utility.
        drop_expired: whether a waiting job is dropped once it would have no utility even if it
            started; otherwise it stays in the queue.
        max_time: time step after which an episode is truncated.
        machines: number of machines, which share one queue.
        allocation: how several machines share the jobs that fit (section 4.2). With ``machine``,
            each machine in turn takes the jobs that fit it best; with ``job``, each job in order of
            arrival goes to the machine that it fits best.
        projects: number of projects, of which higher numbers have higher priority. With 1, the
            classes of jobs do not count.
    """

    kind: ClassVar[str] = "accrual"

    processors: int = 24
    longest: int = 10
    preempt: bool = True
    squeeze: bool = True
    candidates: int = 16
    drop_expired: bool = False
    max_time: int = LARGEST
    machines: int = 1
    allocation: str = "machine"
    projects: int = 1

    def __post_init__(self) -> None:
        require_option_types(self)
        require_ranges(
            self,
            processors=(1, 65536),
            longest=(1, LARGEST),
            candidates=(1, 4096),
            max_time=(1, LARGEST),
            machines=(1, 4096),
            projects=(1, 256),
        )
        if self.allocation not in ALLOCATIONS:
            raise unknown("allocation", self.allocation, ALLOCATIONS)

    @cached_property
    def options(self) -> Options:
        """The options as compiled code reads them."""
        return Options(
            processors=int(self.processors),
            longest=int(self.longest),
            machines=int(self.machines),
            projects=int(self.projects),
            by_job=self.allocation == "job",
            preempt=bool(self.preempt),
            squeeze=bool(self.squeeze),
            candidates=int(self.candidates),
            drop_expired=bool(self.drop_expired),
            max_time=int(self.max_time),
        )

    @cached_property
    def state_space(self) -> spaces.Box:
        """Whole numbers, see `cluster_env.worlds.accrual.state`."""
        size = len(HEADER) + self.candidates * len(CANDIDATE)
        return spaces.Box(0, LARGEST, (size,), np.int32)

    @property
    def num_actions(self) -> int:
        """One for each candidate, and void."""
        return self.candidates + 1

    @property
    def capacity(self) -> int:
        """Processors of all machines."""
        return self.machines * self.processors

    @property
    def num_learners(self) -> int:
        """Value functions that can be learned in an episode: of each project on each machine."""
        return self.machines * self.projects

    @property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """See `cluster_env.worlds.accrual.features`."""
        return Item._fields, Context._fields

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every job can run on the empty server, and has a utility.

        Raises:
            InputError: if one cannot, or has none.
        """
        if jobset.num_resources != 1:
            raise InputError(
                "jobs of this world ask for processors only, but these ask for "
                f"{jobset.num_resources} resources"
            )
        tuf = time_utility_functions(jobset)
        too_large = jobset.demand[:, 0] > self.processors
        if too_large.any():
            job = int(np.argmax(too_large))
            raise InputError(
                f"job {job} asks for {jobset.demand[job, 0]} processors, but the server has "
                f"{self.processors}"
            )
        if self.projects > 1 and jobset.job_class.max(initial=0) >= self.projects:
            job = int(np.argmax(jobset.job_class >= self.projects))
            raise InputError(
                f"job {job} has class {jobset.job_class[job]}, but the world has projects="
                f"{self.projects}, so that classes lie in 0..{self.projects - 1}"
            )
        if tuf.ndim != 2 or tuf.shape[1] < 3 or tuf.shape[1] % 2 == 0 or not np.isfinite(tuf).all():
            raise InputError(
                "the attribute 'tuf' needs a row of P times, P values and an exponent for each job"
            )

    def simulator(self) -> AccrualSimulator:
        """A new simulator, with nothing loaded."""
        return AccrualSimulator(self, self.options)

    def features(self, states: NDArray[np.int32], out: Features | None = None) -> Features:
        """What a network sees: the states that the machine could be in next.

        Raises:
            InputError: for states or outputs of another shape or type.
        """
        require_states(states, self.state_space)
        count = states.shape[0]
        features = Features(
            *outputs(
                out,
                ((count, self.candidates, len(Item._fields)), np.float32),
                ((count, len(Context._fields)), np.float32),
                ((count, self.num_actions), np.bool_),
            )
        )
        describe(self.options, states, *features)
        return features
