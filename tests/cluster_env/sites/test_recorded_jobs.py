"""Jobs of logs at a site: their attributes, their arrivals, and those that the site cannot run."""

import json
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.sites.description import (
    Limit,
    NodeGroup,
    Outage,
    Partition,
    Site,
)
from cluster_env.sites.recorded_jobs import on_site
from cluster_env.workloads.formats import read_log
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.workloads import HPCLog

T = 1_770_000_000
SITE = Site(
    nodes=(
        NodeGroup("c[1-4]", processors=8, features=("ib", "old")),
        NodeGroup("g1", processors=8, gpus=2, features=("new",)),
    ),
    partitions=(
        Partition("main", ("c[1-4]",), max_time_s=7200, default=True),
        Partition("gpu", ("g1", "c4")),
    ),
    limits=(
        Limit("normal"),
        Limit("low", jobs_per_user=1),
        Limit("bio", "account", jobs=3),
        Limit("bob", "user", jobs=2),
    ),
    calendar=(Outage(T + 5000, T + 6000, ("c1",), "reservation", "course"),),
)
HEAD = (
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", "State", "Submit", "Eligible"),
    *("Start", "End", "TimelimitRaw", "AllocCPUS", "AllocTRES", "ReqTRES", "Constraints"),
    *("Reservation", "SubmitLine"),
)
USUAL = {
    "User": "ada",
    "Account": "chem",
    "Partition": "main",
    "QOS": "normal",
    "State": "COMPLETED",
    "TimelimitRaw": "60",
    "AllocCPUS": "2",
    "ReqTRES": "cpu=2,node=1",
}


def row(number: int, submit: int, start: int, run: int = 600, **cells: str) -> dict[str, str]:
    """A row of sacct; times in seconds after `T`."""
    times = {"Submit": submit, "Eligible": submit, "Start": start, "End": start + run}
    own = {name: str(T + time) for name, time in times.items()}
    number_cells = {"JobIDRaw": str(number), "JobID": str(number)}
    found = {**USUAL, **number_cells, **own, **cells}
    found.setdefault("AllocTRES", f"cpu={found['AllocCPUS']},node=1")
    return found


