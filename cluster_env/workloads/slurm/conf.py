"""What stands in a slurm.conf: nodes, partitions and the order of jobs.

Keys and values are those of Slurm's manual, slurm.conf(5).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from cluster_env.core.errors import InputError
from cluster_env.workloads.files import opened, version_of
from cluster_env.workloads.numbers import as_shown, read_number
from cluster_env.workloads.slurm.hosts import MOST_HOSTS, host_names

_COMMENT = re.compile(r"(?<!\\)#.*")
_PAIR = re.compile(r"([A-Za-z]\w*)\s*=\s*(\"[^\"]*\"|\S*)")
_GPUS = re.compile(r"gpu(?::[A-Za-z_][\w.-]*)?(?::(\d{1,6}))?(?:\([^)]*\))?", re.IGNORECASE)
_ABSENT = ("future", "down", "drain", "fail")
_WEIGHTS = {
    "age": "priorityweightage",
    "size": "priorityweightjobsize",
    "fair_share": "priorityweightfairshare",
}

Settings = Mapping[str, str]


@dataclass(frozen=True)
class ConfNodes:
    """The nodes of one line ``NodeName``, as `SlurmConf.groups` has them; memory in MiB of each."""

    name: str
    hosts: tuple[str, ...]
    processors: int
    memory: int
    gpus: int


@dataclass(frozen=True)
class SlurmConf:
    """What stands in a slurm.conf, keys in small letters.

    Attributes:
        path: the file.
        settings: what is said of the whole site.
        nodes: lines ``NodeName`` with their numbers, and what holds by default.
        partitions: lines ``PartitionName``, likewise.
        node_sets: lines ``NodeSet``.
        included: a sentence for each file that is included, and not read.
    """

    path: Path
    settings: Settings
    nodes: tuple[tuple[int, Settings], ...]
    partitions: tuple[tuple[int, Settings], ...]
    node_sets: tuple[Settings, ...]
    included: tuple[str, ...]

    @cached_property
    def groups(self) -> tuple[ConfNodes | None, ...]:
        """The nodes of each line of `nodes`; None where they are not there.

        Raises:
            InputError: if none has CPUs, or a number is wrong.
        """
        groups, count = list[ConfNodes | None](), 0
        for line, node in self.nodes:
            groups.append(_group(self.path, line, node))
            count += len(groups[-1].hosts) if groups[-1] else 0
            if count > MOST_HOSTS:
                raise InputError(f"{self.path} names more than {MOST_HOSTS:,} nodes")
        if not any(group and group.hosts and group.processors for group in groups):
            raise InputError(
                f"{self.path} names no node with CPUs, so the size of the machine is unknown"
            )
        return tuple(groups)

    @property
    def counts_memory(self) -> bool:
        """Whether jobs get memory, and not only processors."""
        return "memory" in self.settings.get("selecttypeparameters", "").lower()

    @property
    def order(self) -> tuple[str, dict[str, float]]:
        """``priority`` and its weights, or ``fcfs``."""
        return _order(self.path, self.settings)

    @property
    def backfilling(self) -> str:
        """``conservative`` for sched/backfill, which delays none before another, or ``strict``."""
        backfill = self.settings.get("schedulertype", "sched/backfill").lower() != "sched/builtin"
        return "conservative" if backfill else "strict"


def parse_conf(path: Path) -> SlurmConf:
    """The lines of a slurm.conf.

    Raises:
        InputError: if it cannot be read.
    """
    version_of(path, "the file")
    settings: dict[str, str] = {}
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    found: dict[str, list[tuple[int, Settings]]] = {"nodename": [], "partitionname": []}
    node_sets: list[Settings] = []
    included: list[str] = []
    for line, text in _lines(path):
        if text.lower().startswith("include"):
            included.append(f"line {line} includes another file")
        pairs = {key.lower(): value.strip('"') for key, value in _PAIR.findall(text)}
        kind = next((kind for kind in found if kind in pairs), "")
        # One called DEFAULT says what holds for all that follow.
        if kind and pairs[kind].lower() == "default":
            defaults[kind] |= pairs
        elif kind:
            found[kind].append((line, defaults[kind] | pairs))
        elif "nodeset" in pairs:
            node_sets.append(pairs)
        else:
            settings |= pairs
    return SlurmConf(
        path,
        settings,
        tuple(found["nodename"]),
        tuple(found["partitionname"]),
        tuple(node_sets),
        tuple(included),
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


def whole_number(path: Path, line: int, pairs: Settings, key: str, default: int) -> int:
    """The number behind a key of a line.

    Raises:
        InputError: if it is none.
    """
    text = pairs.get(key.lower())
    if text is None:
        return default
    value = read_number(text)
    if value is None or value != int(value) or not 0 <= value < 2**31:
        raise InputError(
            f"{path}, line {line}: {key} must be a whole number, not '{as_shown(text)}'"
        )
    return int(value)


def _group(path: Path, line: int, node: Settings) -> ConfNodes | None:
    """The nodes of one line; None if they are not there."""
    number = partial(whole_number, path, line, node)
    if node.get("state", "").lower().startswith(_ABSENT):
        return None
    try:
        hosts = host_names(node["nodename"])
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
    return ConfNodes(node["nodename"], hosts, cpus, number("RealMemory", 0), gpus)


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
