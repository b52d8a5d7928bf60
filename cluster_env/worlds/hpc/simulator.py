"""Many episodes of a batch-scheduled machine side by side, event by event."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch, BatchSimulator, CostTable
from cluster_env.core.compiled import new_records, slices
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.worlds.hpc.decisions import machine_of, reset_rows, step_rows
from cluster_env.worlds.hpc.episodes import Rows
from cluster_env.worlds.hpc.events import STATUS, Machine
from cluster_env.worlds.hpc.jobs import (
    JOB,
    Jobs,
    chance_scores,
    jobs_asked,
    keeps_order,
    num_users,
    number_alike,
    submits,
)
from cluster_env.worlds.hpc.orders import Order
from cluster_env.worlds.hpc.plan import Plan
from cluster_env.worlds.hpc.play import choose, play
from cluster_env.worlds.hpc.rules import CHANCE, CONSERVATIVE, FIXED, OWN, Rule, RuleTable
from cluster_env.worlds.hpc.run_times import LEARNED, RUN_TIMES, USER, learns
from cluster_env.worlds.hpc.scorer import Scorer
from cluster_env.worlds.hpc.site_arrays import EMPTY

SHOWN = Rule("fcfs", "easy")
"""The order in which policies see the queue."""


class HPCSimulator(BatchSimulator):
    """Rigid jobs on one machine; an event-driven clock in seconds. `HPC` says what is decided."""

    jobs: Jobs
    rows: Rows
    beginning = EMPTY
    """A moment that all episodes are brought to at first, see `Beginning`."""
    first_slice = 2**11
    """Instants that are played before anybody looks whether it is to be ended."""
    _asked: Batch
    """What records of jobs are of: the batch, or where run times are learned, the same episodes
    with a jobset for each, because what is believed of a job follows from the schedule."""
    _models: NDArray[np.int64]  # (num_rows,), see `STATUS`
    _learns: bool

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.machine, self._model = machine_of(world), RUN_TIMES.index(world.run_times)
        self._tables: dict[Rule, RuleTable] = {}
        self._keeping: dict[Rule, bool] = {}
        self._scratch: dict[bool, Rows] = {}

    def allocate(self) -> None:
        """See `BatchSimulator.allocate`."""
        self._tables, self._keeping, self._scratch = {}, {}, {}
        batch, layout = self._set_apart(), self.world.layout
        self.jobs = jobs_asked(batch, JOB, batch.column("demand", np.int32), self._model)
        number_alike(self.jobs, np.empty(1 << (2 * batch.most_jobs + 1).bit_length(), np.int32))
        status = new_records(batch.num_episodes, STATUS)
        status.jobset, status.place = batch.jobset, batch.place
        status.num_users, status.model = num_users(batch)[batch.jobset], self._models
        most_users = int(self.jobs.records.user.max(initial=0)) + 1
        sizes = (batch.num_places, self.machine.capacity.size, most_users, layout.size)
        self.rows = Rows.of(
            status,
            *sizes,
            seen=layout.horizon > 0,
            passes=False,
            learns=self._learns,
            order=self._order(SHOWN).for_decisions(),
            plan=self._plan(),
        )

    def _set_apart(self) -> Batch:
        """Sees in which episodes run times are learned; returns what records of jobs are of."""
        batch = self._asked = self.batch
        learned = [self._model in LEARNED and learns(one) for one in batch.jobsets]
        self._models = np.where(learned, self._model, 0)[batch.jobset]
        self._learns = any(learned)
        if self._learns:
            each = [batch.jobsets[number] for number in batch.jobset]
            self._asked = Batch(each, self.objective)
        return self._asked

    def show(self) -> None:
        """See `BatchSimulator.show`."""
        self.status = status = self.rows.status
        self.time, self.active, self.truncated = status.time, status.active, status.truncated

    @property
    def _decided(self) -> tuple[Machine, Jobs, CostTable, Rows]:
        """What decisions one by one are taken in."""
        return self.machine, self.jobs, self._asked.costs, self.rows

    @property
    def states(self) -> NDArray[np.int32]:  # type: ignore[override]  # there when asked for
        """See `Simulator.states`."""
        return self._decided[-1].states

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to the beginning of their jobsets."""
        which = self.episode if rows is None else rows
        reset_rows(*self._decided, which)

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some episodes; see `Simulator.step`."""
        return int(step_rows(*self._decided, rows, actions, rewards))

    @property
    def starts(self) -> NDArray[np.int64]:
        """When the jobs of all episodes started, int64 ``(num_places,)``; -1 for not yet."""
        return self.rows.start

    def play(self, rule: Rule | Scorer, keys: NDArray[np.uint64] | None = None) -> None:
        """Plays all episodes to their ends under a rule or a scorer, which see the whole queue.

        States and rewards are left as they are. Of the episodes' keys, uint64 ``(num_rows,)``, only
        the first of each jobset are used, and only by the order `random`.
        """
        self._play_in(self._one_row(self._drawn(rule, keys), self._keeps_order(rule)))

    def _play_in(self, scratch: Rows) -> None:
        """Plays all episodes to their ends in one row, whose order it has."""
        self.active[:], row = False, 0
        batch = (self.machine, self.jobs, self.rows, scratch, self.beginning)
        for instants in slices(self.first_slice):
            row = play(*batch, row, instants)
            if row == self.active.size:
                break

    def choose(
        self,
        rule: Rule | Scorer,
        rows: NDArray[np.int32],
        uniforms: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int32]:
        """What a rule or a scorer does in some episodes under way, int32 ``(m,)``.

        It is what it would start next at this instant, looking at the whole queue; then it waits
        until the next job arrives or finishes. So decisions one by one give the schedule of `play`,
        as long as states show each job that is to start. A job that they do not show cannot be
        named, and waits: the next one that is shown goes first.

        The uniforms, float64 ``(m,)`` in [0, 1), are for the order `random` alone, which is drawn
        anew at each decision and by `play` once.
        """
        return self._choose_in(self._one_row(self._order(rule)), rows, uniforms)

    def _choose_in(
        self, scratch: Rows, rows: NDArray[np.int32], uniforms: NDArray[np.float64] | None
    ) -> NDArray[np.int32]:
        """Plays the present instant of episodes again in one row, whose order it has."""
        *_, decided = self._decided
        actions = np.empty(rows.size, np.int32)
        chances = np.zeros(rows.size) if uniforms is None else uniforms
        choose(self.machine, self.jobs, decided, rows, chances, scratch, actions)
        return actions

    def take_over(
        self, other: "HPCSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of episodes under way; see `Simulator.take_over`."""
        here, there = self.rows._asdict(), other.rows._asdict()
        of_jobs = ["start", "queue", "widths", "keys", "ends", "running"]
        of_jobs += ["expected", "expected_jobs"]
        if self.world.horizon:
            of_jobs.append("at_arrival")
        pairs = [(here[name], there[name]) for name in of_jobs]
        self.batch.copy_places(other.batch, source, target, pairs)
        self._take_over_predictions(other, source, target)
        # All goes along but where the jobs of a row stand, here and there.
        own = self.rows.status[["jobset", "place"]]
        known = own[target].copy()
        for name in ("free", "spare", "usage", "status", "states"):
            here[name][target] = there[name][source]
        own[target] = known

    def _take_over_predictions(
        self, other: "HPCSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies what is known, and what is believed of jobs; all stand where their places are."""
        if self._learns and other._learns:
            here, there = self.jobs.records, other.jobs.records
            pairs = [(here[name], there[name]) for name in ("order_estimate", "estimate", "log")]
            pairs.append((self.rows.known, other.rows.known))
            self.batch.copy_places(other.batch, source, target, pairs)

    def believed(self, row: int) -> JobSet:
        """The jobs of an episode with what was believed of them when they entered the queue."""
        jobset = self.batch.jobsets[self.batch.jobset[row]]
        if self._model == USER:
            return jobset
        first = self._asked.first[self._asked.jobset[row]]
        records = self.jobs.records[first : first + jobset.num_jobs]
        columns = {"order_estimate": records.order_estimate, "reserve_estimate": records.estimate}
        known = {name: column.copy() for name, column in columns.items()}
        return replace(jobset, attributes={**jobset.attributes, **known})

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them."""
        batch, rows = self.batch, self.rows
        # Jobs arrive in the order of their numbers, so that those that have are the first ones.
        arrival = batch.column("arrival", np.int32)[batch.job_of_place]
        arrived = arrival <= np.repeat(self.time, batch.num_jobs)
        before = np.concatenate([[0], np.cumsum(arrived)])
        return batch.schedule(
            arrived=before[batch.place + batch.num_jobs] - before[batch.place],
            start=rows.start,
            finish=batch.finish_of(rows.start, self.time),
            end=self.time,
            capacity=self.machine.capacity,
        )

    def submits(self) -> NDArray[np.int64]:
        """See `submits`."""
        return submits(self._asked)

    def _table(self, rule: Rule) -> RuleTable:
        """A rule for the jobs that are loaded."""
        if rule not in self._tables:
            size, estimate = self.jobs.demand[:, 0], self.jobs.records.order_estimate
            columns = estimate, size, self.submits()
            self._tables[rule] = RuleTable.of(rule, *columns, self.world.max_wait, self._learns)
        return self._tables[rule]

    def _order(self, rule: Rule | Scorer) -> Order:
        """A rule or a scorer for the jobs that are loaded."""
        if isinstance(rule, Scorer):
            return Order.of_scorer(rule, int(self._asked.first[-1]), self.world.max_wait)
        return Order.of_rule(self._table(rule), self._bonus(rule))

    def _bonus(self, rule: Rule) -> NDArray[np.float64]:
        """What jobs have ahead in the order `priority`, ``(num_jobs,)``, or of no job."""
        return np.zeros(0)

    def _drawn(self, rule: Rule | Scorer, keys: NDArray[np.uint64] | None) -> Order:
        """The same for whole episodes: a random order is drawn once, so that it is a fixed one."""
        order = self._order(rule)
        if isinstance(rule, Rule) and rule.order == "random":
            score = chance_scores(self._asked, keys)
            return order._replace(rule=order.rule._replace(kind=FIXED, score=score))
        return order

    def _one_row(self, order: Order, lines_up: bool = False) -> Rows:
        """A row in which any episode that is loaded can be played under an order.

        Where run times are learned, nobody knows beforehand which jobs will be alike.
        """
        if lines_up not in self._scratch:
            most = self.batch.most_jobs + 1  # so that a look behind the last is allowed
            sizes = (most, self.machine.capacity.size, self.rows.usage.shape[1])
            status, learns = new_records(1, STATUS), self._learns
            row = Rows.of(status, *sizes, lines_up=lines_up and not learns, learns=learns)
            self._scratch[lines_up] = row
        plan = self._plan(order.rule.mode == CONSERVATIVE)
        return self._scratch[lines_up]._replace(order=order, plan=plan)

    def _keeps_order(self, rule: Rule | Scorer) -> bool:
        """Whether of jobs that are alike, none goes before one that came first.

        A plan has a room for each job of its own.
        """
        if isinstance(rule, Scorer):
            return rule.keeps_order
        if rule not in self._keeping:
            table, room = self._table(rule), np.empty(self.batch.most_jobs, np.int32)
            if table.kind == FIXED:
                keeps = keeps_order(self.jobs, table.score, room)
            else:
                keeps = table.kind not in (CHANCE, OWN) and (
                    rule.order != "priority" or rule.weights.age >= 0
                )
            self._keeping[rule] = keeps and rule.backfilling != "conservative"
        return self._keeping[rule]

    def _plan(self, planned: bool = False) -> Plan:
        """Room for the plan of an order, if it makes one, or for that of overdue jobs."""
        most = self.batch.most_jobs + 1 if planned or self.world.max_wait else 0
        return Plan.of(most, self.machine.capacity.size)