def read(folder: Path, *rows: dict[str, str]) -> RecordedJobs:
    path = folder / "jobs.txt"
    lines = ["\t".join(HEAD), *("\t".join(row.get(name, "") for name in HEAD) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return read_log(path)


def test_what_a_log_says_becomes_what_the_site_counts(tmp_path: Path) -> None:
    jobs = on_site(
        read(
            tmp_path,
            row(1, 0, 0, User="bob", Account="bio", QOS="low", Constraints="ib&old"),
            row(2, 1, 5, Partition="gpu", Constraints="new|old", State="FAILED"),
            row(3, 2, 9, User="cyd", ReqTRES="cpu=2,node=2", QOS="other"),
            row(7, 3, 9, JobID="5_1", SubmitLine="sbatch -N1 --array=0-9%4 --exclusive job.sh"),
            row(8, 4, 9, Partition="", Reservation="course", Constraints="[ib*2&old]"),
        ),
        SITE,
    )
    found = {name: column.tolist() for name, column in jobs.attributes.items()}
    ib, new, old = (SITE.feature_mask([name]) for name in ("ib", "new", "old"))
    assert found == {
        "partition": [0, 1, 0, 0, 0],
        "qos": [1, 0, -1, 0, 0],
        "account": [0, 2, 2, 2, 2],
        "user": [0, 1, 3, 1, 1],
        "nodes": [0, 0, 2, 1, 0],
        "exclusive": [0, 0, 0, 1, 0],
        "array": [-1, -1, -1, 5, -1],
        "throttle": [0, 0, 0, 4, 0],
        "failed": [0, 1, 0, 0, 0],
        "features": [ib | old, 0, 0, 0, ib | old],
        "any_features": [0, new | old, 0, 0, 0],
        "reservation": [-1, -1, -1, -1, 0],
        "job_id": [0, 1, 2, 3, 4],
    }
    assert [one.what for one in jobs.noticed if "QOS" in one.what] == [
        "has a QOS without limits at this site"
    ]
    jobset = jobs.jobset()
    assert jobset.attributes["user"].tolist() == found["user"]
    assert "qos" not in read_log(tmp_path / "jobs.txt").jobset().attributes


def test_a_partition_of_which_only_the_size_is_known_takes_jobs_of_several_nodes(
    tmp_path: Path,
) -> None:
    pool = Site((NodeGroup("all", processors=32),), (Partition("main"),))
    wide = row(1, 0, 0, AllocCPUS="16", ReqTRES="cpu=16,node=4", SubmitLine="sbatch --exclusive a")
    jobs = on_site(read(tmp_path, wide, row(2, 1, 1)), pool)
    assert jobs.num_jobs == 2
    assert jobs.attributes["nodes"].tolist() == jobs.attributes["exclusive"].tolist() == [0, 0]


def test_a_job_with_a_known_predecessor_arrives_when_it_was_submitted(tmp_path: Path) -> None:
    jobs = on_site(
        read(
            tmp_path,
            row(1, 0, 100),
            row(2, 1, 900, Eligible=str(T + 700), SubmitLine="sbatch -d afterok:1 a.sh"),
            row(3, 5, 6),
            row(4, 6, 950, Eligible=str(T + 940), SubmitLine="sbatch --dependency=afterany:77 b"),
            row(5, 7, 8, SubmitLine="sbatch b.sh --dependency=afterok:later"),
        ),
        SITE,
    )
    # The fourth job's predecessor is not in the log, so it arrives when it was eligible.
    assert (jobs.submit - T).tolist() == [0, 1, 5, 7, 940]
    assert jobs.wait is not None
    assert jobs.delay is not None
    # The second waits from when it was eligible on, as it does in a simulation.
    assert jobs.wait.tolist() == [100, 200, 1, 1, 10]
    assert jobs.delay.tolist() == [0, 699, 0, 0, 0]
    assert (jobs.start - T).tolist() == [100, 900, 6, 8, 950]
    assert jobs.attributes["after"].tolist() == [[-1], [0], [-1], [-1], [-1]]
    assert jobs.attributes["after_ok"].tolist() == [0, 1, 0, 0, 0]
    plain = read_log(tmp_path / "jobs.txt")
    assert (plain.submit - T).tolist() == [0, 5, 7, 700, 940]


def test_predecessors_that_no_simulation_could_repeat_are_no_reason_to_wait(
    tmp_path: Path,
) -> None:
    jobs = on_site(
        read(
            tmp_path,
            row(1, 0, 0, State="FAILED"),
            row(2, 1, 700, SubmitLine="sbatch -d afterok:1 a.sh"),
            row(3, 2, 700, SubmitLine="sbatch -d afterany:1 a.sh"),
            row(4, 3, 4, SubmitLine="sbatch -d afterany:1 a.sh"),
            row(6, 4, 10, JobID="5_1"),
            row(7, 4, 10, 900, JobID="5_2"),
            row(8, 5, 1000, SubmitLine="sbatch -d afterany:5 a.sh"),
        ),
        SITE,
    )
    # Failed before an afterok; ended before; had not ended; the last of an array.
    assert jobs.attributes["after"][:, 0].tolist() == [-1, -1, 0, -1, -1, -1, 5]


def test_the_simulator_makes_it_wait(tmp_path: Path) -> None:
    read(
        tmp_path,
        row(1, 0, 100, 1000),
        row(2, 1, 1100, Eligible=str(T + 1100), SubmitLine="sbatch -d afterok:1 a.sh"),
    )
    world = HPC(site=SITE)
    log = HPCLog(
        tmp_path / "jobs.txt", world.capacity, world.resources, jobs=0, whole=True, site=SITE
    )
    jobset = log.part(Split.TRAIN).sample(np.random.default_rng(0))
    schedule = evaluate(get_heuristic("fcfs:easy", world), [jobset], world)
    assert schedule.start[np.argsort(schedule.job)].tolist() == [0, 1000]


def test_a_block_that_is_drawn_twice_has_jobs_of_other_numbers(tmp_path: Path) -> None:
    day = 86_400
    rows = [row(1 + k, k * day, k * day) for k in range(4)]
    rows += [
        row(11 + k, k * day + 9, k * day + 999, SubmitLine=f"sbatch -d afterok:{1 + k} a")
        for k in range(4)
    ]
    read(tmp_path, *rows)
    log = HPCLog(
        *(tmp_path / "jobs.txt", (40, 2), ("processors", "gpus")),
        **{"jobs": 12, "block": day, "whole": True, "site": SITE},
    )
    jobset = log.sample(np.random.default_rng(0))
    number = jobset.attributes["job_id"]
    assert np.unique(number).size == jobset.num_jobs >= 12
    place = {int(one): k for k, one in enumerate(number)}
    pairs = [(k, int(one)) for k, one in enumerate(jobset.attributes["after"][:, 0]) if one >= 0]
    assert len(pairs) >= 6
    assert all(jobset.arrival[k] - jobset.arrival[place[one]] == 9 for k, one in pairs)


def test_jobs_that_the_site_cannot_run_are_counted_with_the_reason(tmp_path: Path) -> None:
    rows = [
        row(1, 0, 0),
        row(2, 1, 1, Partition="night"),
        row(3, 2, 2, TimelimitRaw="121"),
        row(4, 3, 3, Partition="gpu", TimelimitRaw="121"),
        row(5, 4, 4, Constraints="new"),
        row(6, 5, 5, AllocCPUS="40"),
        row(7, 6, 6, AllocCPUS="33"),
        row(8, 7, 7, AllocTRES="cpu=2,gres/gpu=1"),
    ]
    jobs = on_site(read(tmp_path, *rows), SITE)
    assert jobs.line.tolist() == [2, 5]
    reasons = {one.reason: one.count for one in jobs.dropped}
    assert reasons == {
        "is of a partition that the site does not have (night)": 1,
        "fits on no nodes that it may use, even if all are idle": 4,
        "asks for more time than the partition main lets it have, 7,200 seconds": 1,
    }
    with pytest.raises(InputError, match="can run none of the jobs"):
        on_site(read(tmp_path, row(1, 0, 0, Partition="night")), SITE)


def test_json_says_the_same(tmp_path: Path) -> None:
    job = {
        "job_id": 7,
        "array": {"job_id": 5, "task_id": 1, "limits": {"max": {"running": {"tasks": 4}}}},
        "state": {"current": ["COMPLETED"]},
        "time": {"submission": T, "eligible": T, "start": T + 9, "end": T + 99, "limit": 60},
        "tres": {"allocated": [{"type": "cpu", "count": 2}], "requested": []},
        "user": "ada",
        "account": "bio",
        "partition": "gpu",
        "qos": "low",
        "constraints": "new",
        "reservation": {"name": "course", "id": 3},
        "submit_line": "sbatch --exclusive job.sh",
    }
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"jobs": [job]}))
    details = read_log(path)
    assert details.details["throttle"].tolist() == [4]
    assert details.details["exclusive"].tolist() == [1]
    assert [details.names[name].tolist() for name in ("qos", "constraint", "reservation")] == [
        ["low"],
        ["new"],
        ["course"],
    ]


