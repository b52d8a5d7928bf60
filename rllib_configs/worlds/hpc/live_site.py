"""A live Slurm and its jobs in the terms of a site's description."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.sites.description import (
    MOST_FEATURES,
    Limit,
    NodeGroup,
    Outage,
    Partition,
    Site,
)
from cluster_env.workloads.slurm.hosts import host_names
from rllib_configs.snapshot import RESOURCES, SiteJob, SiteNode, Snapshot

FOREVER = 2**40
_WORD = re.compile(r"[A-Za-z_][\w.=/-]*")
_LIST = re.compile(rf"{_WORD.pattern}(?:&{_WORD.pattern})*")
_ANY = re.compile(rf"{_WORD.pattern}(?:\|{_WORD.pattern})*")
NAMED = "~"
"""Begins the feature that stands for named nodes; behind all others in the alphabet."""


def site_of(snapshot: Snapshot, more_features: Iterable[str] = ()) -> Site:
    """The description of a site as it is now: of nodes that take jobs alone.

    Nodes that jobs name have a feature of that name, as far as there are features left.
    """
    restrictions: Mapping[str, Any] = snapshot.restrictions or {}
    names = {node.name for node in snapshot.nodes}
    partitions = [
        _made(Partition, data, nodes=[one for one in data.get("nodes", ()) if one in names])
        for data in restrictions.get("partitions", ())
        if names & set(data.get("nodes", ()))
    ] or [
        Partition(name, tuple(node.name for node in snapshot.nodes if name in _parts(node)))
        for name in sorted({name for node in snapshot.nodes for name in _parts(node)})
    ]
    asked = {word for job in snapshot.jobs for word in _WORD.findall(job.features)}
    asked |= set(more_features)
    there = {one for node in snapshot.nodes for one in node.features.split(",") if one in asked}
    named = sorted({job.nodes_named for job in snapshot.jobs if _names_all(job)})
    hosts = {text: set(host_names(text)) for text in named[: MOST_FEATURES - len(there)]}
    limits = [_made(Limit, data) for data in restrictions.get("limits", ())]
    known = {limit.name for limit in limits if limit.kind == "qos"}
    used = {one.qos for one in partitions} | {job.qos for job in snapshot.jobs}
    limits += [Limit(name) for name in sorted(used - known - {""})]

    def features(node: SiteNode) -> tuple[str, ...]:
        own = [one for one in node.features.split(",") if one in there]
        return (*own, *(f"{NAMED}{text}" for text, on in hosts.items() if node.name in on))

    return Site(
        nodes=tuple(
            NodeGroup(
                node.name,
                processors=max(node.processors, 1),
                memory=node.memory,
                gpus=node.gpus,
                features=features(node),
            )
            for node in snapshot.nodes
        ),
        partitions=tuple(partitions),
        limits=tuple(limits),
        calendar=tuple(_calendar(restrictions, names)),
    )


def _parts(node: SiteNode) -> list[str]:
    return [name for name in node.partitions.split(",") if name]


def _names_all(job: SiteJob) -> bool:
    """Whether a job names all nodes that it needs."""
    return bool(job.nodes_named) and len(host_names(job.nodes_named)) >= job.nodes


def _made(kind: type[Any], data: Mapping[str, Any], **others: Any) -> Any:
    known = {entry.name for entry in fields(kind)}
    return kind(**{**{name: value for name, value in data.items() if name in known}, **others})


def _calendar(restrictions: Mapping[str, Any], names: set[str]) -> Iterable[Outage]:
    """Reservations that are not over, each with those of its nodes that take jobs."""
    for data in restrictions.get("calendar", ()):
        hosts = [host for text in data.get("nodes", ()) for host in host_names(text)]
        nodes = names if not hosts else names & set(hosts)
        if nodes:
            yield _made(Outage, data, nodes=sorted(nodes))


def jobset_of(
    site: Site,
    rows: Sequence[tuple[SiteJob, int]],
    users: Mapping[str, int] | None = None,
    accounts: Mapping[str, int] | None = None,
) -> JobSet:
    """Jobs as the site's description has them, each in one partition.

    Users and accounts have the given numbers, and others numbers behind all of these.
    """
    user = dict(numbered(site.user_names) if users is None else users)
    account = dict(numbered(site.account_names) if accounts is None else accounts)
    reserved = {outage.name: place for place, outage in enumerate(site.calendar)}
    jobs = [job for job, _ in rows]
    features = [features_of(site, job) for job in jobs]
    columns: dict[str, list[int]] = {
        "estimate": [job.limit or FOREVER for job in jobs],
        "partition": [place for _, place in rows],
        "qos": [site.qos_names.index(job.qos) if job.qos else -1 for job in jobs],
        "user": [number_of(user, job.user) for job in jobs],
        "account": [number_of(account, job.account) for job in jobs],
        "nodes": [job.nodes for job in jobs],
        "exclusive": [int(job.exclusive) for job in jobs],
        "features": [every for every, _ in features],
        "any_features": [max(some, 0) for _, some in features],
        "reservation": [reserved.get(job.reservation, -1) for job in jobs],
        "array": [int(job.array) if job.array else -1 for job in jobs],
        "throttle": [job.throttle for job in jobs],
    }
    demand = [
        [dict(zip(RESOURCES, job.demand, strict=True))[name] for name in site.resources]
        for job in jobs
    ]
    return JobSet.of(
        np.zeros(len(jobs), np.int64),
        np.ones(len(jobs), np.int64),
        np.array(demand, np.int64).reshape(len(jobs), len(site.resources)),
        attributes={name: np.array(column, np.int64) for name, column in columns.items()},
    )


def numbered(names: Sequence[str]) -> dict[str, int]:
    """The places of names."""
    return {name: number for number, name in enumerate(names)}


def number_of(known: dict[str, int], name: str) -> int:
    """The number of a name; one that is not known gets the next one."""
    return known.setdefault(name, 1 + max(known.values(), default=-1))


def words_of(text: str) -> list[str]:
    """The names in a constraint."""
    return _WORD.findall(text)


def is_plain(constraint: str) -> bool:
    """Whether a constraint is nothing but features that nodes need all of, or one of."""
    return not constraint or bool(_LIST.fullmatch(constraint) or _ANY.fullmatch(constraint))


def features_of(site: Site, job: SiteJob) -> tuple[int, int]:
    """Features that nodes need all of, and those that they need one of; -1 if no node can do.

    What is more than a list with ``&`` counts as a list with ``|``: Slurm knows more.
    """
    on = [f"{NAMED}{job.nodes_named}"] if _names_all(job) else []
    on = [name for name in on if name in site.feature_names]
    names = _WORD.findall(job.features)
    known = [name for name in names if name in site.feature_names]
    if _LIST.fullmatch(job.features):
        return (site.feature_mask([*known, *on]), 0) if len(known) == len(names) else (0, -1)
    return site.feature_mask(on), site.feature_mask(known) or -bool(names)
