"""200 jobs at a private Slurm with partitions, limits, a reservation and array throttles.

What Slurm did is written down, to be compared with the simulator (replayed.py).

python -m tests.slurm.limited --out tests/slurm/limited     # needs root, and slurmdbd; about 5 min
"""

import argparse
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.slurm.private_accounts import PrivateAccounts
from tests.slurm.private_slurm import PrivateSlurm

NUM_NODES, NUM_JOBS = 16, 200
INTERVAL_S = 3
"""``bf_interval``: seconds from one scheduling pass that backfills to the next."""
SCHEDULER = f"batch_sched_delay=0,sched_interval=1,bf_interval={INTERVAL_S},bf_resolution=1"
PARTITIONS = (
    "PartitionName=batch Nodes=n[1-12] Default=YES MaxTime=60 DefaultTime=5 State=UP "
    "PriorityJobFactor=1 DefMemPerCPU=100",
    "PartitionName=express Nodes=n[7-16] MaxTime=4 DefaultTime=2 MaxNodes=2 State=UP "
    "PriorityJobFactor=10 DefMemPerCPU=100",
)
WEIGHTS = {
    "AccountingStorageEnforce": "associations,limits,qos",
    "PriorityWeightPartition": "100",
    "PriorityWeightQOS": "1000",
}
QOS: Mapping[str, tuple[str, ...]] = {
    "normal": ("MaxTRESPerUser=cpu=256",),
    "urgent": ("Priority=100", "MaxJobsPerUser=2", "GrpTRES=cpu=128"),
}
ACCOUNTS = {"physics": (), "biology": ("GrpTRES=cpu=400",)}
USERS = {"games": "physics", "man": "physics", "news": "biology", "mail": "biology"}
"""Accounts of the system that exist everywhere, and those that they compute for."""
RESERVED = {"ReservationName": "course", "Users": "man", "Nodes": "n[1-2]"}
RESERVED_AFTER_S, SUBMITTED_IN_S = 75, 25
SIZES = (1, 4, 8, 16, 24, 32, 48, 64, 80, 100, 120)
SHARES = (0.12, 0.12, 0.12, 0.14, 0.12, 0.12, 0.08, 0.08, 0.04, 0.03, 0.03)
COLUMNS = (
    "JobIDRaw,JobID,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,Timelimit,ReqCPUS,"
    "ReqNodes,AllocCPUS,NodeList,Reservation,Flags,SubmitLine"
)


def draw_jobs(seed: int) -> list[dict[str, Any]]:
    """Jobs of 6 to 24 s that ask for 1 to 8 minutes, and arrays; by when they are submitted."""
    rng = np.random.default_rng(seed)
    arrays = [(10, 12, 3), (60, 10, 2), (110, 8, 4)]  # when, elements, throttle
    reserved = [5, 20, 40, 90]
    single = NUM_JOBS - sum(count for _, count, _ in arrays) - len(reserved)
    jobs = [_job(rng, int(at)) for at in _bursts(rng, single)]
    for at, count, throttle in arrays:
        job = {**_job(rng, at, most=16), "array": f"0-{count - 1}%{throttle}"}
        jobs.append(job)
    for at in reserved:
        job = {**_job(rng, at, most=48), "user": "man", "partition": "batch"}
        jobs.append({**job, "qos": "normal", "minutes": 1, "reservation": "course"})
    return sorted(jobs, key=lambda job: job["at"])


