"""Many episodes of a batch-scheduled machine side by side, event by event."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule, gather_attributes
from cluster_env.core.seeding import uniforms
from cluster_env.objectives import Objective
from cluster_env.worlds.hpc.events import Jobs
from cluster_env.worlds.hpc.mdp import REWARDS, Decisions
from cluster_env.worlds.hpc.play import make_room, play_all
from cluster_env.worlds.hpc.rlscheduler import PeerRoom, peer_scores, play_like_rlscheduler
from cluster_env.worlds.hpc.rules import PEER, Compiled, Rule, compiled
from cluster_env.worlds.hpc.schedgym import play_like_schedgym
from cluster_env.worlds.hpc.scored import make_scoring, play_scored
from cluster_env.worlds.hpc.scorer import MODES, Scorer
from cluster_env.worlds.hpc.state import AT_ARRIVAL, StateLayout
from cluster_env.worlds.hpc.step import NUM_SUMS, Costs, Machine, Rows, reset_rows, step_rows

_FOR_RULES = np.uint64(0x5EED)


class HPCSimulator:
    """Rigid jobs on one machine; an event-driven clock in seconds.

    At one instant jobs finish, then jobs arrive, then the policy decides, until it waits or no job
    that it sees fits; then time goes on to the next event at which one does. Action ``k`` starts
    the k-th oldest waiting job; any other, and a job that does not fit, waits. Where nothing runs,
    waiting is not possible, and the oldest job starts instead.

    The reward of a decision that starts a job is minus all that the job will have cost when it is
    done; it is known then. So no decision is charged for what it cannot change, and the
    undiscounted return of an episode is what its schedule costs.

    Args:
        capacity: units of each resource, processors first.
        layout: of the states.
        max_time: clock after which an episode is truncated, in seconds.
        kill_at_estimate: whether jobs end when their estimate is over.
        check: raises `InputError` for a jobset that cannot run.
        decisions: when the policy is asked, and what its reward is, if not as said above.
        horizon_step: seconds from row to row of a horizon, see `cluster_env.worlds.hpc.world.HPC`.
    """

    def __init__(
        self,
        capacity: Sequence[int],
        layout: StateLayout,
        max_time: int,
        kill_at_estimate: bool,
        check: Callable[[JobSet], None],
        decisions: Decisions = Decisions(),  # noqa: B008 - it is frozen
        horizon_step: int = 0,
    ) -> None:
        scope, whole = REWARDS[decisions.reward]
        self._machine = Machine(
            np.asarray(capacity, np.int64),
            layout.queue,
            layout.jobs_at,
            max_time,
            decisions.time_step,
            decisions.every_step,
            scope,
            whole,
            decisions.discount if decisions.reward == "options" else 1.0,
            layout.horizon,
            horizon_step,
            layout.clock_at,
            layout.arrivals_at,
        )
        self._layout, self._kill, self._check = layout, kill_at_estimate, check
        self._jobsets: tuple[JobSet, ...] = ()
        self._jobs: Jobs
        self._costs: Costs
        self._rows: Rows
        self._all = np.empty(0, np.int32)

    def load(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        """Takes the jobs of the next episodes and resets; see `Simulator.load`."""
        if not jobsets:
            raise InputError("at least one jobset is needed")
        for jobset in jobsets:
            self._check(jobset)
        self._jobsets = tuple(jobsets)
        self._jobs = _join(jobsets, self._kill)
        self._costs = _costs(jobsets, objective, self._jobs)
        each = np.repeat(np.arange(len(jobsets), dtype=np.int32), episodes_per_jobset)
        self._all = np.arange(each.size, dtype=np.int32)
        self._rows = _rows(each, self._jobs, self._layout)
        self.reset()

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to the beginning of their jobsets."""
        which = self._all if rows is None else rows
        reset_rows(self._machine, self._jobs, self._costs, self._rows, which)

    @property
    def num_rows(self) -> int:
        """Number of episodes: one agent decides in each."""
        return int(self._all.size)

    @property
    def episode(self) -> NDArray[np.int32]:
        """Index of each row's episode, its own, int32 ``(num_rows,)``."""
        return self._all

    @property
    def states(self) -> NDArray[np.int32]:
        """The states of all episodes, int32 ``(num_rows, state_size)``: a view that changes."""
        return self._rows.states

    @property
    def time(self) -> NDArray[np.int64]:
        """The clock of each episode in seconds, int64 ``(num_rows,)``: a view that changes."""
        return self._rows.time

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which episodes go on, bool ``(num_rows,)``: a view that changes."""
        return self._rows.active

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Which episodes were cut at `max_time`, bool ``(num_rows,)``: a view that changes."""
        return self._rows.truncated

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some episodes; see `Simulator.step`."""
        return int(
            step_rows(self._machine, self._jobs, self._costs, self._rows, rows, actions, rewards)
        )

    def play(self, rule: Rule | Scorer, keys: NDArray[np.uint64] | None = None) -> None:
        """Plays all episodes to their ends under a rule or a scorer, which see the whole queue.

        States and rewards are left as they are.

        Args:
            rule: what decides.
            keys: of the episodes' random numbers, uint64 ``(num_rows,)``; only those of the first
                episode of each jobset are used, and only by the order `random`.
        """
        jobs, rows, machine = self._jobs, self._rows, self._machine
        if isinstance(rule, Scorer):
            self._play_scored(rule)
            return
        if rule.backfilling in PEER:
            self._play_like_a_peer(rule)
            return
        given = np.zeros(self.num_rows, np.uint64) + _FOR_RULES if keys is None else keys
        first_row = np.searchsorted(rows.jobset, np.arange(len(self._jobsets)))
        chance = [
            uniforms(given[row] + np.arange(one.num_jobs, dtype=np.uint64), 0)
            for row, one in zip(first_row, self._jobsets, strict=True)
        ]
        users = [np.asarray(one.attributes.get("user", one.arrival * 0)) for one in self._jobsets]
        user = np.concatenate(users).astype(np.int32)
        room = make_room(
            max(one.num_jobs for one in self._jobsets),
            machine.capacity.size,
            int(user.max(initial=0)) + 1,
            rule.backfilling == "conservative",
        )
        play_all(
            jobs,
            rows.jobset,
            machine.capacity,
            compiled(
                rule,
                jobs.order_estimate,
                jobs.demand,
                self._submits(),
                user,
                int(machine.capacity[0]),
                np.concatenate(chance),
            ),
            machine.max_time,
            room,
            rows.start,
            rows.place,
            rows.time,
            rows.truncated,
        )
        rows.active[:] = False

    def take_over(
        self, other: "HPCSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of episodes under way; see `Simulator.take_over`."""
        by_job = ["start", "queue", "ends", "running", "expected", "expected_jobs"]
        if self._layout.horizon:
            by_job.append("at_arrival")
        for name, theirs in other._rows._asdict().items():
            own = getattr(self._rows, name)
            if name in by_job:
                for here, there in zip(target, source, strict=True):
                    begin, before = self._rows.place[here], other._rows.place[there]
                    count = self._jobsets[self._rows.jobset[here]].num_jobs
                    own[begin : begin + count] = theirs[before : before + count]
            elif name not in ("jobset", "place", "at_arrival"):
                own[target] = theirs[source]

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them."""
        rows, jobs = self._rows, self._jobs
        num_jobs = np.diff(jobs.first)[rows.jobset]
        episode = np.repeat(self._all, num_jobs)
        job = np.arange(episode.size) - np.repeat(np.cumsum(num_jobs) - num_jobs, num_jobs)
        row = jobs.first[rows.jobset[episode]] + job
        start = rows.start[rows.place[episode] + job]
        end = rows.time[episode]
        arrived = jobs.arrival[row] <= end
        episode, job, row = episode[arrived], job[arrived].astype(np.int32), row[arrived]
        start, end = start[arrived], end[arrived]
        finish = np.where(start >= 0, start + jobs.duration[row], -1)
        jobset = rows.jobset[episode]
        classes = np.concatenate([one.job_class for one in self._jobsets])
        return Schedule(
            episode=episode,
            job=job,
            arrival=jobs.arrival[row],
            start=start.astype(np.int32),
            finish=np.where(finish > end, -1, finish).astype(np.int32),
            duration=jobs.duration[row],
            demand=jobs.demand[row],
            end=rows.time.astype(np.int32),
            window=np.array([one.window for one in self._jobsets], np.int32)[rows.jobset],
            jobset=rows.jobset,
            capacity=self._machine.capacity.astype(np.int32),
            job_class=classes[row],
            attributes=gather_attributes(self._jobsets, jobset, job),
        )

    def _submits(self) -> NDArray[np.int64]:
        """Times of submission by the log's own clock, where jobs know it."""
        return np.concatenate(
            [np.asarray(one.attributes.get("submit", one.arrival)) for one in self._jobsets]
        ).astype(np.int64)

    def _play_scored(self, scorer: Scorer) -> None:
        jobs, rows, machine = self._jobs, self._rows, self._machine
        none = np.zeros(jobs.arrival.size, np.int64)
        no_rule = Compiled(0, 0, none.astype(np.float64), none, np.zeros(3), none.astype(np.int32))
        play_scored(
            jobs,
            rows.jobset,
            machine.capacity,
            make_scoring(
                scorer.weights,
                MODES.index(scorer.mode),
                scorer.is_bilinear,
                self._costs.log,
                np.log(jobs.demand[:, 0].astype(np.float64)),
            ),
            no_rule,
            machine.max_time,
            make_room(int(np.diff(jobs.first).max()), machine.capacity.size, 1, False),
            rows.start,
            rows.place,
            rows.time,
            rows.truncated,
        )
        rows.active[:] = False

    def _play_like_a_peer(self, rule: Rule) -> None:
        """Under another event loop, which knows no end of time."""
        rows, jobs = self._rows, self._jobs
        play = self._like_schedgym if rule.backfilling == "srg" else self._like_rlscheduler
        run = play(rule)
        for e, k in enumerate(rows.jobset):
            own = rows.start[rows.place[e] : rows.place[e] + jobs.first[k + 1] - jobs.first[k]]
            own[:] = -1
            rows.time[e] = run(int(k), own)
        rows.active[:] = False

    def _like_rlscheduler(self, rule: Rule) -> Callable[[int, NDArray[np.int64]], int]:
        jobs, capacity = self._jobs, self._machine.capacity
        score = peer_scores(rule.order, jobs.order_estimate, jobs.demand[:, 0], self._submits())
        parts = zip(jobs.first[:-1], jobs.first[1:], strict=True)
        order = np.concatenate(
            [np.lexsort((score[a:b], jobs.arrival[a:b])).astype(np.int64) for a, b in parts]
        )
        room = PeerRoom.of(int(np.diff(jobs.first).max()), capacity.size)
        backfilling = rule.backfilling == "rls_easy"
        return lambda k, start: int(
            play_like_rlscheduler(jobs, k, capacity, score, order, backfilling, room, start)
        )

    def _like_schedgym(self, rule: Rule) -> Callable[[int, NDArray[np.int64]], int]:
        jobs, capacity = self._jobs, self._machine.capacity

        def run(k: int, start: NDArray[np.int64]) -> int:
            part = slice(jobs.first[k], jobs.first[k + 1])
            return play_like_schedgym(
                rule.order,
                jobs.arrival[part],
                jobs.duration[part],
                jobs.order_estimate[part],
                jobs.demand[part],
                capacity,
                start,
            )

        return run


