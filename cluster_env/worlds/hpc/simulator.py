"""Many episodes of a batch-scheduled machine side by side, event by event."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch, BatchSimulator
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import uniforms
from cluster_env.worlds.hpc.events import Jobs
from cluster_env.worlds.hpc.mdp import REWARDS
from cluster_env.worlds.hpc.play import make_room, play_all
from cluster_env.worlds.hpc.rlscheduler import PeerRoom, peer_scores, play_like_rlscheduler
from cluster_env.worlds.hpc.rules import PEER, Compiled, Rule, compiled
from cluster_env.worlds.hpc.schedgym import play_like_schedgym
from cluster_env.worlds.hpc.scored import make_scoring, play_scored
from cluster_env.worlds.hpc.scorer import MODES, Scorer
from cluster_env.worlds.hpc.state import AT_ARRIVAL, StateLayout
from cluster_env.worlds.hpc.step import NUM_SUMS, Machine, Rows, reset_rows, step_rows

_FOR_RULES = np.uint64(0x5EED)


class HPCSimulator(BatchSimulator):
    """Rigid jobs on one machine; an event-driven clock in seconds.

    At one instant jobs finish, then jobs arrive, then the policy decides, until it waits or no job
    that it sees fits; then time goes on to the next event at which one does. Action ``k`` starts
    the k-th oldest waiting job; any other, and a job that does not fit, waits. Where nothing runs,
    waiting is not possible, and the oldest job starts instead.

    The reward of a decision that starts a job is minus all that the job will have cost when it is
    done; it is known then. So no decision is charged for what it cannot change, and the
    undiscounted return of an episode is what its schedule costs.

    Args:
        world: an `HPC`.
    """

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        layout, (scope, whole) = world.layout, REWARDS[world.reward]
        self._machine = Machine(
            np.asarray(world.capacity, np.int64),
            layout.queue,
            layout.jobs_at,
            world.max_time,
            world.time_step,
            world.every_step,
            scope,
            whole,
            world.reward_discount if world.reward == "options" else 1.0,
            layout.horizon,
            world.horizon_step,
            layout.clock_at,
            layout.arrivals_at,
        )

    def allocate(self) -> None:
        """See `BatchSimulator.allocate`."""
        self._jobs = _jobs(self.batch)
        self._costs = self.batch.costs
        self._rows = rows = _rows(self.batch, self.world.layout)
        self.states, self.time = rows.states, rows.time
        self.active, self.truncated = rows.active, rows.truncated

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to the beginning of their jobsets."""
        which = self.episode if rows is None else rows
        reset_rows(self._machine, self._jobs, self._costs, self._rows, which)

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
        first_row = np.searchsorted(rows.jobset, np.arange(len(self.batch.jobsets)))
        chance = [
            uniforms(given[row] + np.arange(one.num_jobs, dtype=np.uint64), 0)
            for row, one in zip(first_row, self.batch.jobsets, strict=True)
        ]
        users = [
            np.asarray(one.attributes.get("user", one.arrival * 0)) for one in self.batch.jobsets
        ]
        user = np.concatenate(users).astype(np.int32)
        room = make_room(
            max(one.num_jobs for one in self.batch.jobsets),
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
        if self.world.horizon:
            by_job.append("at_arrival")
        here, there = self._rows._asdict(), other._rows._asdict()
        pairs = [(here[name], there[name]) for name in by_job]
        self.batch.copy_places(other.batch, source, target, pairs)
        for name in ("sizes", "free", "spare", "time", "coming", "sums"):
            here[name][target] = there[name][source]
        for name in ("active", "truncated", "states"):
            here[name][target] = there[name][source]

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them."""
        batch, rows = self.batch, self._rows
        arrival = self._jobs.arrival[batch.job_of_place]
        end = np.repeat(rows.time, batch.num_jobs)
        first = np.concatenate([[0], np.cumsum(arrival <= end)])
        return batch.schedule(
            arrived=first[batch.place + batch.num_jobs] - first[batch.place],
            start=rows.start,
            finish=batch.finish_of(rows.start, rows.time),
            end=rows.time,
            capacity=self._machine.capacity,
        )

    def _submits(self) -> NDArray[np.int64]:
        """Times of submission by the log's own clock, where jobs know it."""
        return self.batch.column(lambda one: one.attributes.get("submit", one.arrival), np.int64)

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
                self._jobs.log,
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


def _jobs(batch: Batch) -> Jobs:
    def seconds(one: JobSet, *names: str) -> NDArray[Any]:
        columns = (one.attributes.get(name) for name in names)
        return next((np.asarray(column) for column in columns if column is not None), one.duration)

    def estimates(*names: str) -> NDArray[np.int32]:
        return batch.column(lambda one: seconds(one, *names), np.int32)

    order_estimate = estimates("order_estimate", "estimate")
    return Jobs(
        first=batch.first,
        window=batch.window,
        arrival=batch.column("arrival", np.int32),
        duration=batch.column("duration", np.int32),
        order_estimate=order_estimate,
        estimate=estimates("reserve_estimate", "estimate"),
        limit=estimates("estimate"),
        demand=batch.column("demand", np.int32),
        log=np.log(np.maximum(order_estimate, 1).astype(np.float64)),
    )


def _rows(batch: Batch, layout: StateLayout) -> Rows:
    num_rows, places = batch.num_episodes, batch.num_places
    return Rows(
        jobset=batch.jobset,
        place=batch.place,
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
