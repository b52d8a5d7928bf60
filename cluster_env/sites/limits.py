"""Limits as counters: what all jobs of a QOS, of an account or of a user in it hold at once.

A limit of a kind holds once: that of the partition's QOS, else that of the job's QOS, else those of
its user and of its account (Slurm's *Resource Limits*, "Hierarchy"). The others count the job, so
that it leaves less to those for which they hold. What a job counts as is known before it starts:
its demand; a job that has its nodes for itself counts as all their processors. A limit on nodes
counts those that jobs hold, each once, however many of the jobs it counts are there; before a job
starts, it is known of how many nodes it takes at least.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cluster_env.sites.description import Limit, Site

UNITS = ("jobs", "processors", "memory", "gpus", "nodes")

_NOBODY = -1


@dataclass
class Counters:
    """Counters, and who is counted by which, with which amounts.

    Attributes:
        limits: of each counter.
        names: what each counter limits, for people.
        of_nodes: whether each counts the nodes that jobs hold, each once, instead of their amounts.
        jobs: of each charge, the index of its job.
        counters: of each charge.
        amounts: of each charge.
        checked: of each charge, whether the limit holds for the job, or counts it alone.
    """

    limits: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    of_nodes: list[bool] = field(default_factory=list)
    jobs: list[NDArray[np.int64]] = field(default_factory=list)
    counters: list[NDArray[np.int64]] = field(default_factory=list)
    amounts: list[NDArray[np.int64]] = field(default_factory=list)
    checked: list[NDArray[np.bool_]] = field(default_factory=list)

    def charge(
        self,
        jobs: NDArray[np.int64],
        whose: NDArray[np.int64],
        amount: NDArray[np.int64],
        most: int,
        name: str,
        checked: NDArray[np.bool_] | None = None,
        *,
        of_nodes: bool = False,
    ) -> None:
        """A counter for each of those whose jobs they are, with the same limit."""
        if not jobs.size:
            return
        self.checked.append(np.ones(jobs.size, np.bool_) if checked is None else checked)
        owners, index = np.unique(whose, return_inverse=True)
        self.jobs.append(jobs)
        self.counters.append(len(self.limits) + index)
        self.amounts.append(amount)
        self.limits += [most] * owners.size
        self.names += [name] * owners.size
        self.of_nodes += [of_nodes] * owners.size

    def by_job(
        self, num_jobs: int
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.bool_],
        NDArray[np.int64],
    ]:
        """Where the charges of each job begin, their columns, and all limits."""
        if not self.limits:
            empty = np.zeros(0, np.int64)
            first = np.zeros(num_jobs + 1, np.int64)
            return first, empty.astype(np.int32), empty, empty.astype(np.bool_), empty
        job = np.concatenate(self.jobs)
        order = np.argsort(job, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(job, minlength=num_jobs))])
        return (
            first.astype(np.int64),
            np.concatenate(self.counters)[order].astype(np.int32),
            np.concatenate(self.amounts)[order].astype(np.int64),
            np.concatenate(self.checked)[order],
            np.array(self.limits, np.int64),
        )


def charge_limits(
    counters: Counters,
    site: Site,
    columns: dict[str, NDArray[np.int64]],
    amounts: dict[str, NDArray[np.int64]],
) -> None:
    """Charges all jobs with what counts for the limits of a site.

    Args:
        counters: to add to.
        site: with its limits.
        columns: ``partition``, ``qos``, ``user`` and ``account`` of all jobs, ``(num_jobs,)`` each.
        amounts: what each job counts as, by some of `UNITS`.
    """
    everybody, own = np.zeros(columns["qos"].size, np.int64), columns["qos"]
    of_partition = _qos_of_partition(site, columns)
    of_kind = {kind: [one for one in site.limits if one.kind == kind] for kind in _KINDS}
    owners = {"": everybody, "_per_user": columns["user"], "_per_account": columns["account"]}
    for unit in (one for one in UNITS if one in amounts):
        amount = amounts[unit]
        for whose, owner in owners.items():
            name = f"{unit}{whose}"
            # The partition's QOS goes before the job's own where it has such a limit.
            has = np.array([getattr(one, name) > 0 for one in of_kind["qos"]] + [False])
            by_partition = has[of_partition]
            for place, limit in enumerate(of_kind["qos"]):
                here = of_partition == place
                mine, checked = here | (own == place), here | ~by_partition
                _charge(counters, limit, name, (mine, checked, owner, amount))
            settled = by_partition | has[own]
            # A user's own limit is one of that user, whatever the QOS says of all.
            if whose == "_per_user":
                for place, limit in enumerate(of_kind["user"]):
                    mine = columns["user"] == place
                    _charge(counters, limit, unit, (mine, ~settled, everybody, amount))
                    settled = settled | (mine & (getattr(limit, unit) > 0))
            for place, limit in enumerate(of_kind["account"]):
                mine = columns["account"] == place
                _charge(counters, limit, name, (mine, ~settled, owner, amount))


def larger_than_limits(
    site: Site, columns: dict[str, NDArray[np.int64]], amounts: dict[str, NDArray[np.int64]]
) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Which jobs alone count for more than a limit that holds for them, and which limit that is."""
    counters = Counters()
    charge_limits(counters, site, columns, amounts)
    num_jobs = columns["qos"].size
    first, charged, amount, checked, most = counters.by_job(num_jobs)
    over = checked & (amount > most[charged])
    jobs = np.repeat(np.arange(num_jobs), np.diff(first))[over]
    names = np.array(counters.names, object)[charged[over]]
    for name in dict.fromkeys(names.tolist()):
        larger = np.zeros(num_jobs, np.bool_)
        larger[jobs[names == name]] = True
        yield larger, name