def test_swf_has_queues_predecessors_and_think_times(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    fields = "{job} {submit} {wait} 100 2 -1 -1 2 200 -1 {status} 1 1 -1 {queue} -1 {after} {think}"
    rows = [
        {"job": 1, "submit": 0, "wait": 0, "status": 0, "queue": 1, "after": -1, "think": -1},
        {"job": 2, "submit": 120, "wait": 35, "status": 1, "queue": 2, "after": 1, "think": 50},
    ]
    lines = ["; MaxProcs: 40", *(fields.format(**one) for one in rows)]
    path.write_text("\n".join(lines) + "\n")
    site = Site(SITE.nodes, (Partition("1", ("c[1-4]",)), Partition("2", ("g1",))))
    jobs = on_site(read_log(path), site)
    assert jobs.attributes["partition"].tolist() == [0, 1]
    assert jobs.attributes["after"].tolist() == [[-1], [0]]
    assert jobs.attributes["think_s"].tolist() == [-1, 50]
    assert (jobs.eligible.tolist(), jobs.start.tolist()) == ([0, 150], [0, 155])
    assert jobs.attributes["failed"].tolist() == [1, 0]
    assert not any("arrives as recorded" in one.what for one in jobs.noticed)


def test_a_csv_has_columns_of_the_site_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "arrival,duration,processors,queue,qos,constraint,nodes,job,after,array,throttle,failed\n"
        "0,100,2,gpu,low,new,,x1,,,,\n"
        "1,100,2,main,normal,,2,x2,x1 x9,a,3,1\n"
    )
    jobs = on_site(read_log(path), SITE)
    found = {name: column.tolist() for name, column in jobs.attributes.items()}
    assert found["partition"] == [1, 0]
    assert found["qos"] == [1, 0]
    assert found["nodes"] == [0, 2]
    assert found["after"] == [[-1, -1], [0, -1]]
    assert (found["array"], found["throttle"], found["failed"]) == ([-1, 1], [0, 3], [0, 1])


def test_pbs_has_torque_s_nodes_arrays_and_reservations(tmp_path: Path) -> None:
    path = tmp_path / "20260201"
    line = "02/01/2026 10:00:00;E;{job}.srv;user=ada queue=main ctime={t} qtime={t} etime={t} "
    line += "start={start} end={end} Resource_List.nodes=2:ppn=2 Resource_List.nodect=2 {more}"
    rows = [
        line.format(job="1", t=T, start=T, end=T + 50, more="Resource_List.place=excl"),
        line.format(
            job="2[3]",
            t=T + 1,
            start=T + 60,
            end=T + 90,
            more="depend=afterok:1.srv Exit_status=271",
        ),
    ]
    path.write_text("\n".join(rows) + "\n")
    jobs = on_site(read_log(path), SITE)
    found = {name: column.tolist() for name, column in jobs.attributes.items()}
    assert (found["nodes"], found["exclusive"]) == ([2, 2], [1, 0])
    assert (found["array"], found["after"]) == ([-1, 2], [[-1], [0]])
    assert found["failed"] == [0, 1]


@pytest.mark.parametrize(
    ("constraint", "known"),
    [("ib", True), ("ib&old", True), ("new|old", True), ("ib&other", False), ("other", False)],
)
def test_features_that_the_site_lacks_are_said(
    constraint: str, known: bool, tmp_path: Path
) -> None:
    jobs = on_site(read(tmp_path, row(1, 0, 0, Constraints=constraint)), SITE)
    said = [one for one in jobs.noticed if "features that the site does not have" in one.what]
    assert bool(said) is not known
