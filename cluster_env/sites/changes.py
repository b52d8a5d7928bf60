"""Changes to a site, as people write them: ``partition.batch.nodes=+16``, ``qos.low.jobs=4``."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from cluster_env.core.amounts import whole_amount
from cluster_env.core.durations import seconds_of
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import unknown
from cluster_env.sites.description import Site
from cluster_env.sites.parts import LIMIT_KINDS, Limit, NodeGroup, Outage, Partition

PARTITION, OUTAGE = "partition", "outage"

KEYS = (
    *(f"{PARTITION}.NAME.nodes", f"{PARTITION}.NAME.max-time", f"{PARTITION}.NAME.tier"),
    *(f"{kind}.NAME.jobs-per-user" for kind in LIMIT_KINDS),
    OUTAGE,
)
"""Examples of keys, for messages; a partition and a limit have a key for each of their options."""

_BOOLS = {"true": True, "false": False}


def changes_site(key: str) -> bool:
    """Whether a key is of a site, and not of the whole machine."""
    return key == OUTAGE or key.partition(".")[0] in (PARTITION, *LIMIT_KINDS)


def changed_site(site: Site, key: str, value: str, begin: int) -> Site:
    """A site after a change.

    * ``partition.NAME.nodes=+16`` adds nodes that are like the partition's last ones; ``-16`` takes
      its last nodes away, and out of the machine where no other partition has them; else the value
      is a list of nodes.
    * Other keys of a partition, and of a limit (``qos.NAME.``, ``account.NAME.``, ``user.NAME.``),
      are the options of `Partition` and `Limit`, with times such as ``2d``; ``0`` is no limit.
    * ``outage=30d+12h:n[1-4]`` closes nodes, or without a list all, for 12 hours on day 30.

    Args:
        site: today's.
        key: what is changed.
        value: to what.
        begin: second of the log's clock at which its first job arrives.

    Raises:
        InputError: if the site has no such part, or the value is impossible.
    """
    if key == OUTAGE:
        return replace(site, calendar=(*site.calendar, _outage(value, begin)))
    kind, _, rest = key.partition(".")
    name, _, option = rest.rpartition(".")
    if not name or not option:
        raise InputError(f"{shortened(key)} names no option; try {', '.join(KEYS)}")
    option = option.replace("-", "_")
    if kind == PARTITION:
        if name not in site.partition_names:
            raise unknown("partition", name, site.partition_names)
        if option == "nodes":
            return _with_nodes(site, site.partition_names.index(name), key, value)
        partitions = tuple(
            _with_option(one, key, option, value) if one.name == name else one
            for one in site.partitions
        )
        return replace(site, partitions=partitions)
    known = [one for one in site.limits if (one.kind, one.name) == (kind, name)]
    if kind == "qos" and not known:
        raise unknown("QOS", name, site.qos_names)
    changed = _with_option(known[0] if known else Limit(name, kind), key, option, value)
    others = [one for one in site.limits if one not in known]
    place = site.limits.index(known[0]) if known else len(others)
    return replace(site, limits=(*others[:place], changed, *others[place:]))


def _with_option(part: Any, key: str, option: str, value: str) -> Any:
    """A partition or a limit with another value of one of its options."""
    options = {one.name: one.type for one in fields(part) if one.name not in ("name", "kind")}
    if option not in options and f"{option}_s" in options:
        option = f"{option}_s"
    if option not in options:
        names = [name.removesuffix("_s").replace("_", "-") for name in options]
        raise unknown("option", key.rpartition(".")[2], names)
    now = getattr(part, option)
    if option.endswith("_s"):
        return replace(part, **{option: seconds_of(value)})
    if isinstance(now, bool):
        if value not in _BOOLS:
            raise InputError(f"{key} is true or false, not '{shortened(value)}'")
        return replace(part, **{option: _BOOLS[value]})
    if isinstance(now, int):
        if not now and value[:1] in ("+", "-"):
            raise InputError(f"{key} has no limit today, so give a number, not {shortened(value)}")
        return replace(part, **{option: 0 if value == "0" else whole_amount(key, value, now)})
    return replace(part, **{option: value})


def _outage(text: str, begin: int) -> Outage:
    times, _, nodes = text.partition(":")
    start, plus, length = times.partition("+")
    if not plus:
        raise InputError(
            f"an outage is BEGIN+LENGTH or BEGIN+LENGTH:NODES, such as 30d+12h:n[1-4], counted "
            f"from the first job of the log, not '{shortened(text)}'"
        )
    first = begin + seconds_of(start)
    return Outage(first, first + seconds_of(length), (nodes,) if nodes else ())


def _with_nodes(site: Site, place: int, key: str, value: str) -> Site:
    partition = site.partitions[place]
    own = site.indices(partition.nodes).tolist()
    if not (value[:1] in ("+", "-") or value.isdigit()):
        return _with_partition(site, place, replace(partition, nodes=(value,)))
    count = whole_amount(key, value, len(own))
    if count < len(own):
        return _without_nodes(site, place, own[:count])
    if count == len(own):
        return site
    return _with_more(site, place, count - len(own), own[-1])


def _with_partition(site: Site, place: int, partition: Partition) -> Site:
    partitions = list(site.partitions)
    partitions[place] = partition
    return replace(site, partitions=tuple(partitions))


def _with_more(site: Site, place: int, more: int, like: int) -> Site:
    """The site with nodes in a partition that are like one that it has."""
    group = next(one for one in site.nodes if site.node_names[like] in one.node_names)
    number = 1
    while any(f"added{number}x" in name for name in site.node_names):
        number += 1
    added = replace(group, name=f"added{number}x[1-{more}]", count=1)
    partitions = list(_pinned(site))
    grown = (*partitions[place].nodes, *added.node_names)
    partitions[place] = replace(partitions[place], nodes=grown)
    return replace(site, nodes=(*site.nodes, added), partitions=tuple(partitions))


def _without_nodes(site: Site, place: int, kept: Sequence[int]) -> Site:
    """The site with fewer nodes in a partition; nodes of no partition are gone."""
    names = site.node_names
    partitions = list(_pinned(site))
    lost = set(partitions[place].nodes) - {names[node] for node in kept}
    partitions[place] = replace(partitions[place], nodes=tuple(names[node] for node in kept))
    gone = lost - {name for one in partitions for name in one.nodes}
    groups = tuple(_reduced(group, gone) for group in site.nodes)
    calendar = []
    for outage in site.calendar:
        left = tuple(names[k] for k in site.indices(outage.nodes) if names[k] not in gone)
        if left:
            calendar.append(replace(outage, nodes=left if outage.nodes else ()))
    return replace(
        site,
        nodes=tuple(group for group in groups if group is not None),
        partitions=tuple(partitions),
        calendar=tuple(calendar),
    )


def _pinned(site: Site) -> list[Partition]:
    """The partitions with their nodes by name, so that other nodes change nothing of theirs."""
    names = site.node_names
    return [
        replace(one, nodes=tuple(names[k] for k in site.indices(one.nodes)))
        for one in site.partitions
    ]


def _reduced(group: NodeGroup, gone: set[str]) -> NodeGroup | None:
    left = [name for name in group.node_names if name not in gone]
    if len(left) == len(group.node_names):
        return group
    return replace(group, name=",".join(left), count=1) if left else None