def _bursts(rng: np.random.Generator, count: int) -> Any:
    """Times within three minutes, half of them in bursts."""
    bursts = rng.choice([0.0, 40.0, 90.0, 140.0], count // 2) + rng.uniform(0, 4, count // 2)
    return np.concatenate([bursts, rng.uniform(0, 180, count - count // 2)])


def _job(rng: np.random.Generator, at: int, most: int = 120) -> dict[str, Any]:
    cpus = min(int(rng.choice(SIZES, p=SHARES)), most)
    partition = "express" if rng.random() < 0.4 else "batch"
    return {
        "at": at,
        "user": str(rng.choice(list(USERS))),
        "partition": partition,
        "qos": "urgent" if rng.random() < 0.2 else "normal",
        "nodes": 1 if cpus <= 64 else 2,
        "cpus": cpus,
        "seconds": int(rng.integers(6, 25)),
        "minutes": int(rng.choice([1, 2, 3, 4] if partition == "express" else [1, 2, 4, 8])),
    }


@contextmanager
def limited_site() -> Iterator[tuple[PrivateSlurm, PrivateAccounts]]:
    """A Slurm with these partitions, users and limits. Jobs of others need root."""
    with (
        PrivateSlurm(NUM_NODES, partitions=PARTITIONS, scheduler=SCHEDULER) as slurm,
        PrivateAccounts(slurm, **WEIGHTS) as accounts,
    ):
        slurm.folder.chmod(0o755)
        for name, limits in QOS.items():
            accounts.run("add", "qos", name) if name != "normal" else None
            accounts.run("modify", "qos", name, "set", *limits)
        for name, limits in ACCOUNTS.items():
            accounts.run("add", "account", name, f"qos={','.join(QOS)}", *limits)
        for user, account in USERS.items():
            accounts.run("add", "user", user, f"account={account}")
        slurm.wait_until_idle()
        yield slurm, accounts


def submit(slurm: PrivateSlurm, job: Mapping[str, Any], *options: str) -> int:
    """Submits a job as its user."""
    words = (
        *(f"--uid={job['user']}", f"--partition={job['partition']}", f"--qos={job['qos']}"),
        *(f"-N{job['nodes']}", f"-n{job['cpus']}", f"-t{job['minutes']}", "--chdir=/tmp"),
        *(f"--{name}={job[name]}" for name in ("array", "reservation") if name in job),
        *options,
    )
    return slurm.submit(f"sleep {job['seconds']}", *words)


def reserve(slurm: PrivateSlurm, start: float, minutes: int = 1) -> None:
    """Reserves nodes for some minutes."""
    words = {**RESERVED, "StartTime": _local(start), "Duration": str(minutes)}
    slurm.run("scontrol", "create", "reservation", *(f"{k}={v}" for k, v in words.items()))


def with_reservations(rows: str, reserved: Mapping[str, str]) -> str:
    """Rows of sacct without paths, and with the reservations that Slurm's accounts lose.

    They do so where a job started at the same moment as its reservation.
    """
    lines = [line.split("|") for line in rows.splitlines()]
    job, reservation, line = (lines[0].index(name) for name in _CHANGED)
    for cells in lines[1:]:
        cells[reservation] = reserved.get(cells[job].partition("_")[0], "")
        words = cells[line].split(" ")[1:]
        cells[line] = " ".join(["sbatch", *(word for word in words if _TELLS.match(word))])
    return "\n".join(map("|".join, lines)) + "\n"


_TELLS = re.compile("-N|-n|-t|--array|--reservation")
_CHANGED = ("JobID", "Reservation", "SubmitLine")


def described(conf: str) -> str:
    """What a slurm.conf says of the site, and nothing of the machine that it runs on."""
    kept = [line for line in conf.split("\n") if line.startswith(_OF_SITE)]
    return re.sub(r" (NodeHostname|NodeAddr|Port)=\S+", "", "\n".join(kept)) + "\n"


_OF_SITE = (
    *("ClusterName", "Select", "Scheduler", "Priority", "Node", "Partition"),
    "AccountingStorageEnforce",
)


def _local(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))


def record(folder: Path, seed: int, until_s: int = 1_000) -> None:
    """Runs the jobs and writes what Slurm says of them and of itself.

    Args:
        folder: for the record.
        seed: of the jobs.
        until_s: jobs that come later are left out.
    """
    with limited_site() as (slurm, accounts):
        began = int(time.time()) + SUBMITTED_IN_S
        reserve(slurm, began + RESERVED_AFTER_S)
        shown = {"reservations.txt": slurm.run("scontrol", "show", "reservation", "-o")}
        reserved = {}
        for job in (job for job in draw_jobs(seed) if job["at"] < until_s):
            number = submit(slurm, job, f"--begin={_local(began + job['at'])}")
            reserved[str(number)] = job.get("reservation", "")
        while slurm.run("squeue", "-h", "-o", "%A").strip():
            time.sleep(0.5)
        time.sleep(2)  # slurmctld sends to the database now and then
        rows = ("--allusers", "--duplicates", "-X", "--parsable2", f"--format={COLUMNS}")
        since = ("--starttime=now-1hours",)
        shown |= {
            "sacct.txt": with_reservations(accounts.run(*rows, *since, program="sacct"), reserved),
            "qos.txt": accounts.run("show", "qos", "--parsable2"),
            "assoc.txt": accounts.run("show", "assoc", "--parsable2"),
            "partitions.txt": slurm.run("scontrol", "show", "partition", "-o"),
            "slurm.conf": described((slurm.folder / "slurm.conf").read_text()),
        }
    for name, text in shown.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("limited"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    record(given.out, given.seed)
