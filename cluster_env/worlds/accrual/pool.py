"""Several equal machines with one queue (section 4.2): whole episodes under a rule.

At each instant jobs finish on all machines, and new ones join the queue. Then squeezed jobs grow,
and jobs start that fit, by one of the paper's two heuristics: machine by machine the best-fitting
job, or job by job, in order of arrival, the best-fitting machine. In the second stage each machine
by itself decides on preemption and squeezing, one after the other, as a single server does. A job
that was preempted goes back to the common queue, and may go on anywhere.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import unknown
from cluster_env.core.schedule import Schedule
from cluster_env.objectives import UTILITY
from cluster_env.worlds.accrual.arrays import BEST_FIT, PREEMPTING, Costs, Jobs, Machine, Rows
from cluster_env.worlds.accrual.events import begin_episode, end_episode, has_room, settle
from cluster_env.worlds.accrual.history import schedule_of
from cluster_env.worlds.accrual.joining import joined_costs, joined_jobs, new_rows, with_more_room
from cluster_env.worlds.accrual.offers import offer, take
from cluster_env.worlds.accrual.play import SCORERS, Rule, choose, learn_at, learners_for
from cluster_env.worlds.accrual.running import (
    begin_job,
    enqueue,
    finish_jobs,
    grow_jobs,
    next_finish,
)
from cluster_env.worlds.accrual.starting import drop_expired, start_fitting
from cluster_env.worlds.accrual.td import Learners, function_of
from cluster_env.worlds.accrual.world import Accrual

ALLOCATIONS = ("machine", "job")
"""What is fixed while the other is chosen by best fit."""

_NEVER = 2**62


class AccrualPool:
    """Machines of one world with a common queue.

    Args:
        world: each machine.
        machines: how many there are.
        allocation: one of `ALLOCATIONS`. The paper expects the first to be better where there are
            fewer machines than waiting jobs.
    """

    def __init__(self, world: Accrual, machines: int, allocation: str = "machine") -> None:
        if machines < 1:
            raise InputError(f"a pool needs one machine or more, but {machines} were given")
        if allocation not in ALLOCATIONS:
            raise unknown("allocation", allocation, ALLOCATIONS)
        self._world, self._machines, self._by_job = world, machines, allocation == "job"
        self._jobsets: tuple[JobSet, ...] = ()
        self._jobs: Jobs
        self._costs: Costs
        self._rows: Rows  # the machines of an episode side by side; the queue is that of the first

    def load(self, jobsets: Sequence[JobSet]) -> None:
        """Takes the jobs of the next episodes, one for each jobset.

        Raises:
            InputError: if there is none, or a job cannot run on one of the machines.
        """
        if not jobsets:
            raise InputError("at least one jobset is needed")
        for jobset in jobsets:
            self._world.check(jobset)
        self._jobsets = tuple(jobsets)
        self._jobs, self._costs = joined_jobs(jobsets, UTILITY), joined_costs(jobsets, UTILITY)
        episode = np.arange(len(jobsets), dtype=np.int32)
        size = int(self._world.state_space.shape[0])
        rows = new_rows(np.repeat(episode, self._machines), jobsets, self._world.machine, size)
        rows.of["place"] = np.repeat(rows.of["place"][:: self._machines], self._machines)
        self._rows = rows

    @property
    def earned(self) -> NDArray[np.float64]:
        """Final utility of what finished on each machine, float64 ``(episodes, machines)``."""
        earned: NDArray[np.float64] = self._rows.of["earned"].reshape(-1, self._machines)
        return earned

    def play(self, rule: Rule, *, learners: Learners | None = None, learning: bool = False) -> None:
        """Plays all episodes to their ends.

        Args:
            rule: what decides on each machine; jobs start by best fit.
            learners: one for each machine of each episode, or one for all if nobody learns.
            learning: whether they learn meanwhile, each from its own machine.

        Raises:
            InputError: if the rule has another order, or there are too few learners.
        """
        if rule.order != "best_fit":
            raise InputError(f"machines with one queue start jobs by best fit, not by {rule.order}")
        playing = learners_for(rule, learners, learning, self._rows.of.size)
        episode, resumed = 0, False
        while episode >= 0:
            episode = play_pools(
                *(rule.on(self._world.machine), self._jobs, self._costs, self._rows),
                *(self._machines, self._by_job, SCORERS.index(rule.scorer)),
                *(playing, learning, episode, resumed),
            )
            resumed = True
            if episode >= 0:
                self._rows = with_more_room(self._rows)

    def schedule(self) -> Schedule:
        """What became of the jobs; the pieces say on which machine."""
        machine = self._world.machine
        return schedule_of(machine, self._jobsets, self._jobs, self._rows, self._machines)


@njit_kernel
def play_pools(
    m: Machine,
    jobs: Jobs,
    costs: Costs,
    rows: Rows,
    machines: int,
    by_job: bool,
    scorer: int,
    it: Learners,
    learning: bool,
    begin: int,
    resumed: bool,
) -> int:
    """Plays episodes to their ends, one after the other; see `cluster_env.worlds.accrual.play`.

    Returns:
        The episode for which `Rows.pieces` has to grow before it is resumed, -1 if all have ended.
    """
    for episode in range(begin, rows.of.size // machines):
        head = episode * machines
        if not (resumed and episode == begin):
            for r in range(head, head + machines):
                begin_episode(m, jobs, rows, r)
        going = bool(rows.of[head].active)
        while going:
            for r in range(head, head + machines):
                # Time passes once, and two decisions are taken.
                if not has_room(m, rows, r, 3):
                    return episode
            going = _next_instant(m, jobs, costs, rows, head, machines, by_job)
            if not going:
                break
            for r in range(head, head + machines):
                _hand_on(rows, head, r)
                _decide(m, jobs, costs, rows, r, scorer, it)
                _hand_on(rows, r, head)
                if learning:
                    learn_at(m, rows, r, it)
    return -1


@njit_inlined
def _hand_on(rows: Rows, giver: int, taker: int) -> None:
    """Lets another machine see the queue; its jobs lie in the same place for both."""
    rows.of[taker].num_waiting = rows.of[giver].num_waiting


@njit_inlined
def _decide(
    m: Machine, jobs: Jobs, costs: Costs, rows: Rows, r: int, scorer: int, it: Learners
) -> None:
    """The second stage on one machine: section 4.1, steps 2 to 11."""
    rows.of[r].stage = PREEMPTING
    while offer(m, jobs, rows, r, False) > 0:
        p = it.p[function_of(it, r)]
        k = choose(scorer, it.kind, p, m.processors, m.longest, rows.states[r])
        take(m, jobs, costs, rows, r, k if k >= 0 else m.candidates)
        if rows.of[r].made:
            settle(m, jobs, costs, BEST_FIT, rows, r)


@njit_inlined
def _next_instant(
    m: Machine, jobs: Jobs, costs: Costs, rows: Rows, head: int, machines: int, by_job: bool
) -> bool:
    """Lets time pass until something happens on a machine; returns whether the episode goes on."""
    last = rows.of[head].first + rows.of[head].count
    coming = rows.of[head].first + rows.of[head].coming
    now = jobs.of[coming].arrival if coming < last else _NEVER
    for r in range(head, head + machines):
        now = min(now, next_finish(rows, r))
    if now == _NEVER or now > m.max_time:
        for r in range(head, head + machines):
            end_episode(m, jobs, costs, rows, r, now < _NEVER)
        return False
    for r in range(head, head + machines):
        rows.of[r].time = now
        rows.of[r].changed, rows.of[r].considered, rows.of[r].made = False, False, False
        finish_jobs(m, jobs, costs, rows, r)
    while coming < last and jobs.of[coming].arrival == now:
        enqueue(rows, head, rows.of[head].coming)
        rows.of[head].coming += 1
        coming += 1
    if m.grow_first:
        for r in range(head, head + machines):
            grow_jobs(m, jobs, costs, rows, r)
    if m.drop_expired:
        drop_expired(jobs, rows, head)
    if by_job:
        _allocate_jobs(jobs, rows, head, machines)
    else:
        for r in range(head, head + machines):
            _hand_on(rows, head, r)
            start_fitting(m, jobs, BEST_FIT, rows, r)
            _hand_on(rows, r, head)
    if not m.grow_first:
        for r in range(head, head + machines):
            grow_jobs(m, jobs, costs, rows, r)
    return True


@njit_inlined
def _allocate_jobs(jobs: Jobs, rows: Rows, head: int, machines: int) -> None:
    """Each waiting job that fits anywhere starts where the fewest processors stay idle."""
    k = 0
    while k < rows.of[head].num_waiting:
        job = int(rows.waiting[rows.of[head].place + k])
        size = jobs.of[rows.of[head].first + job].size
        best, least = -1, _NEVER
        for r in range(head, head + machines):
            if size <= rows.of[r].free < least:
                best, least = r, rows.of[r].free
        if best < 0:
            k += 1
            continue
        _hand_on(rows, head, best)
        begin_job(jobs, rows, best, job, size)
        _hand_on(rows, best, head)