def _join(jobsets: Sequence[JobSet], kill: bool) -> Jobs:
    def column(name: str) -> NDArray[np.int32]:
        return np.concatenate([getattr(one, name) for one in jobsets]).astype(np.int32)

    def seconds(one: JobSet, *names: str) -> NDArray[Any]:
        given = (one.attributes.get(name) for name in names)
        return next((np.asarray(column) for column in given if column is not None), one.duration)

    def estimates(*names: str) -> NDArray[np.int32]:
        return np.concatenate([seconds(one, *names) for one in jobsets]).astype(np.int32)

    duration, limit = column("duration"), estimates("estimate")
    return Jobs(
        first=np.cumsum([0] + [one.num_jobs for one in jobsets]).astype(np.int64),
        arrival=column("arrival"),
        duration=np.minimum(duration, limit) if kill else duration,
        order_estimate=estimates("order_estimate", "estimate"),
        estimate=estimates("reserve_estimate", "estimate"),
        limit=limit,
        demand=column("demand"),
    )


def _costs(jobsets: Sequence[JobSet], objective: Objective, jobs: Jobs) -> Costs:
    def column(term: Callable[[JobSet], Any]) -> NDArray[np.float64]:
        return np.concatenate([np.asarray(term(one), np.float64) * one.counted for one in jobsets])

    num_jobs, late = jobs.arrival.size, objective.late_costs
    gain = objective.finish_gain
    return Costs(
        rate=column(objective.job_cost),
        late_rate=np.reshape([column(one.cost) for one in late], (len(late), num_jobs)),
        late_after=np.reshape([column(one.after) for one in late], (len(late), num_jobs)).astype(
            np.int64
        ),
        finish_gain=np.zeros(num_jobs) if gain is None else column(gain),
        log=np.log(np.maximum(jobs.order_estimate, 1).astype(np.float64)),
        window=np.array([one.window for one in jobsets], np.int64),
        busy_cost=float(objective.busy_cost),
        utilization_gain=float(objective.utilization_gain),
    )


