"""Whole jobsets at a site under rules and linear scorers, and what became of the jobs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import BatchSimulator
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Pieces, Schedule, join_attributes
from cluster_env.sites.placements import Placements
from cluster_env.sites.requests import Requests
from cluster_env.worlds.hpc.rules import BACKFILLING, FIXED, Rule, RuleTable
from cluster_env.worlds.hpc.scorer import JOB_FEATURES, Scorer
from cluster_env.worlds.hpc.scoring import Scoring
from cluster_env.worlds.hpc.simulator import chance_scores, submits
from cluster_env.worlds.hpc.site.arrays import EMPTY, FAILURE, Beginning, Layout, Results, Run, Work
from cluster_env.worlds.hpc.site.compiling import layout_of, work_of
from cluster_env.worlds.hpc.site.play import play_site
from cluster_env.worlds.hpc.site.queue import SCORED, Order
from cluster_env.worlds.hpc.site.room import results_for, room_for

_WHOLE = (
    "a world with a site plays whole jobsets under rules and linear scorers, as in compare and "
    "replay; it takes no single decisions, as training and networks do: leave out its site for that"
)


class SiteSimulator(BatchSimulator):
    """Rigid jobs on the nodes of a site; an event-driven clock in seconds.

    At one instant jobs finish, the calendar changes, jobs enter the queue, and then comes one pass
    over it in the order of tiers and then of the rule (`cluster_env.worlds.hpc.site.passes`). On a
    site of one node, schedules are those of `HPCSimulator`. What is simulated follows Slurm's
    manual (sched/backfill, select/cons_tres, *Resource Limits*, *Multifactor Priority*), with these
    differences: there is one pass at each event and none between; placements know no topology; jobs
    do not share processors, are not preempted and do not shrink; what a job counts as for limits is
    what it asks for; a job may outlast its reservation; one that is requeued starts from nothing
    and keeps its place. The theorem on the bound of waits (`HPC`) does not hold
    here, since nodes and limits break it.
    """

    layout: Layout
    work: Work
    results: Results
    keeps_nodes = False
    """Whether `nodes_of_jobs` is asked for; it is set before jobs are loaded."""
    checked = False
    """Whether jobs are known to be such as can run."""
    beginning = EMPTY
    """A moment that all episodes are brought to at first, see `begin`."""

    def check(self, jobset: JobSet) -> None:
        """See `BatchSimulator.check`."""
        if not self.checked:
            super().check(jobset)

    def allocate(self) -> None:
        """See `BatchSimulator.allocate`."""
        batch, site = self.batch, self.world.site
        self._requests = Requests.of(site, *batch.jobsets)
        self.layout = layout_of(site, self._requests)
        self.work = work_of(site, batch, self._requests)
        self.results = results_for(self.layout, batch)
        self._runs: dict[bool, Run] = {}
        self.beginning = EMPTY
        self.states = np.zeros((batch.num_episodes, self.world.layout.size), np.int32)
        self.active = np.ones(batch.num_episodes, np.bool_)

    def show(self) -> None:
        """See `BatchSimulator.show`."""
        self.time, self.truncated = self.results.time, self.results.truncated

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to the beginning of their jobsets."""
        which = self.episode if rows is None else rows
        places = self.batch.places(which)
        for column in (self.results.start, self.results.finish, self.results.eligible):
            column[places] = -1
        self.active[which], self.time[which], self.truncated[which] = True, 0, False

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Refused: see `SiteSimulator`.

        Raises:
            InputError: always.
        """
        raise InputError(_WHOLE)

    def choose(
        self,
        rule: Rule | Scorer,
        rows: NDArray[np.int32],
        uniforms: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int32]:
        """Refused: see `SiteSimulator`.

        Raises:
            InputError: always.
        """
        raise InputError(_WHOLE)

    def take_over(self, other: Any, source: NDArray[np.int32], target: NDArray[np.int32]) -> None:
        """Refused: see `SiteSimulator`.

        Raises:
            InputError: always.
        """
        raise InputError(_WHOLE)

    def play(self, rule: Rule | Scorer, keys: NDArray[np.uint64] | None = None) -> None:
        """Plays all episodes to their ends under a rule or a scorer, see `HPCSimulator.play`.

        A scorer sees of each job its own partition: the nodes, the queue and what has come lately.

        Raises:
            InputError: if more jobs are to be booked ahead than there is room for.
        """
        order = self._scored(rule) if isinstance(rule, Scorer) else self._ruled(rule, keys)
        if self.keeps_nodes and (self.layout.entry_kind == FAILURE).any():
            raise InputError("nodes of jobs are kept where no node fails; leave out its failures")
        books = self.world.max_wait > 0 or order.mode == BACKFILLING.index("conservative")
        if books not in self._runs:
            users = int(self.work.records["user"].max(initial=0)) + 1
            self._runs[books] = room_for(
                self.layout,
                self.work,
                self.batch,
                books,
                users,
                self.world.site.most_bookings,
                self.keeps_nodes,
            )
        run = self._run = self._runs[books]
        run.unbooked[:] = 0
        play_site(
            self.layout,
            self.work,
            run,
            order,
            self.beginning,
            self.results,
            self.batch.jobset.astype(np.int64),
            self.batch.place,
            self.world.max_time,
        )
        self.active[:] = False
        bookings, nodes = run.unbooked
        if nodes or (bookings and run.book_job.size != self.world.site.most_bookings):
            raise InputError(
                f"more jobs wait at once than can be booked ahead on {self.world.site.num_nodes:,} "
                f"nodes (room for {run.book_job.size:,}); give the site fewer most_bookings, as "
                "Slurm's bf_max_job_test, or take a rule that ends in :easy"
            )

    def schedule(self) -> Schedule:
        """The jobs that have entered the queue in each episode, and what became of them.

        A job's arrival is when it entered the queue, its start that of its last run. A lost job
        finishes when it dies, and its duration ends there; the attributes ``lost`` and ``restarts``
        say so where nodes fail. A job that can never start has no start, and counts to the end.
        The capacity is that of all nodes, whether they are there or not; where runs were cut
        short, pieces say what was held in vain, too.
        """
        batch, results = self.batch, self.results
        place = np.flatnonzero(results.eligible >= 0)
        episode = np.repeat(np.arange(batch.num_episodes, dtype=np.int32), batch.num_jobs)[place]
        index = batch.job_of_place[place]
        start, finish = results.start[place], results.finish[place]
        lost = results.lost[place]
        duration = batch.column("duration", np.int64)[index]
        joined = join_attributes([one.attributes for one in batch.jobsets])
        attributes = {name: column[index] for name, column in joined.items()}
        if results.cut_place.size:
            attributes |= {"lost": lost.astype(np.int8), "restarts": results.cuts[place] - lost}
        return Schedule(
            episode=episode,
            job=(place - batch.place[episode]).astype(np.int32),
            arrival=results.eligible[place].astype(np.int32),
            start=start.astype(np.int32),
            finish=finish.astype(np.int32),
            duration=np.where(lost, finish - start, duration).astype(np.int32),
            demand=batch.column("demand", np.int32)[index],
            end=results.time.astype(np.int32),
            window=batch.window[batch.jobset].astype(np.int32),
            jobset=batch.jobset.copy(),
            capacity=np.asarray(self.world.capacity, np.int32),
            job_class=batch.column("job_class", np.uint8)[index],
            attributes=attributes,
            pieces=self._pieces(place) if results.cuts.any() else None,
        )

    @property
    def starts(self) -> NDArray[np.int64]:
        """When the jobs of all episodes started, int64 ``(num_places,)``; -1 for never."""
        return self.results.start

    def begin(
        self, nodes: Placements, time: int, clock: int, *, decided: bool, watched: int
    ) -> None:
        """Lets all episodes that are loaded begin at a moment at which jobs run.

        Args:
            nodes: of the first jobs of each jobset. These start at that time, whatever the rule
                says; before it nothing does, and jobs only enter the queue.
            time: of the moment.
            clock: what the site's calendar shows at time 0.
            decided: whether the rule has decided at the moment; else it does so then.
            watched: so many first jobs are of interest: when they have started, an episode ends.
        """
        self.beginning = Beginning(time, time + int(decided), watched, *nodes)
        self.work.shift[:] = clock

    def nodes_of_jobs(self) -> Placements:
        """The nodes of each job of the last episode, where `keeps_nodes` is set."""
        run, slot = self._run, self._run.slot[: self.batch.num_jobs[-1]]
        jobs, slots, left = [], [], np.flatnonzero(slot >= 0)
        at = slot[left]
        while left.size:
            jobs.append(left)
            slots.append(at)
            more = run.slot_next[at] >= 0
            left, at = left[more], run.slot_next[at[more]]
        job = np.concatenate([*jobs, np.zeros(0, np.int64)])
        order = np.argsort(job, kind="stable")
        chosen = np.concatenate([*slots, np.zeros(0, np.int32)]).astype(np.int64)[order]
        first = np.concatenate([[0], np.cumsum(np.bincount(job, minlength=slot.size))])
        return Placements(first, run.slot_node[chosen], run.slot_size[chosen])

    def _pieces(self, place: NDArray[np.int64]) -> Pieces:
        """What jobs held, with runs that were cut short, by their rows of a schedule."""
        batch, results = self.batch, self.results
        row = np.full(batch.num_places, -1, np.int64)
        row[place] = np.arange(place.size)
        episode_end = np.repeat(results.time, batch.num_jobs)[place]
        start, finish = results.start[place], results.finish[place]
        last = np.flatnonzero((start >= 0) & ~results.lost[place])
        count = int(results.cuts.sum())
        if count > results.cut_place.size:
            raise InputError(
                f"failures of nodes cut {count:,} runs short, more than are kept "
                f"({results.cut_place.size:,}); play fewer jobsets at once"
            )
        jobs = np.concatenate([row[results.cut_place[:count]], last])
        ends = np.where(finish >= 0, finish, episode_end)[last]
        demand = batch.column("demand", np.int32)[batch.job_of_place[place]]
        begin = np.concatenate([results.cut_begin[:count], start[last]])
        end = np.concatenate([results.cut_end[:count], ends])
        real = end > begin
        return Pieces(
            job=jobs[real].astype(np.int32),
            begin=begin[real].astype(np.int32),
            end=end[real].astype(np.int32),
            units=demand[jobs[real]],
        )

    def _ruled(self, rule: Rule, keys: NDArray[np.uint64] | None) -> Order:
        """A rule for the jobs that are loaded."""
        batch, site, columns = self.batch, self.world.site, self._requests.columns
        records, size = self.work.records, self.work.demand[:, 0]
        table = RuleTable.of(rule, records.order_estimate, size, submits(batch))
        kind, score = table.kind, table.score
        if rule.order == "random":  # drawn once, so that it is a fixed one here
            kind, score = FIXED, chance_scores(batch, keys)
        # Priorities of partitions and QOS, each over the highest.
        of_partition = np.array([one.priority for one in site.partitions], np.float64)
        of_qos = np.array([one.priority for one in site.limits if one.kind == "qos"] + [0.0])
        bonus = (
            rule.weights.partition
            * (of_partition / max(of_partition.max(), 1.0))[columns["partition"]]
            + rule.weights.qos * (of_qos / max(of_qos.max(), 1.0))[columns["qos"]]
        )
        return Order(
            kind=kind,
            mode=table.mode,
            score=score,
            weights=table.weights,
            bonus=bonus,
            max_wait=self.world.max_wait,
            scoring=Scoring.of(Scorer.linear("easy")),
            anew=False,
            shares=rule.order == "priority",
        )

    def _scored(self, scorer: Scorer) -> Order:
        """A scorer for the jobs that are loaded."""
        num_jobs = int(self.batch.first[-1])
        moving = [JOB_FEATURES.index(name) for name in ("of_free", "fits")]
        return Order(
            kind=SCORED,
            mode=BACKFILLING.index(scorer.mode),
            score=np.zeros(num_jobs),
            weights=np.zeros(3),
            bonus=np.zeros(num_jobs),
            max_wait=self.world.max_wait,
            scoring=Scoring.of(scorer),
            anew=scorer.is_bilinear or bool(scorer.weights[moving].any()),
            shares=False,
        )
