"""What squeue and sinfo print, as jobs and nodes. No field that users write freely is asked for.

A name or a comment may hold separators and line breaks; so nothing here reads one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cluster_env.workloads.clock import Unreadable
from cluster_env.workloads.slurm.hosts import host_names
from cluster_env.workloads.slurm.values import (
    count,
    limit_s,
    memory_mib,
    resources,
)
from rllib_configs.snapshot import (
    BLOCKED,
    HELD,
    RUNNING,
    WAITING,
    SiteJob,
    SiteNode,
)
from tune_jobs.site.controller import HELD_BY_USER, is_in, is_job
from tune_jobs.site.holding import Holding, Holdings

JOB_FIELDS = (
    *("JobArrayID", "State", "Reason", "UserName", "Partition", "SubmitTime", "EligibleTime"),
    *("StartTime", "TimeLimit", "NumCPUs", "NumNodes", "NumTasks", "tres-alloc", "tres-per-job"),
    *("tres-per-node", "tres-per-socket", "tres-per-task", "PriorityLong", "NodeList"),
)
MORE_JOB_FIELDS = (
    *("Account", "QOS", "Reservation", "OverSubscribe", "ReqNodes", "ExcNodes", "Contiguous"),
    *("Licenses", "Feature"),
)
"""Fields that say which rules hold for a job. The last one may hold the delimiter (``a|b``)."""

NODE_FIELDS = (
    *("NodeList", "StateLong", "CPUsState", "Memory", "AllocMem", "Gres", "GresUsed"),
    "Partition",
)
MORE_NODE_FIELDS = ("Features",)
TAKES_JOBS = ("idle", "mixed", "allocated", "planned", "completing")
RESERVED = "reserved"
"""State of idle nodes in an active reservation, whose own jobs can have them."""

_STARTS_BY_ITSELF = ("", "none", "priority", "resources", "jobarraytasklimit")
_HOLDS = ("RUNNING", "COMPLETING", "SUSPENDED", "STAGE_OUT", "CONFIGURING", "RESIZING")
_GPUS = re.compile(r"(?:gres[:/])?gpu(?:[:=][A-Za-z_][\w.-]*)*(?:[:=](\d{1,9}))?(?:\(.*)?")
_GRES_PART = re.compile(r"[^,(]+(?:\([^)]*\))?")


def layout(fields: Iterable[str]) -> str:
    """The argument of -O for some fields."""
    return ",".join(f"{field}:|" for field in fields)


@dataclass(frozen=True)
class QueueListing:
    """What squeue said.

    Attributes:
        jobs: that count.
        holdings: what any job holds, also in other partitions.
        readable: rows that could be read, also of jobs that do not count.
        unreadable: rows that could not be read.
    """

    jobs: tuple[SiteJob, ...]
    holdings: Holdings
    readable: int
    unreadable: int


@dataclass(frozen=True)
class NodeListing:
    """What sinfo said; free is also what no job may have as long as another is cleaned up."""

    nodes: tuple[SiteNode, ...]
    readable: int
    unreadable: int


def read_jobs(text: str, *, with_memory: bool, partitions: tuple[str, ...] = ()) -> QueueListing:
    """Jobs from what ``squeue -h -r -O`` printed of `JOB_FIELDS`, maybe with `MORE_JOB_FIELDS`.

    Args:
        text: rows.
        with_memory: whether the site counts memory.
        partitions: whose jobs count; all if none is named.
    """
    jobs, holdings, readable, unreadable = [], {}, 0, 0
    for values in _rows(text):
        try:
            job, ending = _job(values, with_memory)
            if job is not None and job.state == RUNNING:
                holdings[job.job] = Holding(host_names(job.node_list), job.demand, ending)
        except ValueError:
            unreadable += 1
            continue
        readable += 1
        if job is not None and is_in(job.partition, partitions):
            jobs.append(job)
    return QueueListing(tuple(jobs), holdings, readable, unreadable)


def read_nodes(
    text: str,
    *,
    with_memory: bool,
    partitions: tuple[str, ...] = (),
    with_reserved: bool = False,
) -> NodeListing:
    """Nodes that take jobs, from what ``sinfo -h -N -O`` printed of `NODE_FIELDS`, or all fields.

    Args:
        text: rows.
        with_memory: whether the site counts memory.
        partitions: whose nodes count; all if none is named.
        with_reserved: whether nodes in an active reservation count.
    """
    states = (*TAKES_JOBS, *((RESERVED,) if with_reserved else ()))
    nodes: dict[str, SiteNode] = {}
    others: dict[str, list[str]] = {}
    readable = unreadable = 0
    for values in _rows(text):
        try:
            node = _node(values, with_memory, states)
        except Unreadable:
            unreadable += 1
            continue
        readable += 1
        if node is None:
            continue
        if node.name in nodes or is_in(node.partitions, partitions):
            # A node stands in a row for each of its partitions, in any order.
            known = nodes[node.name].partitions.split(",") if node.name in nodes else []
            names = sorted({*known, *others.pop(node.name, ()), node.partitions})
            nodes[node.name] = replace(node, partitions=",".join(names))
        else:
            others.setdefault(node.name, []).append(node.partitions)
    return NodeListing(tuple(nodes.values()), readable, unreadable)


def _rows(text: str) -> Iterator[list[str]]:
    for row in text.split("\n"):
        if row.strip():
            yield [value.strip() for value in row.split("|")]


def _job(values: list[str], with_memory: bool) -> tuple[SiteJob | None, bool]:
    """A job, None of one that has ended, and whether it is being cleaned up."""
    named = (*JOB_FIELDS, *MORE_JOB_FIELDS)
    if len(values) > len(named) + 1:
        values = [*values[: len(named) - 1], "|".join(values[len(named) - 1 : -1]), ""]
    elif len(values) not in (len(JOB_FIELDS) + 1, len(named) + 1):
        raise Unreadable(f"{len(named)} fields")
    field = {**dict.fromkeys(MORE_JOB_FIELDS, ""), **dict(zip(named, values[:-1], strict=False))}
    job, state = field["JobArrayID"], field["State"]
    if state not in (*_HOLDS, "PENDING"):
        return None, False
    held = resources(_known(field["tres-alloc"]))
    memory = memory_mib(held["mem"]) if with_memory and "mem" in held else None
    submit, eligible = _time(field["SubmitTime"]), _time(field["EligibleTime"])
    made = SiteJob(
        job=job,
        state=_state(job, state, field["Reason"]),
        reason=field["Reason"],
        user=field["UserName"],
        partition=field["Partition"],
        eligible=max(submit, eligible),
        start=_time(field["StartTime"]) if state != "PENDING" else 0,
        limit=limit_s(_known(field["TimeLimit"])) or 0,
        processors=count(held.get("cpu", "")) or count(field["NumCPUs"]),
        memory=memory[0] if memory else 0,
        gpus=_gpus_of_job(field, held),
        nodes=max(count(field["NumNodes"].partition("-")[0]), 1),
        priority=count(field["PriorityLong"]),
        expected=_time(field["StartTime"]) if state == "PENDING" else 0,
        account=_known(field["Account"]),
        qos=_known(field["QOS"]),
        features=_known(field["Feature"]),
        reservation=_known(field["Reservation"]),
        array=job.partition("_")[0] if "_" in job else "",
        node_list=_known(field["NodeList"]) if state != "PENDING" else "",
        exclusive=field["OverSubscribe"] == "NO",
        nodes_named=_known(field["ReqNodes"]) if state == "PENDING" else "",
        special=_special(field) if state == "PENDING" else "",
    )
    return made, state == "COMPLETING"


def _special(field: dict[str, str]) -> str:
    """What a job asks for that no site's description says."""
    shares = {"YES": "shares processors", "USER": "shares nodes with its user's jobs alone"}
    words = [
        shares.get(field["OverSubscribe"], ""),
        f"excludes {field['ExcNodes']}" if _known(field["ExcNodes"]) else "",
        "contiguous nodes" if field["Contiguous"] == "1" else "",
        f"licenses {field['Licenses']}" if _known(field["Licenses"]) else "",
    ]
    return "; ".join(word for word in words if word)


