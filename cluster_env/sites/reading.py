"""Sites from files: a description in YAML or a slurm.conf, and what Slurm exports beside it.

Files are told apart by what is in them. The machine comes from one of them:

* YAML, with the options of `Site`,
* a ``slurm.conf``,
* what ``scontrol show node`` prints, which says nothing of the order and of limits;

and the others add to it:

* ``sacctmgr show qos --parsable2`` and ``sacctmgr show assoc --parsable2``: limits,
* ``scontrol show res -o`` and ``sacctmgr show event --parsable2``: the calendar,
* a CSV with the columns ``start`` and ``end``, and any of the other options of `Outage`.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from cluster_env.core.checks import from_plain
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.yaml_text import MAX_CHARACTERS, YAMLFault, parse_yaml
from cluster_env.sites.description import Outage, Site
from cluster_env.sites.weights import Weights
from cluster_env.workloads.clock import Clock, Unreadable
from cluster_env.workloads.files import opened, version_of
from cluster_env.workloads.slurm.conf import parse_conf
from cluster_env.workloads.slurm.exports import (
    Export,
    Plain,
    read_associations,
    read_events,
    read_qos,
    read_reservations,
)
from cluster_env.workloads.slurm.node_listing import conf_of_listing, is_listing
from cluster_env.workloads.slurm.site_conf import ENFORCED, site_of_conf

TIME_ZONE = "TZ="
"""Begins a part of the text that names the zone of times without one, in place of a file."""

_LISTS = ("nodes", "users", "accounts")
_OPTION = "option of a site"
_OF_CONF = re.compile(r"\s*NodeName\s*=", re.IGNORECASE)


def read_site(text: Path | str) -> Site:
    """A site from a file, or from several whose names are separated by commas.

    ``slurm.conf,qos.txt,TZ=Europe/Berlin`` also says the zone of times that name none, else UTC.

    Raises:
        InputError: if a file cannot be read or is of no known kind, none or two of them describe
            the machine, or the description is impossible.
    """
    parts = [part.strip() for part in str(text).split(",") if part.strip()]
    zones = [part for part in parts if part.startswith(TIME_ZONE)]
    paths = [Path(part).expanduser() for part in parts if part not in zones]
    zone = zones[-1].removeprefix(TIME_ZONE) if zones else ""
    Clock.of(zone)
    versions = tuple((path, *version_of(path, "the site")) for path in paths)
    return _read(versions, zone)


@lru_cache(maxsize=4)
def _read(versions: tuple[tuple[Path, int, int], ...], zone: str) -> Site:
    """The site of versions of files, which are not read again as long as they do not change."""
    machines: list[tuple[Path, Plain]] = []
    found = Export()
    for path, _, _ in versions:
        machine, export = _file(path, Clock.of(zone))
        machines += [(path, machine)] if machine else []
        found.limits += export.limits
        found.calendar += export.calendar
        found.not_simulated += export.not_simulated
    if len(machines) != 1:
        names = ", ".join(str(path) for path, _, _ in versions)
        which = " and ".join(str(path) for path, _ in machines) or "none of them does"
        raise InputError(
            f"one of the files {names} must describe the machine, a slurm.conf or a YAML file with "
            f"nodes, but {which}"
        )
    path, plain = machines[0]
    try:
        return _site(plain, found)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _file(path: Path, clock: Clock) -> tuple[Plain, Export]:
    """The machine in a file, empty if it says nothing of it, and what else it says."""
    if path.suffix in (".yaml", ".yml"):
        return _yaml(path, clock), Export()
    with opened(path, "the site", errors="replace") as file:
        lines = file.read().splitlines()
    first = next((line for line in lines if line.strip()), "").lower()
    if "|" in first:
        names = first.replace(" ", "").split("|")
        lines = lines[next(k for k, line in enumerate(lines) if line.strip()) :]
        if "nodename" in names or "timestart" in names:
            return {}, read_events(path, lines, clock)
        if "account" in names and "user" in names:
            return {}, read_associations(path, lines)
        if "name" in names:
            return {}, read_qos(path, lines)
    if first.startswith("reservationname="):
        return {}, read_reservations(path, lines, clock)
    cells = {cell.strip() for cell in first.replace(";", ",").replace("\t", ",").split(",")}
    if {"start", "end"} <= cells:
        return {}, Export(calendar=_calendar(path, lines, clock))
    if is_listing(lines):
        return site_of_conf(conf_of_listing(path, lines)), Export()
    if any(_OF_CONF.match(line) for line in lines):
        return site_of_conf(parse_conf(path)), Export()
    raise InputError(
        f"{path} is no YAML file (.yaml), slurm.conf, calendar (CSV with start and end), nor what "
        "sacctmgr show qos, assoc or event --parsable2, scontrol show node or scontrol show res -o "
        "print"
    )


def _yaml(path: Path, clock: Clock) -> Plain:
    with opened(path, "the site", errors="strict") as file:
        try:
            data = parse_yaml(file.read(MAX_CHARACTERS + 1))
        except YAMLFault as error:
            raise InputError(f"{path} {error}") from None
        except UnicodeDecodeError:
            raise InputError(f"{path} is no text in UTF-8") from None
    if not isinstance(data, dict) or "nodes" not in data:
        raise InputError(f"{path} must hold a table with nodes, a list of groups of nodes")
    for name in ("limits", "calendar", "not_simulated"):
        of = str if name == "not_simulated" else dict
        if not all(isinstance(one, of) for one in _list(path, name, data.get(name))):
            raise InputError(
                f"{path}: {name} must be a list of {'words' if of is str else 'tables'}"
            )
    for outage in data.get("calendar") or ():
        for name in ("start", "end", "known_from"):
            if name in outage:
                outage[name] = _time(path, outage[name], clock)
    return data


def _list(path: Path, name: str, value: Any) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise InputError(f"{path}: {name} must be a list, but {shortened(repr(value))} was given")
    return value or []


def _time(path: Path, value: Any, clock: Clock) -> Any:
    """Seconds of what YAML made of a time; what is none is left to the description."""
    if isinstance(value, datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=clock.zone or UTC)
        return int(zoned.timestamp())
    if isinstance(value, date):
        return _time(path, datetime(value.year, value.month, value.day), clock)
    if not isinstance(value, str):
        return value
    try:
        return clock.dates(value)[0]
    except Unreadable as error:
        raise InputError(f"{path}: a time must be {error}, not '{shortened(value)}'") from None


def _calendar(path: Path, lines: Sequence[str], clock: Clock) -> list[Plain]:
    """Outages of a CSV; lists in a cell are separated by spaces."""
    delimiter = next((sign for sign in ";\t" if sign in lines[0]), ",")
    names = [entry.name for entry in fields(Outage)]
    calendar = []
    for number, row in enumerate(csv.DictReader(lines, delimiter=delimiter), start=2):
        outage: Plain = {}
        for name, cell in row.items():
            key, text = (name or "").strip().lower(), cell.strip() if isinstance(cell, str) else ""
            if key not in names:
                raise InputError(
                    f"{path}, line {number}: a calendar has the columns {', '.join(names)}, but "
                    f"not '{shortened(str(name))}'"
                )
            if not text:
                continue
            if key in _LISTS:
                outage[key] = text.split()
            elif key in ("start", "end", "known_from"):
                whole = text.removeprefix("-").isdecimal() and len(text) < 12
                outage[key] = int(text) if whole else _time(path, text, clock)
            else:
                outage[key] = text
        calendar.append(outage)
    return calendar


def _site(plain: Mapping[str, Any], found: Export) -> Site:
    """The description from plain data of a machine and what other files add to it."""
    data = {name: value for name, value in plain.items() if value is not None}
    enforced = data.pop(ENFORCED, True)
    notes = [*data.get("not_simulated", ()), *found.not_simulated]
    limits = [*data.get("limits", ()), *found.limits]
    if not enforced and limits:
        notes.append("limits, because AccountingStorageEnforce does not enforce them")
        limits = [
            {name: limit[name] for name in ("name", "kind", "priority") if name in limit}
            for limit in limits
            if limit.get("kind", "qos") == "qos"
        ]
    if ENFORCED in plain:
        notes += _without_unknown_qos(data, limits)
    if isinstance(data.get("weights"), Mapping):
        known = {entry.name for entry in fields(Weights)}
        data["weights"] = {name: one for name, one in data["weights"].items() if name in known}
        if not data["weights"]:
            del data["weights"]
    own = data.get("calendar") or []
    without = {**data, "limits": limits, "calendar": [], "not_simulated": notes}
    site = from_plain(Site, without, _OPTION)
    kept, missing = [], set[str]()
    for outage in found.calendar:
        nodes = outage.get("nodes", [])
        strange = {name for name in nodes if not site.has_nodes(name)}
        there = [name for name in nodes if name not in strange]
        missing |= strange
        kept += [{**outage, "nodes": there}] if there or not nodes else []
    if missing:
        names = ", ".join(sorted(missing)[:5]) + (" and more" if len(missing) > 5 else "")
        notes.append(f"outages of nodes that the site does not have: {shortened(names)}")
    return from_plain(Site, {**without, "calendar": [*own, *kept], "not_simulated": notes}, _OPTION)


def _without_unknown_qos(data: Plain, limits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Takes from partitions the QOS that no file describes, and says so."""
    known = {limit.get("name") for limit in limits if limit.get("kind", "qos") == "qos"}
    notes, partitions = [], []
    for partition in data.get("partitions", ()):
        qos = partition.get("qos", "")
        if qos and qos not in known:
            notes.append(
                f"limits of the QOS {shortened(qos)} of the partition {partition['name']} (add "
                "what sacctmgr show qos --parsable2 prints)"
            )
            partition = {**partition, "qos": ""}
        partitions.append(partition)
    if partitions:
        data["partitions"] = partitions
    return notes
