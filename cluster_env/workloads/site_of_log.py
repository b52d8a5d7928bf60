"""A first description of a site, in YAML, from nothing but a log of its jobs.

It is where a user begins, who corrects it then: how large each partition must be at least, and how
long its jobs may take. Which nodes a partition has, and which it shares, no log of jobs says.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.workloads.recorded import RecordedJobs

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")
_NAMELESS = ("", "-1")
_MOST_USERS = 50
"""Users with the most work who are looked at."""

_MOST_COMPARED = 20
"""Partitions of which all pairs are compared."""

_COUNTED = ("processors", "gpus")


def site_text(jobs: RecordedJobs) -> str:
    """The description: each partition as one node as large as what its jobs held at once."""
    return "\n".join(_lines(jobs)) + "\n"


def partitions_of(jobs: RecordedJobs) -> tuple[NDArray[np.int64], list[str]]:
    """The number of each job's partition or queue, int64 ``(num_jobs,)``, and their names.

    Of a log that has both, queues count where they are several.
    """
    queues = jobs.names["queue"] if "queue" in jobs.ids else np.array([""])
    numbers = jobs.details.get("partition")
    if queues.size > 1 or numbers is None:
        ids = jobs.ids.get("queue", np.zeros(jobs.num_jobs, np.int64))
        return ids, [str(name) for name in queues]
    names, ids = np.unique(numbers, return_inverse=True)
    return ids.astype(np.int64).reshape(numbers.shape), [str(name) for name in names]


def _lines(jobs: RecordedJobs) -> Iterator[str]:
    ids, names = partitions_of(jobs)
    counts = np.bincount(ids, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    parts = {int(k): _most(jobs.select(ids == k)) for k in order}
    whole = _most(jobs)
    yield f"# The site of {jobs.path.name}, as far as {jobs.num_jobs:,} jobs show it. Correct it:"
    yield "# metasched replay LOG --site FILE plays the log on it."
    if jobs.processors:
        yield f"# Its header says that the machine has {jobs.processors:,} processors."
    if jobs.wait is None:
        yield "# The log has no waits, so a partition is as large as its largest job."
    else:
        yield "# A partition is one node, as large as what its jobs held at once; it may be larger."
    together = sum(most["processors"] for most in parts.values())
    if len(parts) > 1:
        if jobs.wait is not None:
            yield (
                f"# All jobs together held {whole['processors']:,} processors at once, partitions "
                f"{together:,} in sum."
            )
        yield "# Whether partitions share nodes is not known; if so, name the same nodes in both."
        yield from _together(jobs, ids, names, parts)
    yield "nodes:"
    for k, most in parts.items():
        units = ", ".join(f"{name}: {count}" for name, count in most.items() if count)
        yield f"- {{name: {_node(names[k], k)}, {units}}}"
    yield "partitions:"
    # Jobs without a partition belong to the default one.
    nameless = [k for k in parts if names[k] in _NAMELESS]
    usual = nameless[0] if nameless else next(iter(parts))
    for k in parts:
        longest = int(jobs.estimate[ids == k].max())
        default = ", default: true" if k == usual else ""
        name = "none" if k in nameless else _quoted(names[k])
        yield (
            f"- {{name: {name}, nodes: [{_node(names[k], k)}], "
            f"max_time_s: {longest}{default}}}  # {counts[k]:,} jobs"
        )
    if "qos" in jobs.details:
        yield "limits:  # of each QOS: jobs, processors, jobs_per_user, processors_per_user, ..."
        counts = np.bincount(jobs.details["qos"], minlength=jobs.names["qos"].size)
        for k, name in enumerate(jobs.names["qos"]):
            if counts[k] and str(name):
                own = jobs.select(jobs.details["qos"] == k)
                yield f"- {{name: {_quoted(str(name))}}}  # {counts[k]:,} jobs{_of_users(own)}"


def _together(
    jobs: RecordedJobs, ids: NDArray[np.int64], names: list[str], parts: Mapping[int, Any]
) -> Iterator[str]:
    """What pairs of partitions held at once, of what each of them held at most, least share first.

    Little at once can mean shared nodes, or only that both were never full at the same time.
    """
    if jobs.wait is None or len(parts) > _MOST_COMPARED:
        return
    pairs = []
    for one, other in combinations(parts, 2):
        most = _most(jobs.select((ids == one) | (ids == other)))["processors"]
        total = parts[one]["processors"] + parts[other]["processors"]
        pairs.append(
            (most / total, f"#   {_name(names[one])} + {_name(names[other])}", most, total)
        )
    if pairs:
        yield "# At once they held, of what each held at most:"
    for _, pair, most, total in sorted(pairs):
        yield f"{pair}: {most:,} of {total:,}"


def _name(name: str) -> str:
    return "none" if name in _NAMELESS else name


def _of_users(jobs: RecordedJobs) -> str:
    """The most processors that one user held at once, and whether several users held as many."""
    if jobs.wait is None or "user" not in jobs.ids:
        return ""
    work = np.bincount(jobs.ids["user"], jobs.run * jobs.demand[:, 0].astype(np.float64))
    users = np.argsort(-work, kind="stable")[:_MOST_USERS]
    users = users[work[users] > 0]
    most = [_most(jobs.select(jobs.ids["user"] == user))["processors"] for user in users]
    reached = sum(one == max(most) for one in most)
    return f"; a user held {max(most):,} processors at most, {reached:,} of {users.size:,} did"


def _most(jobs: RecordedJobs) -> dict[str, int]:
    """Processors and GPUs that some jobs held at once, at least those of the largest."""
    largest = jobs.demand.max(axis=0)
    most = largest if jobs.most_in_use is None else np.maximum(jobs.most_in_use, largest)
    held = dict(zip(jobs.resources, most.tolist(), strict=True))
    return {name: held[name] for name in _COUNTED if name in held}


def _node(name: str, number: int) -> str:
    """A name of nodes that is no list of hosts and needs no quotation marks."""
    return f"nodes-{name if _PLAIN.fullmatch(name) else number}"


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "'" + name.replace("'", "''") + "'"
