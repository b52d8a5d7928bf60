"""What the rules of a real site let start now: partitions, limits, reservations and features.

The site's description, the sets of nodes and the counters of limits are those of the simulator.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.sites.description import Outage
from cluster_env.sites.limits import Counters, charge_limits, charge_throttles
from cluster_env.sites.requests import Requests
from cluster_env.workloads.slurm.hosts import host_names
from rllib_configs.snapshot import SiteJob, Snapshot
from rllib_configs.worlds.hpc.live_site import FOREVER, features_of, jobset_of, site_of


class Permits:
    """Counts what runs against limits, and says what may start beside it, and on which nodes.

    Args:
        snapshot: the site, with its rules.
        running: jobs that count as running.
        waiting: jobs that may be asked about.
    """

    def __init__(
        self, snapshot: Snapshot, running: Sequence[SiteJob], waiting: Sequence[SiteJob]
    ) -> None:
        self._time = snapshot.time
        self._site = site_of(snapshot)
        self._names = [node.name for node in snapshot.nodes]
        places = {name: place for place, name in enumerate(self._site.partition_names)}
        # A job of several partitions has a row for each of them; a running one is in one alone.
        self._rows: dict[str, list[int]] = {}
        rows: list[tuple[SiteJob, int]] = []
        for number, job in enumerate((*running, *waiting)):
            known = [places[name] for name in job.partition.split(",") if name in places]
            if number < len(running):
                known = known[:1] or [0]  # also on nodes that take no more jobs it counts
            self._rows[job.job] = list(range(len(rows), len(rows) + len(known)))
            rows += [(job, place) for place in known]
        self._requests = Requests.of(self._site, jobset_of(self._site, rows))
        charges = self._charges()
        self._first, self._counters, self._amounts, self._checked, self._limits = charges
        self._used = np.zeros(len(self._limits), np.int64)
        self._held: list[set[str]] = [set() for _ in self._limits]  # nodes, of limits on nodes
        self._never = self._impossible([job for job, _ in rows])
        self._sets = self._requests.sets
        for job in running:
            self._count(self._rows[job.job][0], set(host_names(job.node_list)))

    def partitions(self) -> list[tuple[str, frozenset[str]]]:
        """Partitions and names of their nodes, those of a higher tier first."""
        order = sorted(range(len(self._site.partitions)), key=self._tier)
        return [(self._site.partition_names[k], self._named(self._site.node_set(k))) for k in order]

    def refusal(self, job: SiteJob) -> str:
        """Why Slurm would not start a job now, whatever is free; empty if it would."""
        why = "its partition is not known"
        for row in self._rows[job.job]:
            why = self._refusal(row, job)
            if not why:
                return ""
        return why

    def places(self, job: SiteJob) -> list[tuple[frozenset[str], bool]]:
        """Where a job may start: nodes of each of its partitions, and whether idle ones alone."""
        return [
            (self._named(self._nodes(row, job)), bool(self._requests.exclusive[row]))
            for row in self._rows[job.job]
        ]

    def take(self, job: SiteJob) -> None:
        """A job starts."""
        rows = self._rows[job.job]
        self._count(next((row for row in rows if not self._refusal(row, job)), rows[0]), None)

    def impossible(self, job: SiteJob) -> str:
        """Why a job can never start as the site is now; empty if it can."""
        reasons = [self._never.get(row, "") for row in self._rows[job.job]]
        return reasons[0] if reasons and all(reasons) else ""

    def _refusal(self, row: int, job: SiteJob) -> str:
        if row in self._never:
            return self._never[row]
        nodes = self._nodes(row, job)
        for charge in range(self._first[row], self._first[row + 1]):
            counter = self._counters[charge]
            beside = self._of_nodes[counter] and nodes.sum() >= self._amounts[charge]
            if self._is_over(charge) and not beside:
                return f"limit: {self._of_limits[counter]}"
        if self._mine(row) is None and job.reservation:
            return f"the reservation {job.reservation} is not active"
        if not nodes.any():
            return "no node is free of reservations for as long as it may run"
        return ""

    def _mine(self, row: int) -> Outage | None:
        """The reservation of a job, if it is active."""
        place = int(self._requests.columns["reservation"][row])
        entry = self._site.calendar[place] if place >= 0 else None
        return entry if entry is not None and entry.start <= self._time < entry.end else None

    def _nodes(self, row: int, job: SiteJob) -> NDArray[np.bool_]:
        """Which nodes a job may have from now on, bool ``(num_nodes,)``."""
        nodes = self._sets[1][self._sets[0][row]].copy()
        mine = self._mine(row)
        until = self._time + (job.limit or FOREVER)
        for entry, reserved in zip(self._site.calendar, self._site.outage_nodes, strict=True):
            if entry is not mine and entry.start < until and self._time < entry.end:
                nodes &= ~reserved
        # Where a limit lets jobs have no further nodes, those that they hold are left.
        for charge in range(self._first[row], self._first[row + 1]):
            counter = self._counters[charge]
            if self._of_nodes[counter] and self._is_over(charge):
                nodes &= np.isin(self._names, list(self._held[counter]))
        return np.asarray(nodes, np.bool_)

    def _named(self, nodes: NDArray[np.bool_]) -> frozenset[str]:
        return frozenset(self._names[k] for k in np.flatnonzero(nodes))

    def _tier(self, place: int) -> tuple[int, int]:
        return -self._site.partitions[place].tier, place

    def _is_over(self, charge: int) -> bool:
        counter = self._counters[charge]
        after = self._used[counter] + self._amounts[charge]
        return bool(self._checked[charge] and after > self._limits[counter])

    def _count(self, row: int, nodes: set[str] | None) -> None:
        """A job that runs counts, with its nodes if somebody knows them, or one that starts."""
        for charge in range(self._first[row], self._first[row + 1]):
            counter = self._counters[charge]
            if self._of_nodes[counter] and nodes:
                self._used[counter] += len(nodes - self._held[counter])
                self._held[counter] |= nodes
            elif nodes is not None or not (self._of_nodes[counter] and self._is_over(charge)):
                self._used[counter] += self._amounts[charge]

    def _impossible(self, jobs: Sequence[SiteJob]) -> dict[int, str]:
        """Rows that can never start as the site is now, and why."""
        never = {
            row: f"no node has the features {job.features}"
            for row, job in enumerate(jobs)
            if features_of(self._site, job)[1] < 0
        }
        if jobs:
            for rows, why in self._requests.impossible():
                never |= {int(row): why for row in np.flatnonzero(rows) if row not in never}
        return never

    def _charges(self) -> Any:
        counters = Counters()
        charge_limits(counters, self._site, self._requests.columns, self._requests.counted)
        charge_throttles(counters, self._requests.columns)
        self._of_limits, self._of_nodes = counters.names, counters.of_nodes
        return counters.by_job(self._requests.demand.shape[0])
