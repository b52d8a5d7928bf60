"""Made-up exports of sacct of many shapes, with pitfalls planted in them, and what they hold.

What a job is, is drawn first; rows are then written from it in one of the forms that versions and
options of sacct have. So the expected jobs and counts owe nothing to the reader.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

BEGIN = 1_780_000_003  # no whole minute, and far from a change of clocks
GONE = ("None", "Unknown")


@dataclass(frozen=True)
class Truth:
    """A job as it was: line of the file, arrival, wait, run, limit, and what it held."""

    line: int
    arrival: int
    wait: int
    run: int
    limit: int  # 0 for none
    processors: int
    memory: int
    gpus: int
    user: str


@dataclass
class Export:
    """A file being written, and what it should be read as."""

    rng: np.random.Generator
    style: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    jobs: list[Truth] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    planted: Counter[str] = field(default_factory=Counter)
    clock: int = BEGIN
    number: int = 100

    def choose(self, *choices: str) -> str:
        return str(self.rng.choice(list(choices)))

    def between(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))


def write_export(path: Path, seed: int) -> Export:
    """Writes an export of 30 to 60 rows or more; the same for the same seed."""
    made = Export(np.random.default_rng(seed))
    made.style = {
        "delimiter": made.choose("|", "|", ";", "^", "\t"),
        "times": made.choose("epoch", "utc", "Europe/Berlin", "offset"),
        "limits": made.choose("Timelimit", "TimelimitRaw"),
        "elapsed": made.choose("Elapsed", "ElapsedRaw", ""),
        "memory": made.choose("total", "per core", "per node", "tres"),
        "names": made.choose("JobName", ""),
        "gpus": made.choose("typed", "untyped", "types alone"),
        "allocated": made.choose("AllocCPUS", "NCPUS"),
        "closed": made.choose("", "", "yes"),
    }
    columns = ["JobIDRaw", "JobID", "User", "Account", "Partition", "State", "Submit", "Eligible"]
    columns += ["Start", "End", "ReqCPUS", made.style["allocated"], "NNodes", "ReqMem"]
    columns += ["AllocTRES", made.style["limits"], "QOS", "Priority"]
    columns += [made.style[name] for name in ("elapsed", "names") if made.style[name]]
    columns = [columns[k] for k in made.rng.permutation(len(columns))]
    write_line(made, dict(zip(columns, columns, strict=True)), columns)
    plants = list(PLANTS)
    order = [*plants, *made.rng.choice(plants, made.between(30, 60) - len(plants) // 2)]
    for name in made.rng.permutation(order):
        made.planted[str(name)] += 1
        PLANTS[str(name)](made, columns)
    if made.rng.random() < 0.5:
        cut_by_window(made, columns)
    path.write_text("\n".join(made.lines) + "\n")
    return made


def write_line(made: Export, cells: dict[str, str], columns: list[str]) -> int:
    """Appends a row; returns the number of its line."""
    line = made.style["delimiter"].join(cells.get(name, "") for name in columns)
    made.lines.append(line + (made.style["delimiter"] if made.style["closed"] else ""))
    return len(made.lines)


def time(made: Export, second: int | None) -> str:
    """A time in the style of the export."""
    if second is None:
        return made.choose(*GONE)
    if made.style["times"] == "epoch":
        return str(second)
    zone = made.style["times"]
    local = datetime.fromtimestamp(second, ZoneInfo(zone) if "/" in zone else UTC)
    text = local.strftime("%Y-%m-%dT%H:%M:%S")
    return text + made.choose("Z", "+00:00", "+0000") if zone == "offset" else text


def length(seconds: int) -> str:
    """``[D-]HH:MM:SS``."""
    days, rest = divmod(seconds, 86_400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def job(made: Export, columns: list[str], expect: bool = True, **changes: str) -> dict[str, str]:
    """A job that ran, written as a row; ``changes`` replace cells and nothing that is expected."""
    made.clock += made.between(1, 400)
    made.number += 1
    arrival, wait, run = made.clock, made.between(0, 5000), made.between(1, 90_000)
    limit = 60 * made.between(1, 3000)
    processors, nodes = 2 * made.between(1, 32), made.between(1, 2)
    memory = processors * nodes * made.between(1, 50)
    gpus = made.between(0, 4)
    user = made.choose("ada", "bob", "cyd")
    held = {"cpu": processors, "node": nodes, "billing": 7}
    kinds = {"typed": ("gres/gpu", "gres/gpu:a100"), "untyped": ("gres/gpu",)}
    for name in kinds.get(made.style["gpus"], ("gres/gpu:a100",)) if gpus else ():
        held[name] = gpus
    total = f"{memory}M"
    asked = {"per core": f"{memory // processors}Mc", "per node": f"{memory // nodes}Mn"}
    tres = [f"{name}={value}" for name, value in held.items()]
    if made.style["memory"] == "tres":
        tres.append(f"mem={total}")
    cells = {
        "JobIDRaw": str(made.number),
        "JobID": str(made.number),
        "User": user,
        "Account": "bio",
        "Partition": "main",
        "State": made.choose("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 501", "NODE_FAIL"),
        "Submit": time(made, arrival - made.between(0, 3) * (made.rng.random() < 0.2)),
        "Eligible": time(made, arrival),
        "Start": time(made, arrival + wait),
        "End": time(made, arrival + wait + run),
        "Elapsed": length(run),
        "ElapsedRaw": str(run),
        "Timelimit": length(limit),
        "TimelimitRaw": str(limit // 60),
        "ReqCPUS": str(processors // 2),
        made.style["allocated"]: str(processors),
        "NNodes": str(nodes),
        "ReqMem": asked.get(made.style["memory"], total),
        "AllocTRES": ",".join(tres),
        "JobName": "job",
    }
    at = write_line(made, cells | changes, columns)
    if expect:
        unlimited = any(not text[:1].isdigit() for key, text in changes.items() if "imelim" in key)
        made.jobs.append(
            Truth(
                *(at, arrival, wait, run, 0 if unlimited else limit),
                *(processors, memory, gpus, user),
            )
        )
    return cells


def plain(made: Export, columns: list[str]) -> None:
    job(made, columns)


def steps(made: Export, columns: list[str]) -> None:
    cells = job(made, columns)
    for step in ("batch", "extern", "0", "1")[: made.between(1, 4)]:
        number = f"{cells['JobIDRaw']}.{step}"
        empty = dict.fromkeys(("User", "Partition", "Timelimit", "TimelimitRaw", "ReqMem"), "")
        write_line(made, cells | empty | {"JobIDRaw": number, "JobID": number}, columns)
        made.dropped["is a step of a job"] += 1


def array(made: Export, columns: list[str]) -> None:
    base = made.number
    for k in range(made.between(1, 3)):
        job(made, columns, JobID=f"{base}_{k}")


def heterogeneous(made: Export, columns: list[str]) -> None:
    first = job(made, columns, JobID=f"{made.number + 1}+0")
    leader = made.jobs[-1]
    write_line(
        made, first | {"JobIDRaw": str(made.number + 1), "JobID": f"{made.number}+1"}, columns
    )
    made.number += 1
    made.jobs[-1] = Truth(
        *(leader.line, leader.arrival, leader.wait, leader.run, leader.limit),
        *(2 * leader.processors, 2 * leader.memory, 2 * leader.gpus, leader.user),
    )
    made.dropped["is part of a heterogeneous job, counted once"] += 1


def requeued(made: Export, columns: list[str]) -> None:
    job(made, columns, State="REQUEUED")
    number = str(made.number)
    job(made, columns, JobIDRaw=number, JobID=number)


def without_limit(made: Export, columns: list[str]) -> None:
    words = made.choose("UNLIMITED", "Partition_Limit", "")
    job(made, columns, Timelimit=words, TimelimitRaw=words)


def not_a_job(reason: str, **changes: str) -> object:
    def plant(made: Export, columns: list[str]) -> None:
        own = {
            key: made.style["allocated"] if value == "0 CPUs" else value
            for key, value in changes.items()
        }
        job(made, columns, expect=False, **own)
        made.dropped[reason] += 1

    return plant


def cancelled_at_its_start(made: Export, columns: list[str]) -> None:
    """The third look: it was eligible, so that start and end are the moment of its end."""
    moment = time(made, made.clock + 10_000)
    changes = {"Start": moment, "End": moment, "State": "CANCELLED by 0", "AllocTRES": ""}
    changes |= {"Elapsed": "00:00:00", "ElapsedRaw": "0", made.style["allocated"]: "0"}
    job(made, columns, expect=False, **changes)
    made.dropped["was cancelled before it started"] += 1


def without_run_time(made: Export, columns: list[str]) -> None:
    """A run that ended in the second in which it began, and held its processors."""
    moment = time(made, made.clock + 10_000)
    changes = {"Start": moment, "End": moment, "Elapsed": "00:00:00", "ElapsedRaw": "0"}
    job(made, columns, expect=False, State="COMPLETED", **changes)
    made.dropped["has no run time above 0"] += 1


def pending_array(made: Export, columns: list[str]) -> None:
    gone = {"State": "CANCELLED", "Start": "None", "AllocTRES": ""}
    job(made, columns, expect=False, JobID=f"{made.number}_[0-4,7%2]", **gone)
    made.dropped["was cancelled before it started"] += 1


def repeated(made: Export, columns: list[str]) -> None:
    job(made, columns)
    made.lines.append(made.lines[-1])
    made.dropped["stands in the file twice"] += 1


def header_again(made: Export, columns: list[str]) -> None:
    made.lines.append(made.lines[0])
    made.dropped["is no job but the header once more"] += 1


def delimiter_in_name(made: Export, columns: list[str]) -> None:
    name = f"a{made.style['delimiter']}b" if made.style["names"] else "ab"
    job(made, columns, JobName=name)


def empty_line(made: Export, columns: list[str]) -> None:
    made.lines.append("")


def cut_by_window(made: Export, columns: list[str]) -> None:
    """As ``sacct -T`` does it to jobs that ran on when the export ended."""
    end = (made.clock + 400_000) // 60 * 60
    for _ in range(made.between(3, 5)):
        cells = job(made, columns, expect=False)
        made.lines.pop()
        write_line(made, cells | {"End": time(made, end)}, columns)
        made.dropped["is cut off by the export's window (sacct -T)"] += 1


PLANTS = {
    "plain": plain,
    "steps": steps,
    "array": array,
    "het": heterogeneous,
    "requeued": requeued,
    "without limit": without_limit,
    "pending": not_a_job(
        "was still waiting", State="PENDING", Start="Unknown", End="Unknown", AllocTRES=""
    ),
    "running": not_a_job("was still running", State="RUNNING", End="Unknown"),
    "cancelled, none": not_a_job(
        "was cancelled before it started", State="CANCELLED by 3", Start="None", AllocTRES=""
    ),
    "cancelled, unknown": not_a_job(
        "was cancelled before it started", State="CANCELLED", Start="Unknown", AllocTRES=""
    ),
    "cancelled, at its start": cancelled_at_its_start,
    "failed to start": not_a_job(
        "never started (BOOT_FAIL)", State="BOOT_FAIL", Start="Unknown", AllocTRES=""
    ),
    "revoked": not_a_job("ran on another cluster (REVOKED)", State="REVOKED"),
    "running, cut": not_a_job("is cut off by the export's window (sacct -T)", State="RUNNING"),
    "pending array": pending_array,
    "without run time": without_run_time,
    "repeated": repeated,
    "header again": header_again,
    "delimiter in name": delimiter_in_name,
    "empty line": empty_line,
}
