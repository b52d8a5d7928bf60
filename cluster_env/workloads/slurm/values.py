"""Values as Slurm writes them: times, lengths of time, limits, memory, trackable resources (TRES).

Every function takes a text and raises `Unreadable` if it is none of what it expects.
"""

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from itertools import zip_longest
from typing import NamedTuple

from cluster_env.workloads.clock import NEVER, Unreadable

NO_LIMIT = {"", "0", "unlimited", "infinite", "partition_limit", "not_set", "invalid"}
"""What stands for a time limit that is no number, in small letters."""

MIB = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
"""Mebibytes of a unit of memory; Slurm's units are powers of 1024, and MiB where it says none."""

PER_CORE, PER_NODE = "c", "n"
"""Endings of ReqMem before Slurm 21.08."""

_LENGTH = re.compile(r"(?:(\d{1,5})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d\d)(?:\.\d+)?")
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d+)?)([KMGTP]?)([cn]?)")
_GRES = re.compile(r"(?:gres[:/])?gpu(?:[:=][A-Za-z][\w.-]*)?(?:[:=](\d{1,6}))?")
_TASKS = re.compile(r"\[([\d,:%-]+)(?:\.\.\.)?\]?")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?")


_AFTER = re.compile(r"(after\w*):([\d_*+:]+)")
_NODES = re.compile(r"-N(\d{1,6})")
_THROTTLE = re.compile(r"[\d,:-]+%(\d{1,9})")


class SubmitLine(NamedTuple):
    """What a command line asks for that no other column has; nothing else of it is kept."""

    dependency: str = ""
    throttle: int = 0
    exclusive: bool = False
    nodes: int = 0


def submit_line(text: str) -> SubmitLine:
    """Dependency, throttle of an array, exclusive nodes, and their number if it is exact."""
    if not text:
        return _NO_LINE
    dependency, throttle, exclusive, nodes = "", 0, False, 0
    words = text.split()
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        option, equals, value = word.partition("=")
        value = value if equals else following
        if option in ("-d", "--dependency") and _AFTER.search(value):
            dependency = dependency or value
        elif option in ("-a", "--array") and (found := _THROTTLE.fullmatch(value)):
            throttle = throttle or int(found[1])
        elif option in ("-N", "--nodes") and value.isdecimal() and len(value) < 7:
            nodes = nodes or int(value)
        elif found := _NODES.fullmatch(word):
            nodes = nodes or int(found[1])
        exclusive = exclusive or option == "--exclusive"
    return SubmitLine(dependency, throttle, exclusive, nodes)


_NO_LINE = SubmitLine()


def predecessors(text: str) -> tuple[tuple[int, ...], bool]:
    """Numbers of jobs that have to end before, and whether they must succeed.

    ``afterok:12:13,afterany:14`` names three jobs; with any ``afterok`` all of them have to
    succeed. ``after``, ``afternotok``, ``aftercorr`` and ``singleton`` are not read.
    """
    jobs: list[int] = []
    ok = False
    for kind, numbers in _AFTER.findall(text) if text else ():
        if kind in ("afterok", "afterany"):
            jobs += [int(found) for found in re.findall(r"(?:^|:)(\d{1,18})", numbers)]
            ok = ok or kind == "afterok"
    return tuple(jobs), ok


def length_s(text: str) -> int:
    """Seconds of ``[days-][hours:]minutes:seconds``; fractions are cut off, as Slurm does."""
    found = _LENGTH.fullmatch(text)
    if not found:
        raise Unreadable("a length of time like 1-02:30:00")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    if days and found[2] is None:
        raise Unreadable("a length of time like 1-02:30:00")
    whole = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return int(whole.total_seconds())


def limit_s(text: str) -> int | None:
    """Seconds of a time limit: a length of time, or whole minutes; None if it is no number."""
    if text.lower() in NO_LIMIT:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 10:
        return 60 * int(text)
    try:
        return length_s(text) or None
    except Unreadable:
        raise Unreadable(
            "a limit like 1-02:30:00, whole minutes, UNLIMITED or Partition_Limit"
        ) from None


def memory_mib(text: str) -> tuple[int, str] | None:
    """Mebibytes, rounded up, and ``c`` or ``n`` if they are per core or node; None if unknown."""
    if text.lower() in NEVER - {"0"} or text.endswith("?"):
        return None
    found = _MEMORY.fullmatch(text)
    if not found:
        raise Unreadable("memory like 4G, 4000M, 4Gc or 4Gn")
    return math.ceil(float(found[1]) * MIB[found[2]]), found[3]


def count(text: str) -> int:
    """A whole number; 0 for an empty text."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise Unreadable("a whole number")
    return int(text)


def resources(text: str) -> dict[str, str]:
    """The parts of a TRES string: ``cpu=4,mem=4G,gres/gpu:a100=2`` by name."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if not equals or not name or not value:
            raise Unreadable("resources like cpu=4,mem=4G,node=1")
        found[name.strip()] = value.strip()
    return found


def gpus_of(held: Mapping[str, str]) -> tuple[float, bool]:
    """GPUs in a TRES string, and whether it names types, whose counts repeat those without."""
    # gres/gpu counts all GPUs, gres/gpu:a100 those of a type once more.
    typed = [value for name, value in held.items() if name.startswith("gres/gpu:")]
    if "gres/gpu" in held:
        return _share(held["gres/gpu"]), bool(typed)
    return sum(map(_share, typed)), bool(typed)


def _share(text: str) -> float:
    """A count that may be a fraction, where devices are shared."""
    if not re.fullmatch(r"\d{1,18}(\.\d{1,9})?", text):
        raise Unreadable("a number")
    return float(text)


def gpus_of_gres(text: str) -> int:
    """GPUs in a list of generic resources: ``gpu:2``, ``gpu:v100:4(S:0-1)``, ``gres:gpu:1``."""
    parts = re.sub(r"\([^)]*\)", "", text).split(",")
    found = (_GRES.fullmatch(part.strip()) for part in parts)
    return sum(int(part[1] or 1) for part in found if part)


def num_tasks(text: str) -> int:
    """Elements of an array in one row: 5 for ``18_[0-2,7,9%2]``; 1 for anything else."""
    _, _, tasks = text.partition("_")
    found = _TASKS.fullmatch(tasks)
    if not found:
        return 1
    total = 0
    for part in found[1].partition("%")[0].split(","):
        ends = _RANGE.fullmatch(part)
        if ends:
            first, last, step = ends[1], ends[2] or ends[1], ends[3] or "1"
            total += max((int(last) - int(first)) // max(int(step), 1) + 1, 1)
    return max(total, 1)
