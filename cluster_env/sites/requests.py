"""What each job asks of a site: its nodes, how many of them, and whether it can ever run there."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.sites.description import Site
from cluster_env.sites.limits import (
    larger_than_limits,
    limits_of_a_job,
    longest_times,
    most_nodes,
)

DEFAULTS = {
    "qos": -1,
    "account": -1,
    "user": 0,
    "nodes": 0,
    "exclusive": 0,
    "features": 0,
    "any_features": 0,
    "array": -1,
    "throttle": 0,
    "after_ok": 0,
    "think_s": -1,
    "failed": 0,
    "reservation": -1,
}
"""Attributes of jobs at a site and what holds where one is absent; see `Site`. Without ``think_s``
(-1) a job is submitted at its arrival, and waits for the end of others in the queue's front room;
with it, it is submitted so many seconds after the last of these has ended."""

_PER_JOB = ("processors", "gpus", "nodes")


@dataclass(frozen=True)
class Requests:
    """Columns of all jobs of jobsets at a site.

    Attributes:
        site: where they run.
        demand: int32 ``(num_jobs, num_resources)``, of the site's resources.
        limit: int64 ``(num_jobs,)``, estimates in seconds.
        columns: int64 ``(num_jobs,)`` each, by the names of `DEFAULTS` and ``partition``.
    """

    site: Site
    demand: NDArray[np.int32]
    limit: NDArray[np.int64]
    columns: dict[str, NDArray[np.int64]]

    @classmethod
    def of(cls, site: Site, *jobsets: JobSet) -> "Requests":
        """What the jobs of jobsets ask for, one after the other.

        Raises:
            InputError: if an attribute names no part of the site.
        """

        def column(name: str, default: int) -> NDArray[np.int64]:
            parts = [
                one.attributes.get(name, np.full(one.num_jobs, default, np.int64))
                for one in jobsets
            ]
            return np.concatenate(parts).astype(np.int64)

        defaults = {"partition": site.default_partition, **DEFAULTS}
        columns = {name: column(name, value) for name, value in defaults.items()}
        ends = {
            "partition": (0, len(site.partitions)),
            "qos": (-1, len(site.qos_names)),
            "reservation": (-1, len(site.calendar)),
        }
        for name, (first, end) in ends.items():
            wrong = (columns[name] < first) | (columns[name] >= end)
            if wrong.any():
                job = int(np.argmax(wrong))
                raise InputError(
                    f"job {job} has the {name} {columns[name][job]}, but those of the site are "
                    f"numbered {max(first, 0)} to {end - 1}"
                )
        limits = [one.attributes.get("estimate", one.duration) for one in jobsets]
        demand = np.concatenate([one.demand for one in jobsets])
        return cls(site, demand, np.concatenate(limits).astype(np.int64), columns)

    @cached_property
    def sets(self) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
        """The set of each job, the nodes of each set, and the set of each partition.

        The nodes are bool ``(num_sets, num_nodes)``.
        """
        names = ("partition", "features", "any_features", "reservation")
        asked = np.stack([self.columns[name] for name in names], axis=1)
        plain = np.array([[k, 0, 0, -1] for k in range(len(self.site.partitions))], np.int64)
        example, index = _alike(asked)
        kinds = asked[example]
        masks = np.array(
            [self.site.node_set(*row) for row in [*plain.tolist(), *kinds.tolist()]], np.bool_
        ).reshape(-1, self.site.num_nodes)
        # Those with the same nodes are one set.
        rows, first, same = np.unique(masks, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
        of_partition, of_kind = np.split(place[same.reshape(-1)], [len(plain)])
        return of_kind[index.reshape(-1)], rows[order], of_partition

    @cached_property
    def exclusive(self) -> NDArray[np.bool_]:
        """Which jobs have their nodes for themselves, by their own wish or their partition's."""
        always = np.array([one.exclusive for one in self.site.partitions])
        return np.asarray((self.columns["exclusive"] > 0) | always[self.columns["partition"]])

    @cached_property
    def least(self) -> NDArray[np.int64]:
        """Nodes that a job takes at least, 1 or more."""
        fewest = np.array([one.min_nodes for one in self.site.partitions], np.int64)
        asked, size = self.columns["nodes"], self.demand[:, 0]
        least = np.where(asked > 0, asked, fewest[self.columns["partition"]])
        return np.clip(least, 1, np.maximum(size, 1))

    @cached_property
    def most(self) -> NDArray[np.int64]:
        """Nodes that it takes at most."""
        bound = np.minimum(self._most_in_partition, most_nodes(self.site, self.columns))
        return np.where(self.columns["nodes"] > 0, self.least, bound)

    @cached_property
    def _most_in_partition(self) -> NDArray[np.int64]:
        bound = np.array([one.max_nodes or self.site.num_nodes for one in self.site.partitions])
        return np.where(self.columns["nodes"] > 0, self.least, bound[self.columns["partition"]])

    @cached_property
    def forms(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The form of each job, and the first job of each form; see `Work`."""
        columns = [self.sets[0], self.least, self.most, self.exclusive, *self.demand.T]
        columns.append(self.columns["reservation"])
        table = np.stack([np.asarray(column, np.int64) for column in columns], axis=1)
        first, form = _alike(table)
        return form, first

    @cached_property
    def counted(self) -> dict[str, NDArray[np.int64]]:
        """What each job counts as for limits, by their units; see `limits`."""
        size, resources = self.demand[:, 0].astype(np.int64), self.site.resources
        zeros = np.zeros(size.size, np.int64)
        sets, masks, _ = self.sets
        widest = np.array([self.site.units[mask, 0].max(initial=1) for mask in masks], np.int64)
        nodes = np.maximum(self.least, -(-size // widest[sets]))
        whole = np.where(self.exclusive, nodes * widest[sets], size)
        others = {
            name: self.demand[:, resources.index(name)].astype(np.int64)
            if name in resources
            else zeros
            for name in ("memory", "gpus")
        }
        return {"jobs": zeros + 1, "processors": np.maximum(whole, size), "nodes": nodes, **others}

    def impossible(self) -> Iterator[tuple[NDArray[np.bool_], str]]:
        """Which jobs can never run, bool ``(num_jobs,)``, and why; reason by reason."""
        closed = np.array([not one.available for one in self.site.partitions])
        yield closed[self.columns["partition"]], "belongs to a partition that is not up"
        for place, partition in enumerate(self.site.partitions):
            asked = np.where(self.columns["partition"] == place, self.columns["nodes"], 0)
            most = partition.max_nodes or self.site.num_nodes
            yield (
                (asked > most) | ((asked > 0) & (asked < partition.min_nodes)),
                f"asks for a number of nodes that the partition {partition.name} lets no job have",
            )
        fits = self._fit(self._most_in_partition)
        yield ~fits, "fits on no nodes that it may use, even if all are idle"
        for whose, seconds, what in longest_times(self.site, self.columns):
            yield (
                whose & (self.limit > seconds),
                f"asks for more time than the {what} lets it have, {seconds:,} seconds",
            )
        for unit in _PER_JOB:
            for whose, most, one in limits_of_a_job(self.site, self.columns, f"{unit}_per_job"):
                yield (
                    whose & (self.counted[unit] > most),
                    f"asks for more {unit} than the {one.kind} {one.name} lets a job have",
                )
        for over, limit in larger_than_limits(self.site, self.columns, self.counted):
            yield over, f"alone holds more than {limit}"
        yield ~self._fit(self.most), "needs more nodes than its limits let it have"

    def _fit(self, most: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which jobs fit on so many of their nodes when they are idle, bool ``(num_jobs,)``."""
        sets, masks, _ = self.sets
        fits = np.zeros(self.forms[1].size, np.bool_)
        for form, job in enumerate(self.forms[1]):
            units, demand = self.site.units[masks[sets[job]]], self.demand[job].astype(np.int64)
            can = np.minimum(units[:, 0], demand[0])
            for r in range(1, demand.size):
                if demand[r]:
                    can = np.minimum(can, units[:, r] * demand[0] // demand[r])
            can = np.sort(can)[::-1][: most[job]]
            fits[form] = can.sum() >= demand[0] and (can > 0).sum() >= self.least[job]
        return fits[self.forms[0]]


def _alike(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of equal rows, in the order of rows, and the place of each row among them.

    As `np.unique` by rows, which compares them byte by byte; here most columns are all the same.
    """
    key = np.zeros(table.shape[0], np.int64)
    for column in table.T:
        if column.size and column.min() < column.max():
            values, rank = np.unique(column, return_inverse=True)
            key = np.unique(key * values.size + rank, return_inverse=True)[1]
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return first, place


def check_site(site: Site, jobset: JobSet) -> None:
    """Makes sure that every job can run at a site.

    Raises:
        InputError: for the first one that can never.
    """
    for never, why in Requests.of(site, jobset).impossible():
        if never.any():
            raise InputError(f"job {int(np.argmax(never))} {why}")