def _state(job: str, state: str, reason: str) -> str:
    if state != "PENDING":
        return RUNNING
    if not is_job(job):  # parts of heterogeneous jobs start together, and not by our hand
        return BLOCKED
    if reason == HELD_BY_USER:
        return HELD
    return WAITING if reason.lower() in _STARTS_BY_ITSELF else BLOCKED


def _node(values: list[str], with_memory: bool, states: tuple[str, ...]) -> SiteNode | None:
    """A node; None of one that is in none of the states in which it takes jobs."""
    if len(values) not in (len(NODE_FIELDS) + 1, len(NODE_FIELDS) + len(MORE_NODE_FIELDS) + 1):
        raise Unreadable(f"{len(NODE_FIELDS)} fields")
    name, state, processors, memory, used_memory, gres, used_gres = values[:7]
    word = state.lower().rstrip("*~#!%$@^-+")
    if word not in states or state.endswith("*"):  # a star: it does not answer
        return None
    parts = [count(part) for part in processors.split("/")]
    if len(parts) != 4:
        raise Unreadable("processors as allocated/idle/other/total")
    mib, taken = (memory_mib(text) for text in (memory, used_memory))
    if mib is None or taken is None:
        raise Unreadable("memory")
    gpus = _gpus(gres)
    return SiteNode(
        name=name,
        processors=parts[0] + parts[1],
        memory=mib[0] if with_memory else 0,
        gpus=gpus,
        free_processors=parts[1],
        free_memory=max(mib[0] - taken[0], 0) if with_memory else 0,
        free_gpus=max(gpus - _gpus(used_gres), 0),
        partitions=values[7].rstrip("*"),
        features=_known(values[8]) if len(values) > len(NODE_FIELDS) + 1 else "",
    )


def _gpus_of_job(field: dict[str, str], held: dict[str, str]) -> int:
    """GPUs in all, of whichever way they were asked for."""
    if "gres/gpu" in held:
        return count(held["gres/gpu"])
    times = {
        "tres-per-job": 1,
        "tres-per-node": max(count(field["NumNodes"].partition("-")[0]), 1),
        "tres-per-socket": 1,
        "tres-per-task": max(count(field["NumTasks"]), 1),
    }
    return max(_gpus(_known(field[name])) * factor for name, factor in times.items())


def _gpus(text: str) -> int:
    """GPUs of ``gres:gpu:2``, ``gpu:a100:4(S:0-1)``, ``gpu:8,nvme:1``, ``gres/gpu=2``."""
    total = 0
    for part in _GRES_PART.findall(_known(text)):
        if found := _GPUS.fullmatch(part.strip()):
            total += int(found[1] or 1)
    return total


def _time(text: str) -> int:
    """Unix time; 0 for one that has not come."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _known(text: str) -> str:
    return "" if text in ("N/A", "(null)", "n/a", "None") else text
