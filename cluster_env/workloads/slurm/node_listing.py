"""What ``scontrol show node`` prints, with ``-o`` or without, as the lines of a slurm.conf.

It has what a slurm.conf says of nodes, and what partitions they are in. Nothing of how jobs are
ordered or of limits is in it.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from cluster_env.core.errors import InputError
from cluster_env.workloads.slurm.conf import Settings, SlurmConf

_ENTRY = re.compile(r"NodeName=(\S+)\s")
_PAIR = re.compile(r"(?<!\S)(\w+)=(\S*)")
_NAMES = {"CPUTot": "CPUs", "AvailableFeatures": "Features"}
_KEPT = ("CPUs", "RealMemory", "Gres", "Features", "Weight", "Partitions", "State")
_ABSENT = ("DOWN", "DRAIN", "FAIL", "FUTURE", "NOT_RESPONDING", "POWERED_DOWN")
_NOTHING = ("(null)", "N/A", "")


def is_listing(lines: Sequence[str]) -> bool:
    """Whether these are lines of ``scontrol show node``: each node says how many CPUs it has."""
    texts = list(_entries(lines))
    return bool(texts) and all("CPUTot=" in text for _, text in texts)


def conf_of_listing(path: Path, lines: Sequence[str]) -> SlurmConf:
    """The nodes that are there, and a partition for each name that they have.

    Raises:
        InputError: if none of them is there.
    """
    nodes: list[tuple[int, Settings]] = []
    absent: list[str] = []
    members: dict[str, list[str]] = {}
    for number, text in _entries(lines):
        node = {
            key.lower(): value
            for name, value in _PAIR.findall(text)
            if (key := _NAMES.get(name, name)) in _KEPT and value not in _NOTHING
        }
        name = text[len("NodeName=") :].split()[0]
        state = node.pop("state", "")
        if any(word in state.upper() for word in _ABSENT):
            absent.append(f"{name} ({state})")
            continue
        for partition in filter(None, node.pop("partitions", "").split(",")):
            members.setdefault(partition, []).append(name)
        nodes.append((number, {"nodename": name, **node}))
    if not nodes:
        raise InputError(f"{path}: no node is there: {', '.join(absent[:3])}")
    left_out = f"nodes that are not there: {', '.join(absent)}"
    partitions = [
        (0, {"partitionname": name, "nodes": ",".join(names)}) for name, names in members.items()
    ]
    return SlurmConf(path, {}, tuple(nodes), tuple(partitions), (), (left_out,) if absent else ())


def _entries(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Each node as one line, with the number of its first one; other lines are no part of any."""
    first, text = 0, ""
    for number, line in enumerate(lines, start=1):
        if _ENTRY.match(f"{line} "):
            if text:
                yield first, text
            first, text = number, line
        elif text and line[:1].isspace():
            text += f" {line.strip()}"
        elif line.strip():
            yield number, line
    if text:
        yield first, text
