"""What a slurm.conf says of a site's nodes and partitions, as plain data of a description.

Names are those of the options of `cluster_env.sites.description.Site`. What matters for
waits and is not simulated is listed under ``not_simulated``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.workloads.clock import Unreadable
from cluster_env.workloads.numbers import as_shown, read_number
from cluster_env.workloads.slurm.conf import Settings, SlurmConf, whole_number
from cluster_env.workloads.slurm.hosts import host_names
from cluster_env.workloads.slurm.values import limit_s

ENFORCED = "limits_enforced"
"""Key of the plain data: whether Slurm holds jobs to the limits of accounts and QOS."""

_WEIGHTS = {"partition": "PriorityWeightPartition", "qos": "PriorityWeightQOS"}
_OTHER_WEIGHTS = ("PriorityWeightAssoc", "PriorityWeightTRES")
_LENGTHS = {"half_life_s": "PriorityDecayHalfLife", "max_age_s": "PriorityMaxAge"}
_DAYS = re.compile(r"(\d{1,5})-(\d{1,6})(?::(\d\d))?")
_ZERO, _NEVER_S = ("0", "0-0", "00:00:00"), 2**31 - 1
_CLOSED = ("down", "inactive")
_TRUE = ("yes", "true", "1")
_OF_PARTITION = {
    "AllowAccounts": "all",
    "AllowGroups": "all",
    "AllowQos": "all",
    "DenyAccounts": "",
    "DenyQos": "",
    "ExclusiveUser": "no",
    "LLN": "no",
    "MaxCPUsPerNode": "unlimited",
    "MaxMemPerNode": "0",
    "PreemptMode": "off",
}
"""Keys of partitions that are not simulated, and what they are where they change nothing."""


def site_of_conf(conf: SlurmConf) -> dict[str, Any]:
    """Plain data of a site, with ``weights`` of the order and the ``rule`` that Slurm plays.

    Raises:
        InputError: if it names no node with CPUs, or a number is wrong; it names line and key.
    """
    path = conf.path
    groups = [group for group in conf.groups if group is not None]
    order, weights = conf.order
    known = {host for group in groups for host in group.hosts}
    sets = _node_sets(conf)
    nodes = []
    for (line, pairs), group in zip(conf.nodes, conf.groups, strict=True):
        if group is None:
            continue
        entry = {
            "name": group.name,
            "processors": group.processors,
            "memory": group.memory if conf.counts_memory else 0,
            "gpus": group.gpus,
            "features": _features(pairs),
            "weight": whole_number(path, line, pairs, "Weight", 1),
        }
        nodes.append(entry)
    partitions = [_partition(path, line, pairs, known, sets) for line, pairs in conf.partitions]
    if conf.settings.get("selecttype", "").lower().endswith("linear"):  # gives whole nodes
        partitions = [{**partition, "exclusive": True} for partition in partitions]
    if conf.settings.get("prioritytype", "").lower().endswith("multifactor"):
        weights = dict.fromkeys(("age", "size", "fair_share"), 0.0) | weights
        weights |= {name: _weight(conf, key) for name, key in _WEIGHTS.items()}
        order = "priority" if any(weights.values()) else "fcfs"
    return {
        "nodes": nodes,
        **({"partitions": partitions} if partitions else {}),
        **{name: _length(conf, key) for name, key in _LENGTHS.items() if _length(conf, key)},
        "placement": "consecutive",
        "rule": f"{order}:{conf.backfilling}",
        "weights": weights,
        ENFORCED: _are_limits_enforced(conf.settings),
        "not_simulated": [*conf.included, *_not_simulated(conf)],
    }


def _features(pairs: Settings) -> list[str]:
    texts = pairs.get("features", pairs.get("feature", "")).split(",")
    return [text.strip() for text in texts if text.strip()]


def _node_sets(conf: SlurmConf) -> dict[str, list[str]]:
    """Hosts of each NodeSet, which are listed, or have a feature."""
    sets: dict[str, list[str]] = {}
    for pairs in conf.node_sets:
        hosts = list(_hosts(conf.path, 0, pairs["nodes"])) if "nodes" in pairs else []
        wanted = set(_features(pairs))
        for (_, node), group in zip(conf.nodes, conf.groups, strict=True):
            if group is not None and wanted & set(_features(node)):
                hosts += group.hosts
        sets[pairs["nodeset"]] = hosts
    return sets


def _partition(
    path: Path, line: int, pairs: Settings, known: set[str], sets: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    number = partial(whole_number, path, line, pairs)
    most = pairs.get("maxnodes", "").lower()
    shared = pairs.get("oversubscribe", pairs.get("shared", "")).lower()
    try:
        longest = _length_s(pairs.get("maxtime", ""))
    except Unreadable as error:
        shown = as_shown(pairs["maxtime"])
        raise InputError(f"{path}, line {line}: MaxTime must be {error}, not '{shown}'") from None
    nodes = _partition_nodes(path, line, pairs.get("nodes", ""), known, sets)
    return {
        "name": pairs["partitionname"],
        "nodes": nodes,
        "max_time_s": longest,
        "min_nodes": number("MinNodes", 0),
        "max_nodes": 0 if most in ("", "unlimited") else number("MaxNodes", 0),
        "tier": number("PriorityTier", number("Priority", 1)),
        "priority": number("PriorityJobFactor", number("Priority", 1)),
        "exclusive": shared.startswith("exclusive"),
        "qos": pairs.get("qos", ""),
        "default": pairs.get("default", "").lower() in _TRUE,
        "available": not pairs.get("state", "").lower().startswith(_CLOSED),
    }


def _partition_nodes(
    path: Path, line: int, text: str, known: set[str], sets: Mapping[str, Sequence[str]]
) -> list[str]:
    """The text as it is where all its nodes are there, else the names of those that are."""
    if not text or text.upper() == "ALL":
        return ["ALL"]
    hosts: list[str] = []
    for name in _hosts(path, line, text):
        hosts += sets.get(name, [name])
    there = [host for host in hosts if host in known]
    if not there:
        raise InputError(f"{path}, line {line}: the partition has no node that is there")
    plain = len(there) == len(hosts) and not any(name in sets for name in text.split(","))
    return [text] if plain else there


def _hosts(path: Path, line: int, text: str) -> tuple[str, ...]:
    try:
        return host_names(text)
    except ValueError as error:
        raise InputError(f"{path}, line {line}: {error}") from None


def _weight(conf: SlurmConf, key: str) -> float:
    text = conf.settings.get(key.lower(), "0")
    value = read_number(text)
    if value is None:
        raise InputError(f"{conf.path}: {key} must be a number, not '{as_shown(text)}'")
    return float(value)


def _length_s(text: str) -> int:
    """Seconds of a length as a configuration has it, also ``7-0`` and ``1-12:30``; 0 for none."""
    found = _DAYS.fullmatch(text)
    if found:
        days, hours, minutes = (int(part or 0) for part in found.groups())
        return 86_400 * days + 3600 * hours + 60 * minutes
    return limit_s(text) or 0


def _length(conf: SlurmConf, key: str) -> int:
    """Seconds; 0 where the file does not say it. A half-life of 0 is none: usage never fades."""
    text = conf.settings.get(key.lower(), "")
    if text in _ZERO:
        return _NEVER_S
    try:
        return _length_s(text)
    except Unreadable:
        raise InputError(
            f"{conf.path}: {key} must be a length of time like 7-0, not '{as_shown(text)}'"
        ) from None


def _are_limits_enforced(settings: Settings) -> bool:
    words = settings.get("accountingstorageenforce", "").lower().split(",")
    return any(word.strip() in ("limits", "safe", "all") for word in words)


def _not_simulated(conf: SlurmConf) -> Iterator[str]:
    settings = conf.settings
    if not settings.get("prioritytype"):
        yield "PriorityType is not set, and read as priority/basic"
    for key in _OTHER_WEIGHTS:
        if settings.get(key.lower(), "0") not in ("", "0"):
            yield f"{key} is {as_shown(settings[key.lower()])}"
    if settings.get("priorityflags", ""):
        yield f"PriorityFlags is {as_shown(settings['priorityflags'])}"
    if settings.get("preempttype", "preempt/none").lower() != "preempt/none":
        yield "jobs may preempt others"
    if settings.get("licenses"):
        yield "licenses"
    for _, pairs in conf.partitions:
        shared = pairs.get("oversubscribe", pairs.get("shared", "no")).lower()
        if shared.startswith(("force", "yes")) and shared not in ("force:1", "yes:1"):
            yield f"processors of the partition {pairs['partitionname']} are shared by jobs"
        for key, usual in _OF_PARTITION.items():
            value = pairs.get(key.lower(), usual)
            if value.lower() != usual:
                yield f"{key} of the partition {pairs['partitionname']} is {as_shown(value)}"
