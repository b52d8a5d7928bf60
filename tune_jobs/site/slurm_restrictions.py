"""Partitions, limits and reservations of a live Slurm: what it would refuse a job for.

They are plain data, by the names of a site's description, and are read once a minute.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cluster_env.workloads.clock import Clock
from cluster_env.workloads.slurm.exports import read_associations, read_qos, read_reservations
from cluster_env.workloads.slurm.hosts import host_names
from cluster_env.workloads.slurm.values import count, limit_s
from tune_jobs.site.commands import SiteAway

EVERY_S = 60.0
Call = Callable[..., str]
Plain = dict[str, Any]

_PAIR = re.compile(r"(\w+)=(\S*)")
_NONE = ("", "n/a", "none", "(null)", "unlimited", "infinite")
_ASSOCIATIONS = "Account,User,GrpJobs,GrpTRES,MaxJobs,MaxTRES,MaxWall"


class RestrictionsReader:
    """Reads the restrictions of a site again and again.

    Args:
        call: calls a program of Slurm.
        announce: takes a sentence about what cannot be read; each comes once.
        clock: seconds.
    """

    def __init__(
        self,
        call: Call,
        announce: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._call, self._announce, self._clock = call, announce, clock
        self._read_at, self._restrictions = -float("inf"), Plain()
        self._said: set[str] = set()
        self._throttles: dict[str, int] = {}

    def restrictions(self, enforced: bool) -> Plain:
        """Plain data of partitions, limits and calendar.

        Args:
            enforced: whether the site keeps to the limits of QOS and associations.
        """
        if self._clock() - self._read_at >= EVERY_S:
            self._read_at = self._clock()
            self._restrictions = {
                "partitions": self._part("partitions", read_partitions, "scontrol", "partition"),
                "limits": self._limits() if enforced else [],
                "calendar": self._part("reservations", _reservations, "scontrol", "res"),
            }
        return self._restrictions

    def throttles(self, arrays: Iterable[str]) -> Mapping[str, int]:
        """Elements of each array that may run at once; those without a limit are not in it.

        Slurm says so only of arrays as a whole, so it is asked when there is a new one.
        """
        asked = set(arrays)
        if asked - self._throttles.keys():
            try:
                rows = self._call("squeue", "-h", "-a", "-t", "PENDING", "-o", "%F %K").split("\n")
            except SiteAway as error:
                self._say("the throttles of arrays", error)
                return {}
            found = dict(row.split(" ", 1) for row in rows if "%" in row)
            for array in asked - self._throttles.keys():
                self._throttles[array] = count(found.get(array, "").rpartition("%")[2].strip())
        for array in self._throttles.keys() - asked:
            del self._throttles[array]
        return {array: most for array, most in self._throttles.items() if most}

    def _limits(self) -> list[Plain]:
        fields = f"format={_ASSOCIATIONS}"
        return [
            *self._part("limits of QOS", _qos, "sacctmgr", "qos", "--parsable2"),
            *self._part("limits of accounts", _associations, "sacctmgr", "assoc", fields, "-P"),
        ]

    def _part(
        self, what: str, read: Callable[[str], list[Plain]], program: str, *words: str
    ) -> list[Plain]:
        """One part of the rules; nothing, and a sentence, if it cannot be read."""
        last = ["-o"] if program == "scontrol" else []
        try:
            return read(self._call(program, "show", *words, *last))
        except (SiteAway, ValueError) as error:
            self._say(f"the {what}", error)
            return []

    def _say(self, what: str, error: Exception) -> None:
        if what not in self._said:
            self._said.add(what)
            self._announce(f"{what} cannot be read, so that Slurm alone checks them: {error}")


def read_partitions(text: str) -> list[Plain]:
    """Partitions from what ``scontrol show partition -o`` printed.

    Raises:
        Unreadable: if a value is none of what Slurm writes.
    """
    found = []
    for line in text.split("\n"):
        found_in = _PAIR.findall(line)
        pairs = {name: "" if value.lower() in _NONE else value for name, value in found_in}
        if not pairs.get("PartitionName"):
            continue
        shared = pairs.get("OverSubscribe", "").upper()
        partition = {
            "name": pairs["PartitionName"],
            "nodes": list(host_names(pairs["Nodes"])) if pairs.get("Nodes") else [],
            "max_time_s": limit_s(pairs.get("MaxTime", "")) or 0,
            "min_nodes": count(pairs.get("MinNodes", "")),
            "max_nodes": count(pairs.get("MaxNodes", "")),
            "tier": count(pairs.get("PriorityTier", "1")),
            "priority": count(pairs.get("PriorityJobFactor", "1")),
            "exclusive": shared.startswith("EXCLUSIVE"),
            "shared": shared.startswith(("FORCE", "YES")),
            "qos": pairs.get("QoS", ""),
            "default": pairs.get("Default", "").upper() == "YES",
            "available": pairs.get("State", "UP").upper() not in ("DOWN", "INACTIVE"),
        }
        found.append(partition)
    return found


def _reservations(text: str) -> list[Plain]:
    lines = [line for line in text.split("\n") if line.startswith("ReservationName=")]
    return read_reservations(Path("scontrol show res"), lines, Clock.of("")).calendar


def _qos(text: str) -> list[Plain]:
    return read_qos(Path("sacctmgr show qos"), text.split("\n")).limits


def _associations(text: str) -> list[Plain]:
    return read_associations(Path("sacctmgr show assoc"), text.split("\n")).limits