def _rows(jobset: NDArray[np.int32], jobs: Jobs, layout: StateLayout) -> Rows:
    num_rows, num_jobs = jobset.size, np.diff(jobs.first)[jobset]
    places = int(num_jobs.sum())
    return Rows(
        jobset=jobset,
        place=(np.cumsum(num_jobs) - num_jobs).astype(np.int64),
        start=np.zeros(places, np.int64) - 1,
        queue=np.zeros(places, np.int32),
        ends=np.zeros(places, np.int64),
        running=np.zeros(places, np.int32),
        expected=np.zeros(places, np.int64),
        expected_jobs=np.zeros(places, np.int32),
        at_arrival=np.zeros((places if layout.horizon else 0, len(AT_ARRIVAL)), np.int32),
        sizes=np.zeros((num_rows, 4), np.int64),
        free=np.zeros((num_rows, layout.num_resources), np.int64),
        spare=np.zeros((num_rows, layout.num_resources), np.int64),
        time=np.zeros(num_rows, np.int64),
        coming=np.zeros(num_rows, np.int64),
        sums=np.zeros((num_rows, NUM_SUMS), np.float64),
        active=np.zeros(num_rows, np.bool_),
        truncated=np.zeros(num_rows, np.bool_),
        states=np.zeros((num_rows, layout.size), np.int32),
    )