def most_nodes(site: Site, columns: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """How many nodes each job may take where it asks for none, int64 ``(num_jobs,)``.

    Slurm chooses no more than the least of the limits on nodes that hold for a job, of its own or
    of others with it.
    """
    num_jobs = columns["qos"].size
    most, counters = np.full(num_jobs, site.num_nodes, np.int64), Counters()
    charge_limits(counters, site, columns, {"nodes": np.ones(num_jobs, np.int64)})
    first, charged, _, checked, limits = counters.by_job(num_jobs)
    jobs = np.repeat(np.arange(num_jobs), np.diff(first))
    np.minimum.at(most, jobs[checked], limits[charged[checked]])
    for whose, limit, _ in limits_of_a_job(site, columns, "nodes_per_job"):
        most[whose] = np.minimum(most[whose], limit)
    return most


def charge_throttles(counters: Counters, columns: dict[str, NDArray[np.int64]]) -> None:
    """Charges the jobs of arrays of which only so many run at once.

    Args:
        counters: to add to.
        columns: ``array`` and ``throttle`` of all jobs, ``(num_jobs,)`` each.
    """
    throttle, array = columns["throttle"], columns["array"]
    throttled = np.flatnonzero((throttle > 0) & (array >= 0))
    for most in np.unique(throttle[throttled]).tolist():
        jobs = throttled[throttle[throttled] == most]
        ones = np.ones(jobs.size, np.int64)
        counters.charge(jobs, array[jobs], ones, most, f"{most:,} jobs of its array")


_KINDS = ("qos", "user", "account")


def _charge(
    counters: Counters,
    limit: Limit,
    name: str,
    charged: tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """Charges jobs: those that a limit counts, whether it holds, whose they are, amounts."""
    most = getattr(limit, name)
    if most:
        mine, checked, owner, amount = charged
        what = f"{most:,} {name.replace('_', ' ')} of the {limit.kind} {limit.name}"
        jobs = np.flatnonzero(mine)
        of_nodes = name.startswith("nodes")
        counters.charge(
            jobs, owner[mine], amount[mine], most, what, checked[mine], of_nodes=of_nodes
        )


def longest_times(
    site: Site, columns: dict[str, NDArray[np.int64]]
) -> Iterator[tuple[NDArray[np.bool_], int, str]]:
    """Which jobs have a longest time, in seconds, and by what: their partition, and a limit."""
    for place, partition in enumerate(site.partitions):
        if partition.max_time_s:
            yield columns["partition"] == place, partition.max_time_s, f"partition {partition.name}"
    for whose, seconds, limit in limits_of_a_job(site, columns, "max_time_s"):
        yield whose, seconds, f"{limit.kind} {limit.name}"


def limits_of_a_job(
    site: Site, columns: dict[str, NDArray[np.int64]], name: str
) -> Iterator[tuple[NDArray[np.bool_], int, Limit]]:
    """For which jobs, bool ``(num_jobs,)``, a limit of each single one holds, and its value.

    Args:
        site: with its limits.
        columns: as for `charge_limits`.
        name: of the limit: ``processors_per_job``. 0 is none.
    """
    settled = np.zeros(columns["qos"].size, np.bool_)
    own = [(kind, columns[kind]) for kind in _KINDS]
    for kind, places in (("qos", _qos_of_partition(site, columns)), *own):
        for place, limit in enumerate(one for one in site.limits if one.kind == kind):
            if most := int(getattr(limit, name)):
                holds = (places == place) & ~settled
                yield holds, most, limit
                settled = settled | holds


def _qos_of_partition(site: Site, columns: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Place of the QOS of each job's partition, -1 for none."""
    places = [site.qos_names.index(one.qos) if one.qos else _NOBODY for one in site.partitions]
    return np.array(places, np.int64)[columns["partition"]]
