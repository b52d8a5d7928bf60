"""What a site's slurm.conf says of the machine and of the order of jobs, as far as it is simulated.

Keys and values are those of Slurm's manual, slurm.conf(5). What matters for waits and is not
simulated is listed, so that nobody takes the result for the site.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster_env.core.errors import InputError
from cluster_env.workloads.files import opened, version_of
from cluster_env.workloads.numbers import as_shown, read_number
from cluster_env.workloads.slurm.hosts import host_names

_COMMENT = re.compile(r"(?<!\\)#.*")
_PAIR = re.compile(r"([A-Za-z]\w*)\s*=\s*(\"[^\"]*\"|\S*)")
_GPUS = re.compile(r"gpu(?::[A-Za-z_][\w.-]*)?(?::(\d{1,6}))?(?:\([^)]*\))?", re.IGNORECASE)
_ABSENT = ("future", "down", "drain", "fail")
_WEIGHTS = {
    "age": "priorityweightage",
    "size": "priorityweightjobsize",
    "fair_share": "priorityweightfairshare",
}
_OTHER_WEIGHTS = ("Assoc", "Partition", "QOS", "TRES")
_WEEK = {"", "7-0", "7-00:00:00", "7-00"}

Settings = Mapping[str, str]


@dataclass(frozen=True)
class SlurmSite:
    """A machine, and how it orders jobs.

    Attributes:
        processors: of all nodes.
        memory: MiB of all nodes; 0 where Slurm does not count it.
        gpus: of all nodes.
        order: ``priority`` (multifactor) or ``fcfs``.
        backfilling: ``conservative`` for sched/backfill, which delays no job that is before
            another, or ``strict``.
        weights: of age, size and fair share, if the order is ``priority``.
        unknown: what the file says and nothing here knows.
    """

    processors: int
    memory: int
    gpus: int
    order: str
    backfilling: str
    weights: Mapping[str, float]
    unknown: tuple[str, ...]


def read_slurm_conf(path: Path | str) -> SlurmSite:
    """Reads a slurm.conf; files that it includes are not read.

    Raises:
        InputError: if it cannot be read, names no node with CPUs, or a number is wrong; it names
            line and key.
    """
    path = Path(path)
    version_of(path, "the file")
    settings: dict[str, str] = {}
    defaults: dict[str, str] = {}
    nodes: list[tuple[int, dict[str, str]]] = []
    partitions: list[dict[str, str]] = []
    unknown: list[str] = []
    for line, text in _lines(path):
        if text.lower().startswith("include"):
            unknown.append(f"line {line} includes another file")
        pairs = {key.lower(): value.strip('"') for key, value in _PAIR.findall(text)}
        # A node called DEFAULT says what holds for all that follow.
        if "nodename" in pairs:
            if pairs["nodename"].lower() == "default":
                defaults |= pairs
            else:
                nodes.append((line, defaults | pairs))
        elif "partitionname" in pairs:
            partitions.append(pairs)
        else:
            settings |= pairs
    units = [(0, 0, 0), *(_units(path, line, node) for line, node in nodes)]
    processors, memory, gpus = (sum(column) for column in zip(*units, strict=True))
    if processors < 1:
        raise InputError(f"{path} names no node with CPUs, so the size of the machine is unknown")
    order, weights = _order(path, settings)
    backfill = settings.get("schedulertype", "sched/backfill").lower() != "sched/builtin"
    return SlurmSite(
        processors=processors,
        memory=memory if "memory" in settings.get("selecttypeparameters", "").lower() else 0,
        gpus=gpus,
        order=order,
        backfilling="conservative" if backfill else "strict",
        weights=weights,
        unknown=(*unknown, *_unknown(settings, partitions)),
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines without comments, joined where one ends with a backslash."""
    begun, first = "", 0
    with opened(path, "the file", errors="replace") as text:
        for number, ended in enumerate(text, start=1):
            line = _COMMENT.sub("", ended).strip()
            first = first or number
            if line.endswith("\\"):
                begun += line[:-1] + " "
                continue
            if begun or line:
                yield first, begun + line
            begun, first = "", 0


def _units(path: Path, line: int, node: Settings) -> tuple[int, int, int]:
    """CPUs, MiB and GPUs of the nodes of one line."""

    def number(key: str, default: int) -> int:
        text = node.get(key.lower())
        if text is None:
            return default
        value = read_number(text)
        if value is None or value != int(value) or not 0 <= value < 2**31:
            raise InputError(
                f"{path}, line {line}: {key} must be a whole number, not '{as_shown(text)}'"
            )
        return int(value)

    if node.get("state", "").lower().startswith(_ABSENT):
        return 0, 0, 0
    try:
        count = len(host_names(node["nodename"]))
    except ValueError as error:
        raise InputError(f"{path}, line {line}: {error}") from None
    # CPUs says it all; without it, what sockets, cores and threads make.
    sockets = number("Sockets", number("SocketsPerBoard", 1) * number("Boards", 1))
    threads = sockets * number("CoresPerSocket", 1) * number("ThreadsPerCore", 1)
    cpus = number("CPUs", number("Procs", threads))
    gpus = 0
    for part in node.get("gres", "").split(","):
        gpu = _GPUS.fullmatch(part)
        gpus += int(gpu[1] or 1) if gpu else 0
    return count * cpus, count * number("RealMemory", 0), count * gpus


def _order(path: Path, settings: Settings) -> tuple[str, dict[str, float]]:
    if not settings.get("prioritytype", "").lower().endswith("multifactor"):
        return "fcfs", {}
    weights = {}
    for name, key in _WEIGHTS.items():
        value = read_number(settings.get(key, "0"))
        if value is None:
            raise InputError(f"{path}: {key} must be a number, not '{as_shown(settings[key])}'")
        weights[name] = float(value)
    if settings.get("priorityfavorsmall", "").lower() in ("yes", "true", "1"):
        weights["size"] = -weights["size"]
    return ("priority", weights) if any(weights.values()) else ("fcfs", {})


def _unknown(settings: Settings, partitions: list[dict[str, str]]) -> Iterator[str]:
    if not settings.get("prioritytype"):
        yield "PriorityType is not set, and read as priority/basic"
    for name in _OTHER_WEIGHTS:
        value = settings.get(f"priorityweight{name.lower()}", "0")
        if value not in ("", "0"):
            yield f"PriorityWeight{name} is {as_shown(value)}"
    for key in ("PriorityMaxAge", "PriorityDecayHalfLife"):
        if settings.get(key.lower(), "") not in _WEEK:
            yield f"{key} is {as_shown(settings[key.lower()])}, not a week"
    if settings.get("preempttype", "preempt/none").lower() != "preempt/none":
        yield "jobs may preempt others"
    enforced = settings.get("accountingstorageenforce", "").lower()
    if any(word in enforced for word in ("limits", "qos", "safe", "all")):
        yield "limits of accounts and QOS are enforced"
    names = [one for one in partitions if one["partitionname"].lower() != "default"]
    if len(names) > 1:
        yield f"{len(names)} partitions count as one machine"
    if len({one.get("prioritytier", "1") for one in names}) > 1:
        yield "partitions have several tiers of priority"
