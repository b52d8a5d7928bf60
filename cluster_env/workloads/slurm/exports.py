"""What sacctmgr and scontrol export of limits and outages, as plain data of a site's description.

Names are those of the options of `cluster_env.sites.description`. What is in a table and
not simulated comes as sentences beside it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.workloads.clock import Clock, Unreadable
from cluster_env.workloads.numbers import as_shown
from cluster_env.workloads.slurm.values import count, gpus_of, limit_s, memory_mib, resources

Plain = dict[str, Any]

FOREVER = 2**31 - 1
"""Unix time at which what has no end yet ends."""

_TRES = {"cpu": "processors", "node": "nodes"}
_OF_QOS = {"GrpTRES": "", "MaxTRESPU": "_per_user", "MaxTRESPA": "_per_account"}
_JOBS_OF_QOS = {
    "Priority": "priority",
    "GrpJobs": "jobs",
    "MaxJobsPU": "jobs_per_user",
    "MaxJobsPA": "jobs_per_account",
}
_NOT_SIMULATED = (
    *("Preempt", "Flags", "GrpTRESMins", "GrpTRESRunMins", "GrpSubmit", "GrpWall"),
    *("MaxTRESPerNode", "MaxTRESMins", "MaxSubmitPU", "MaxTRESRunMinsPA", "MaxTRESRunMinsPU"),
    *("MaxSubmitPA", "MinTRES", "MaxSubmit"),
)
_FAILED = ("down", "fail", "error", "no_respond", "not_resp")
_DRAINED = ("drain", "maint", "planned", "boot", "power")
_PAIR = re.compile(r"(\w+)=(\S*)")
_NOBODY = ("", "(null)", "none")


@dataclass
class Export:
    """What a file of Slurm says of a site.

    Attributes:
        limits: plain data of limits.
        calendar: plain data of outages.
        not_simulated: what else it says.
    """

    limits: list[Plain] = field(default_factory=list)
    calendar: list[Plain] = field(default_factory=list)
    not_simulated: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Row:
    path: Path
    line: int
    cells: Mapping[str, str]

    def text(self, name: str) -> str:
        return self.cells.get(name.lower(), "")

    def read(self, name: str, reader: Callable[[str], Any]) -> Any:
        try:
            return reader(self.text(name))
        except Unreadable as error:
            raise InputError(
                f"{self.path}, line {self.line}: {name} must be {error}, not "
                f"'{as_shown(self.text(name))}'"
            ) from None


def read_qos(path: Path, lines: Sequence[str]) -> Export:
    """A table of ``sacctmgr show qos --parsable2``.

    Raises:
        InputError: if a value is wrong; it names line and column.
    """
    found = Export()
    for row in _rows(path, lines):
        limit: Plain = {"name": row.text("Name"), "kind": "qos"}
        limit |= {name: row.read(key, count) for key, name in _JOBS_OF_QOS.items()}
        for key, per in _OF_QOS.items():
            limit |= _tres(row, key, per)
        limit |= _of_a_job(row, found, limit["name"])
        found.limits.append(_without_zeros(limit))
        found.not_simulated += _others(row, f"the QOS {as_shown(limit['name'])}")
    return found


def read_associations(path: Path, lines: Sequence[str]) -> Export:
    """A table of ``sacctmgr show assoc --parsable2``: limits of accounts and of users.

    The limits of a user hold in one account; those of a user who has limits in several accounts
    are not simulated. Nor are those that accounts below an account have together.

    Raises:
        InputError: if a value is wrong; it names line and column.
    """
    found = Export()
    users: dict[str, list[Plain]] = {}
    for row in _rows(path, lines):
        user, account = row.text("User"), row.text("Account")
        if not (user or account):
            continue
        limit: Plain = {"name": user or account, "kind": "user" if user else "account"}
        # MaxJobs of an account is what each of its users may have at once.
        limit["jobs" if user else "jobs_per_user"] = row.read("MaxJobs", count)
        if not user:
            limit["jobs"] = row.read("GrpJobs", count)
        limit |= _tres(row, "GrpTRES", "")
        limit |= _of_a_job(row, found, limit["name"])
        limit = _without_zeros(limit)
        found.not_simulated += _others(row, f"the {limit['kind']} {as_shown(limit['name'])}")
        if len(limit) == 2:
            continue
        if row.text("Partition"):
            found.not_simulated.append(
                f"limits of {as_shown(limit['name'])} in the partition "
                f"{as_shown(row.text('Partition'))} alone"
            )
            continue
        if not user:
            found.limits.append(limit)
        elif limit not in users.setdefault(user, []):
            users[user].append(limit)
    for user, limits in users.items():
        if len(limits) == 1:
            found.limits += limits
        else:
            found.not_simulated.append(f"limits of {as_shown(user)} in several accounts")
    return found


def read_events(path: Path, lines: Sequence[str], clock: Clock) -> Export:
    """A table of ``sacctmgr show event --parsable2``: nodes that were down or drained.

    A node that is down is a failure; one that is drained takes no new jobs.

    Raises:
        InputError: if a value is wrong; it names line and column.
    """
    found, skipped = Export(), 0
    together: dict[tuple[int, int, str], Plain] = {}
    for row in _rows(path, lines):
        state, node = row.text("State").lower(), row.text("NodeName")
        kind = "failure" if state.startswith(_FAILED) else ""
        kind = "planned" if "drain" in state or state.startswith(_DRAINED) else kind
        start = row.read("TimeStart", clock.readings)[0]
        end = row.read("TimeEnd", clock.readings)[0]
        if not kind or node.lower() in _NOBODY or start is None:
            skipped += node.lower() not in _NOBODY
            continue
        end = FOREVER if end is None else end
        if end > start:
            outage = {"start": start, "end": end, "nodes": [], "kind": kind}
            outage |= {"known_from": start} if kind == "planned" else {}
            together.setdefault((start, end, kind), outage)["nodes"].append(node)
    found.calendar += together.values()
    if skipped:
        found.not_simulated.append(f"{skipped:,} events in {path} of other states")
    return found


def read_reservations(path: Path, lines: Sequence[str], clock: Clock) -> Export:
    """What ``scontrol show res -o`` prints: a line for each reservation.

    Raises:
        InputError: if a value is wrong; it names line and key.
    """
    found = Export()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        cells = {key.lower(): value for key, value in _PAIR.findall(line)}
        row = _Row(path, number, cells)
        name, flags = row.text("ReservationName"), row.text("Flags").split(",")
        times = [row.read(key, clock.readings)[0] for key in ("StartTime", "EndTime")]
        nodes = row.text("Nodes")
        if None in times or nodes.lower() in _NOBODY:
            found.not_simulated.append(f"the reservation {as_shown(name)}, which has no nodes")
            continue
        if any(flag in ("DAILY", "WEEKLY", "HOURLY", "WEEKDAY", "WEEKEND") for flag in flags):
            found.not_simulated.append(f"repeats of the reservation {as_shown(name)}")
        outage: Plain = {
            "start": times[0],
            "end": times[1],
            "nodes": [nodes],
            "kind": "planned" if "MAINT" in flags else "reservation",
            "name": name,
        }
        for key in ("Users", "Accounts"):
            names = [] if row.text(key).lower() in _NOBODY else row.text(key).split(",")
            outage[key.lower()] = [text for text in names if not text.startswith("-")]
        found.calendar.append(outage)
    return found


def _rows(path: Path, lines: Sequence[str]) -> list[_Row]:
    """Rows of a table with bars, by the names of its columns in small letters."""
    header = [name.strip().lower().replace(" ", "") for name in lines[0].split("|")]
    aliases = {"start": "timestart", "end": "timeend", "node": "nodename", "maxtrespj": "maxtres"}
    aliases |= {"maxtresperuser": "maxtrespu", "maxjobsperuser": "maxjobspu"}
    header = [aliases.get(name, name) for name in header]
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.split("|")
        if len(cells) < len(header):
            raise InputError(
                f"{path}, line {number}: {len(header)} values are expected, but there are "
                f"{len(cells)}; export with --parsable2"
            )
        rows.append(_Row(path, number, dict(zip(header, cells, strict=False))))
    return rows


def _tres(row: _Row, key: str, per: str) -> Plain:
    """Limits of processors, nodes, GPUs and memory in a list of trackable resources."""
    held = row.read(key, resources)
    found = {
        f"{ours}{per}": _Row(row.path, row.line, {key.lower(): held[theirs]}).read(key, count)
        for theirs, ours in _TRES.items()
        if theirs in held
    }
    if any(name.startswith("gres/gpu") for name in held):
        found[f"gpus{per}"] = row.read(key, lambda text: int(gpus_of(resources(text))[0]))
    if "mem" in held and per != "_per_job":
        memory = row.read(key, lambda text: memory_mib(resources(text)["mem"]))
        found[f"memory{per}"] = memory[0] if memory else 0
    return found


def _of_a_job(row: _Row, found: Export, name: str) -> Plain:
    """Limits of a single job."""
    if "mem" in row.read("MaxTRES", resources):
        found.not_simulated.append(f"memory of a job in MaxTRES of {as_shown(name)}")
    return {**_tres(row, "MaxTRES", "_per_job"), "max_time_s": row.read("MaxWall", limit_s) or 0}


def _without_zeros(limit: Plain) -> Plain:
    return {name: value for name, value in limit.items() if value}


def _others(row: _Row, whose: str) -> list[str]:
    return [
        f"{name} of {whose} is {as_shown(row.text(name))}"
        for name in _NOT_SIMULATED
        if row.text(name)
    ]
