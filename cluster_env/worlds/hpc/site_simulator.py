"""Whole jobsets at a site under rules and linear scorers, and what became of the jobs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import CostTable
from cluster_env.core.compiled import new_records
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Pieces, Schedule, join_attributes
from cluster_env.sites.placements import Placements
from cluster_env.sites.requests import Requests
from cluster_env.worlds.hpc.decisions import reset_rows
from cluster_env.worlds.hpc.episodes import Rows
from cluster_env.worlds.hpc.events import Machine
from cluster_env.worlds.hpc.jobs import Jobs, Records
from cluster_env.worlds.hpc.orders import Order
from cluster_env.worlds.hpc.rules import CONSERVATIVE, Rule
from cluster_env.worlds.hpc.scorer import Scorer
from cluster_env.worlds.hpc.simulator import SHOWN, HPCSimulator
from cluster_env.worlds.hpc.site.compiling import (
    cuts_for,
    jobs_of,
    layout_of,
    outcomes_for,
    rows_for,
    scratch_for,
    status_of,
)
from cluster_env.worlds.hpc.site.copying import take_over_rows
from cluster_env.worlds.hpc.site_arrays import EMPTY, FAILURE, STATUS, Beginning, Scratch

_NOTHING_SHARED: dict[str, Any] = dict.fromkeys(("layout", "work", "room", "cut"))
"""Of rows in which nothing is played: kernels compile faster the less they are handed."""


class SiteSimulator(HPCSimulator):
    """Rigid jobs on the nodes of a site; an event-driven clock in seconds.

    At one instant jobs finish, the calendar changes, jobs enter the queue, and then comes one pass
    over it in the order of tiers and then of the rule (`cluster_env.worlds.hpc.site.passes`). On a
    site of one node, schedules are those of `HPCSimulator`. What is simulated follows Slurm's
    manual (sched/backfill, select/cons_tres, *Resource Limits*, *Multifactor Priority*), with these
    differences: there is one pass at each event and none between; placements know no topology; jobs
    do not share processors, are not preempted and do not shrink; what a job counts as for limits is
    what it asks for, and the nodes that it holds; a job may outlast its reservation; one that is
    requeued starts from nothing and keeps its place. Where run times are learned
    (`cluster_env.worlds.hpc.run_times`), a run that a failure cuts short teaches nothing, and what
    is believed of a requeued job is predicted anew. The theorem on the bound of waits (`HPC`) does
    not hold here, since nodes and limits break it. With such a bound and several nodes, decisions
    one by one may rarely differ from `play`: an overdue job that waits is booked anew at each, and
    other nodes may suit it once another job has started.
    """

    first_slice = 2**8
    keeps_nodes = False
    """Whether `nodes_of_jobs` is asked for; it is set before jobs are played."""
    checked = False
    """Whether jobs are known to be such as can run."""
    _results: Rows
    """What has become of jobs and episodes; `rows` has room for decisions once it is asked for."""
    _played: Rows

    def check(self, jobset: JobSet) -> None:
        """See `BatchSimulator.check`."""
        if not self.checked:
            super().check(jobset)

    def allocate(self) -> None:
        """See `BatchSimulator.allocate`."""
        batch, site = self._set_apart(), self.world.site
        self._tables, self.beginning = {}, EMPTY
        self._requests = Requests.of(site, *batch.jobsets)
        self._layout = layout_of(site, self._requests)
        self.jobs, self._work = jobs_of(site, batch, self._requests, self._model)
        self._room, self._cut = self._scratch_for(False), cuts_for(self._layout, batch)
        self._own_rows: dict[tuple[bool, bool], Rows] = {}
        empty = self._rows_for(status_of(batch, self.jobs, self._models), 0)
        self.rows = self._results = empty._replace(
            start=np.full(batch.num_places, -1, np.int64),
            order=None,
            site=empty.site._replace(**outcomes_for(batch.num_places), **_NOTHING_SHARED),
        )

    def _scratch_for(self, books: bool) -> Scratch:
        """Room for passes; ``books`` says whether each job may be booked."""
        books = books or self.world.max_wait > 0
        return scratch_for(self._layout, self.jobs, books, self.world.site.most_bookings)

    def _rows_for(
        self,
        status: Records,
        num_places: int,
        order: Order | None = None,
        room: Scratch | None = None,
    ) -> Rows:
        """Room for episodes under an order; by default that in which policies see the queue."""
        layout = self.world.layout
        site = rows_for(
            self._layout,
            self._work,
            room or self._room,
            self._cut,
            self.jobs,
            status.size if num_places else 0,
            num_places,
            self.keeps_nodes,
        )
        users = int(self.jobs.records.user.max(initial=0)) + 1
        sizes = (num_places, self.machine.capacity.size, users, layout.size)
        seen = layout.horizon > 0
        order = order or self._order(SHOWN).for_decisions()
        return Rows.of(status, *sizes, seen=seen, learns=self._learns, order=order, site=site)

    @property
    def _decided(self) -> tuple[Machine, Jobs, CostTable, Rows]:
        """There is room for decisions one by one once it is asked for.

        Episodes that have been played to their ends stay as they are.
        """
        batch, results = self.batch, self._results
        if self.rows is results:
            room = self._rows_for(results.status, batch.num_places)
            outcomes = {name: getattr(results.site, name) for name in outcomes_for(0)}
            site = room.site._replace(**outcomes)
            self.rows = room._replace(start=results.start, site=site)
            begun = np.flatnonzero(self.active).astype(np.int32)
            reset_rows(*super()._decided, begun)
        return super()._decided

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to the beginning of their jobsets."""
        which = self.episode if rows is None else rows
        self._forget_cuts(which)
        if self.rows is not self._results:
            super().reset(which)
            return
        places, results = self.batch.places(which), self._results
        for column in (results.start, results.site.finish, results.site.eligible):
            column[places] = -1
        self.active[which], self.time[which], self.truncated[which] = True, 0, False

    def _forget_cuts(self, which: NDArray[np.int32]) -> None:
        """Leaves out the runs of some episodes that have been cut short."""
        cut = self._cut
        count = min(int(cut.number[0]), cut.place.size)
        kept = np.flatnonzero(~np.isin(cut.place[:count], self.batch.places(which)))
        for column in (cut.place, cut.begin, cut.end):
            column[: kept.size] = column[kept]
        cut.number[0] = kept.size

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some episodes; see `Simulator.step`."""
        left = super().step(rows, actions, rewards)
        self._require_booked(self._room)
        return left

    def choose(
        self,
        rule: Rule | Scorer,
        rows: NDArray[np.int32],
        uniforms: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int32]:
        """What a rule or a scorer does in some episodes under way; see `HPCSimulator.choose`."""
        row = self._row_for(self._order(rule))
        actions = self._choose_in(row, rows, uniforms)
        self._require_booked(row.site.room)
        return actions

    def _row_for(self, order: Order) -> Rows:
        """A row in which any episode that is loaded can be played; see `_scratch_for`."""
        books = order.rule.mode == CONSERVATIVE and not self.world.max_wait
        key = books, self.keeps_nodes
        if key not in self._own_rows:
            room = self._scratch_for(True) if books else self._room
            status = new_records(1, STATUS)
            self._own_rows[key] = self._rows_for(status, self.batch.most_jobs, order, room)
        return self._own_rows[key]._replace(order=order)

    def take_over(
        self, other: "HPCSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of episodes under way; see `Simulator.take_over`."""
        self.reset(target)
        _, here, _, rows = self._decided
        _, there, _, others = other._decided
        take_over_rows(self.machine, there, others, source, here, rows, target)
        self._take_over_predictions(other, source, target)

    def play(self, rule: Rule | Scorer, keys: NDArray[np.uint64] | None = None) -> None:
        """Plays all episodes to their ends under a rule or a scorer, see `HPCSimulator.play`.

        A scorer sees of each job its own partition: the nodes, the queue and what has come lately.

        Raises:
            InputError: if more jobs are to be booked ahead than there is room for.
        """
        if self.keeps_nodes and (self._layout.entry_kind == FAILURE).any():
            raise InputError("nodes of jobs are kept where no node fails; leave out its failures")
        self._played = played = self._row_for(self._drawn(rule, keys))
        played.site.room.unbooked[:], self._cut.number[0] = 0, 0
        self.status.keeps_nodes, self.rows = self.keeps_nodes, self._results
        self._play_in(played)
        self._require_booked(played.site.room)

    def _require_booked(self, scratch: Scratch) -> None:
        """Makes sure that no booking was lost for want of room.

        Raises:
            InputError: if one was, but for those beyond the site's own `most_bookings`.
        """
        (bookings, nodes), room = scratch.unbooked, scratch.book_job.size
        if nodes or (bookings and room != self.world.site.most_bookings):
            raise InputError(
                f"more jobs wait at once than can be booked ahead on {self.world.site.num_nodes:,} "
                f"nodes (room for {room:,}); give the site fewer most_bookings, as Slurm's "
                "bf_max_job_test, or take a rule that ends in :easy"
            )

    def begin(
        self, nodes: Placements, time: int, clock: int, *, decided: bool, watched: int
    ) -> None:
        """Lets all episodes that are loaded begin at a moment at which jobs run; see `play`.

        Args:
            nodes: of the first jobs of each jobset. These start at that time, whatever the rule
                says; before it nothing does, and jobs only enter the queue.
            time: of the moment.
            clock: what the site's calendar shows at time 0.
            decided: whether the rule has decided at the moment; else it does so then.
            watched: so many first jobs are of interest: when they have started, an episode ends.
        """
        # Views of tables would have the kernel compiled once more.
        whole = map(np.ascontiguousarray, nodes)
        self.beginning = Beginning(time, time + int(decided), watched, *whole)
        self.status.shift[:] = clock

    def nodes_of_jobs(self) -> Placements:
        """The nodes of each job of the last episode, where `keeps_nodes` is set."""
        rows, slot = self._played.site, self._played.site.slot[: self.batch.num_jobs[-1]]
        jobs, slots, left = [], [], np.flatnonzero(slot >= 0)
        at = slot[left]
        while left.size:
            jobs.append(left)
            slots.append(at)
            more = rows.slots.next[0, at] >= 0
            left, at = left[more], rows.slots.next[0, at[more]]
        job = np.concatenate([*jobs, np.zeros(0, np.int64)])
        order = np.argsort(job, kind="stable")
        chosen = np.concatenate([*slots, np.zeros(0, np.int32)]).astype(np.int64)[order]
        first = np.concatenate([[0], np.cumsum(np.bincount(job, minlength=slot.size))])
        return Placements(first, rows.slots.node[0, chosen], rows.slots.units[0, chosen])

    def schedule(self) -> Schedule:
        """The jobs that have entered the queue in each episode, and what became of them.

        A job's arrival is when it entered the queue, its start that of its last run. A lost job
        finishes when it dies, and its duration ends there; the attributes ``lost`` and ``restarts``
        say so where nodes fail. A job that can never start has no start, and counts to the end.
        The capacity is that of all nodes, whether they are there or not; where runs were cut
        short, pieces say what was held in vain, too.
        """
        batch, results = self.batch, self._results.site
        place = np.flatnonzero(results.eligible >= 0)
        episode = np.repeat(np.arange(batch.num_episodes, dtype=np.int32), batch.num_jobs)[place]
        index = batch.job_of_place[place]
        start, finish = self.starts[place], results.finish[place]
        lost = results.lost[place]
        duration = batch.column("duration", np.int64)[index]
        joined = join_attributes([one.attributes for one in batch.jobsets])
        attributes = {name: column[index] for name, column in joined.items()}
        if self._cut.place.size:
            attributes |= {"lost": lost.astype(np.int8), "restarts": results.cuts[place] - lost}
        return Schedule(
            episode=episode,
            job=(place - batch.place[episode]).astype(np.int32),
            arrival=results.eligible[place].astype(np.int32),
            start=start.astype(np.int32),
            finish=finish.astype(np.int32),
            duration=np.where(lost, finish - start, duration).astype(np.int32),
            demand=batch.column("demand", np.int32)[index],
            end=self.time.astype(np.int32),
            window=batch.window[batch.jobset].astype(np.int32),
            jobset=batch.jobset.copy(),
            capacity=np.asarray(self.world.capacity, np.int32),
            job_class=batch.column("job_class", np.uint8)[index],
            attributes=attributes,
            pieces=self._pieces(place) if results.cuts.any() else None,
        )

    def _pieces(self, place: NDArray[np.int64]) -> Pieces:
        """What jobs held, with runs that were cut short, by their rows of a schedule."""
        batch, results, cut = self.batch, self._results.site, self._cut
        row = np.full(batch.num_places, -1, np.int64)
        row[place] = np.arange(place.size)
        episode_end = np.repeat(self.time, batch.num_jobs)[place]
        start, finish = self.starts[place], results.finish[place]
        last = np.flatnonzero((start >= 0) & ~results.lost[place])
        count = int(cut.number[0])
        if count > cut.place.size:
            raise InputError(
                f"failures of nodes cut {count:,} runs short, more than are kept "
                f"({cut.place.size:,}); play fewer jobsets at once"
            )
        jobs = np.concatenate([row[cut.place[:count]], last])
        ends = np.where(finish >= 0, finish, episode_end)[last]
        demand = batch.column("demand", np.int32)[batch.job_of_place[place]]
        begin = np.concatenate([cut.begin[:count], start[last]])
        end = np.concatenate([cut.end[:count], ends])
        real = end > begin
        return Pieces(
            job=jobs[real].astype(np.int32),
            begin=begin[real].astype(np.int32),
            end=end[real].astype(np.int32),
            units=demand[jobs[real]],
        )

    def _order(self, rule: Rule | Scorer) -> Order:
        """A rule or a scorer for the jobs that are loaded; where jobs end, nodes are looked up."""
        return super()._order(rule)._replace(tracks=True)

    def _bonus(self, rule: Rule) -> NDArray[np.float64]:
        """Priorities of partitions and QOS, each over the highest."""
        site, columns = self.world.site, self._requests.columns
        of_partition = np.array([one.priority for one in site.partitions], np.float64)
        of_qos = np.array([one.priority for one in site.limits if one.kind == "qos"] + [0.0])
        return np.asarray(
            rule.weights.partition
            * (of_partition / max(of_partition.max(), 1.0))[columns["partition"]]
            + rule.weights.qos * (of_qos / max(of_qos.max(), 1.0))[columns["qos"]]
        )
