"""The log of a site with four partitions: described, replayed by partition, calibrated."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_env.sites.reading import read_site
from tests.tune_jobs.replaying.partitioned_log import (
    MOST_PER_USER,
    PARTITIONS,
    SITE,
    PlainJob,
    write_partitioned_log,
)
from tune_jobs import cli
from tune_jobs.tables.frames import read_table

Shown = pytest.CaptureFixture[str]
RULE = ("--policies", "fcfs:easy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("partitions")


@pytest.fixture(scope="module")
def jobs(folder: Path) -> list[PlainJob]:
    (folder / "site.yaml").write_text(SITE)
    return write_partitioned_log(folder / "jobs.txt")


@pytest.fixture(scope="module")
def log(jobs: list[PlainJob], folder: Path) -> list[str]:
    """The log and its site, as arguments of commands."""
    return [str(folder / "jobs.txt"), "--site", str(folder / "site.yaml")]


def run(capsys: Shown, *line: str) -> Any:
    assert cli.run(cli.metasched, [*line, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_description_gains_what_a_pool_of_processors_cannot(
    log: list[str], jobs: list[PlainJob], capsys: Shown
) -> None:
    found = run(capsys, "replay", *log, "--calibrate", *RULE)
    gains = found["gain_over_pool"]
    assert gains["site"] >= gains["pool"] + 0.2
    assert gains["site"] > 0.9
    (whole,) = found["fidelity"]
    assert whole["jobs"] == len(jobs)
    assert whole["recorded"] == pytest.approx(np.mean([job.start - job.arrival for job in jobs]))
    rows = {row["partition"]: row for row in found["fidelity-by-partition"]}
    assert [*rows] == [*PARTITIONS]
    for name, row in rows.items():
        waits = [job.start - job.arrival for job in jobs if job.partition == name]
        assert (row["jobs"], row["recorded"]) == (len(waits), pytest.approx(np.mean(waits)))
    assert cli.run(cli.metasched, ["replay", *log, "--calibrate", *RULE]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"the gain is {gains['site']:.2f}, as one pool" in shown
    assert "does not simulate" not in shown


def test_the_limit_of_users_is_what_the_waits_come_from(
    log: list[str], folder: Path, capsys: Shown
) -> None:
    free = folder / "free.yaml"
    free.write_text(SITE.replace("processors_per_user: 48", "priority: 1"))
    found = run(capsys, "replay", log[0], "--site", str(free), "--calibrate", *RULE)
    (row,) = found["fidelity"]
    assert row["simulated"] < 0.9 * row["recorded"]


def test_a_description_is_looked_at_beside_the_log(
    log: list[str], jobs: list[PlainJob], folder: Path, capsys: Shown
) -> None:
    assert cli.run(cli.metasched, ["trace", *log, "--json"]) == 0
    rows = {row["partition"]: row for row in json.loads(capsys.readouterr().out)["partitions"]}
    nodes = {name: (row["nodes"], row["processors"]) for name, row in rows.items()}
    assert nodes == {"main": (8, 128), "long": (3, 48), "fat": (2, 32), "debug": (1, 16)}
    assert (rows["debug"]["longest"], rows["fat"]["held"]) == (3600, 32)
    assert sum(row["of_work"] for row in rows.values()) == pytest.approx(1)
    assert all(row["held"] <= row["processors"] for row in rows.values())
    small = folder / "small.yaml"
    small.write_text(SITE.replace("name: f, count: 2, processors: 16", "name: f, processors: 17"))
    found = run(capsys, "replay", log[0], "--site", str(small), "--policies", "fcfs:easy")
    fat = [job for job in jobs if job.partition == "fat" and job.cpus <= 17]
    most = max(sum(j.cpus for j in fat if j.start <= k.start < j.start + j.run) for k in fat)
    (words,) = [one for one in found["remarks"] if "of the partition" in one]
    assert f"the partition fat held {most} processors at once, but its nodes have 17" in words


def test_jobs_that_never_start_are_not_compared(tmp_path: Path, capsys: Shown) -> None:
    (tmp_path / "jobs.csv").write_text(
        "arrival,duration,processors,wait,reservation\n"
        "1770000000,600,4,0,course\n1770000100,600,4,500,\n1770000200,600,2,0,course\n"
    )
    (tmp_path / "site.yaml").write_text(
        "nodes:\n- {name: n1, processors: 4}\ncalendar:\n- {start: 1769990000, "
        "end: 1770000250, nodes: n1, kind: reservation, name: course}\n"
    )
    log = (str(tmp_path / "jobs.csv"), "--site", str(tmp_path / "site.yaml"), *RULE)
    found = run(capsys, "replay", *log, "--calibrate")
    assert [(row["jobs"], row["difference"]) for row in found["fidelity"]] == [(2, 0)]
    assert cli.run(cli.metasched, ["replay", *log, "--calibrate"]) == 0
    assert "1 jobs never start at this site" in " ".join(capsys.readouterr().out.split())


def test_a_replay_has_a_row_for_each_partition(
    log: list[str], jobs: list[PlainJob], capsys: Shown, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    assert cli.run(cli.metasched, ["replay", *log, "--policies", "fcfs:easy", "--out", out]) == 0
    capsys.readouterr()
    columns = ["partition", "policy", "jobs", "mean_wait", "utilization"]
    rows = read_table(tmp_path / "out" / "by-partition.csv", columns)
    assert [(row["partition"], row["policy"]) for row in rows] == [
        (name, policy) for name in PARTITIONS for policy in ("as recorded", "fcfs:easy")
    ]
    last = max(job.arrival for job in jobs) - min(job.arrival for job in jobs) + 1
    first = min(job.arrival for job in jobs)
    held = sum(
        job.cpus * (min(job.start + job.run - first, last) - (job.start - first))
        for job in jobs
        if job.partition == "fat" and job.start - first < last
    )
    fat = next(row for row in rows if row["partition"] == "fat")
    assert float(fat["utilization"]) == pytest.approx(held / (32 * last), rel=1e-4)


def test_one_partition_alone_has_its_nodes_and_its_jobs(
    log: list[str], jobs: list[PlainJob], capsys: Shown
) -> None:
    found = run(capsys, "replay", *log, "--policies", "fcfs:easy", "--partition", "long")
    assert found["jobs"] == sum(job.partition == "long" for job in jobs)
    assert {row["partition"] for row in found["by-partition"]} == {"long"}
    assert cli.run(cli.metasched, ["replay", *log, "--partition", "longer"]) == 2
    assert "partition or queue 'longer'" in capsys.readouterr().err


def test_a_log_alone_gives_a_description_to_begin_with(
    log: list[str], jobs: list[PlainJob], capsys: Shown, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert cli.run(cli.metasched, ["trace", log[0], "--out", str(out)]) == 0
    assert f"--site {out / 'site.yaml'}" in " ".join(capsys.readouterr().out.split())
    site = read_site(out / "site.yaml")
    assert set(site.partition_names) == set(PARTITIONS)
    assert site.qos_names == ("normal",)
    text = (out / "site.yaml").read_text()
    assert "Whether partitions share nodes is not known" in text
    # Of those that share nodes, both are never full at once; and what a user may hold is reached.
    (first,) = re.findall(r"each held at most:\n#   (.+): (?:\d+) of", text)
    assert first == "main + long"
    assert f"a user held {MOST_PER_USER} processors at most" in text
    for k, partition in enumerate(site.partitions):
        own = [job for job in jobs if job.partition == partition.name]
        most = max(
            sum(job.cpus for job in own if job.start <= one.start < job.start + job.run)
            for one in own
        )
        assert site.units[site.node_set(k), 0].sum() == most
        assert partition.max_time_s == max(-(-job.limit // 60) * 60 for job in own)
    found = run(
        capsys, "replay", log[0], "--site", str(out / "site.yaml"), "--policies", "fcfs:easy"
    )
    assert found["jobs"] == len(jobs)


def test_jobs_that_the_site_cannot_run_are_left_out_with_the_reason(
    log: list[str], jobs: list[PlainJob], folder: Path, capsys: Shown
) -> None:
    smaller = folder / "smaller.yaml"
    text = SITE.replace("- {name: long, nodes: ", "- {name: other, nodes: ")
    text = text.replace("nodes: [c]}", 'nodes: ["c[1-1]"], max_time_s: 7200}')
    smaller.write_text(text)
    found = run(capsys, "replay", log[0], "--site", str(smaller), "--policies", "fcfs:easy")
    dropped = {row["reason"]: row["count"] for row in found["dropped"]}
    own = [job for job in jobs if job.partition == "main"]
    limit = {job.number: -(-job.limit // 60) * 60 for job in own}
    wide = [job for job in own if job.cpus > 16]
    slow = [job for job in own if job.cpus <= 16 and limit[job.number] > 7200]
    by_words = {
        "partition that the site does not have (long)": sum(j.partition == "long" for j in jobs),
        "fits on no nodes": len(wide),
        "asks for more time": len(slow),
    }
    for words, count in by_words.items():
        (reason,) = [reason for reason in dropped if words in reason]
        assert dropped[reason] == count, words


def test_the_log_s_time_zone_is_that_of_the_site_s_files(
    log: list[str], folder: Path, capsys: Shown
) -> None:
    calendar = folder / "calendar.csv"
    calendar.write_text("start,end,nodes,kind\n2026-02-03T03:00:00,2026-02-03T23:00,c,failure\n")
    line = (log[0], "--policies", "fcfs:easy", "--site", f"{log[2]},{calendar}")
    whole = run(capsys, "replay", *line, "--time-zone", "Europe/Berlin")["replay"]
    other = (*line[:4], f"{line[4]},TZ=Europe/Berlin")
    assert run(capsys, "replay", *other)["replay"] == whole
    assert run(capsys, "replay", *line)["replay"] != whole


def test_the_size_of_the_machine_is_not_said_twice(log: list[str], capsys: Shown) -> None:
    assert cli.run(cli.metasched, ["replay", *log, "--processors", "512"]) == 2
    assert "leave out --processors" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nodes: 5", "nodes must be a list"),
        ("nodes: []", "a site needs nodes"),
        ("[1, 2]", "must hold a table with nodes"),
        ("nodes:\n- {processor: 5}", "unknown option of a site 'processor'"),
        ("nodes:\n- {processors: -5}", "processors must be 1 to"),
    ],
)
def test_a_wrong_site_ends_with_a_sentence(
    log: list[str], tmp_path: Path, capsys: Shown, text: str, words: str
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text)
    assert cli.run(cli.metasched, ["replay", log[0], "--site", str(wrong)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("metasched: task.world.site: ")
    assert len(error.splitlines()) == 1


LIMITED = """
nodes:
- {name: n, count: 4, processors: 4}
partitions:
- {name: batch, nodes: [n]}
limits:
- {name: low, processors: 8}
- {name: small, processors_per_user: 2}
- {name: chem, kind: account, processors: 3}
- {name: eve, kind: user, processors: 1}
calendar:
- {name: over, kind: reservation, start: 0, end: 2, nodes: [n], users: [dan]}
"""
JOBS_OVER_LIMITS = """arrival,duration,processors,qos,user,group,reservation
0,100,4,low,ann,phys,
1,50,9,low,bob,phys,
2,50,3,small,cyd,phys,
3,50,2,small,cyd,phys,
4,50,4,,dan,chem,
5,50,2,,eve,phys,
6,50,1,,eve,phys,
7,50,1,low,dan,phys,over
"""


def test_jobs_over_a_limit_that_holds_for_them_are_left_out_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, described = tmp_path / "jobs.csv", tmp_path / "site.yaml"
    log.write_text(JOBS_OVER_LIMITS)
    described.write_text(LIMITED)
    files = [str(log), "--site", str(described), "--json"]
    assert cli.run(cli.metasched, ["trace", *files]) == 0
    found = json.loads(capsys.readouterr().out)
    reasons = {row["first_in_line"]: row["because_the_job"] for row in found["dropped"]}
    assert reasons == {
        3: "alone holds more than 8 processors of the qos low",
        4: "alone holds more than 2 processors per user of the qos small",
        6: "alone holds more than 3 processors of the account chem",
        7: "alone holds more than 1 processors of the user eve",
        9: "was submitted after its reservation had ended",
    }
    assert found["facts"]["jobs"] == 3
    assert found["facts"]["utilization of processors, under fcfs:easy"] <= 1
    assert min(row["least"] for row in found["times"]) >= 0
    assert cli.run(cli.metasched, ["replay", *files, "--policies", "fcfs:easy"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["replay"][0]["unfinished"] == 0
    assert {one["reason"] for one in found["dropped"]} == set(reasons.values())
    assert cli.run(cli.metasched, ["whatif", *files, "--change", "qos.low.processors=9"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"] == 3
    assert {one["reason"] for one in found["dropped"]} == set(reasons.values())


@pytest.mark.parametrize(("start", "inside"), [(100, True), (119, True), (200, False)])
def test_a_calendar_lies_in_a_log_until_its_last_job_may_end(
    start: int, inside: bool, tmp_path: Path, capsys: Shown
) -> None:
    log, described = tmp_path / "jobs.csv", tmp_path / "site.yaml"
    log.write_text("arrival,duration,estimate,processors\n0,50,60,1\n20,50,100,1\n")
    outage = f"calendar:\n- {{kind: planned, start: {start}, end: 300, nodes: [n]}}\n"
    described.write_text(LIMITED.partition("limits:")[0] + outage)
    found = run(capsys, "replay", str(log), "--site", str(described), "--policies", "fcfs:easy")
    said = "no outage or reservation of the site lies in the log" in json.dumps(found)
    assert said is not inside


PBS_RUN = (
    "05/28/2026 20:26:40;{kind};{job}.srv;user=ann queue=workq ctime=178000{came} "
    "etime=178000{came} start=178000{start} end=178000{end} Resource_List.ncpus={processors} "
    "Resource_List.walltime=01:00:00"
)


def test_runs_of_a_requeued_job_wait_for_each_other_at_a_site(
    tmp_path: Path, capsys: Shown
) -> None:
    """In the record job 6 came last; in a replay it comes first, and both runs of 7 wait."""
    log, described, out = tmp_path / "20260528", tmp_path / "site.yaml", tmp_path / "out"
    runs = [
        (7, "R", "0010", "0030", "0090", 8),
        (7, "E", "0010", "0100", "0160", 8),
        (6, "E", "0000", "0400", "0600", 16),
    ]
    names = ("job", "kind", "came", "start", "end", "processors")
    log.write_text(
        "".join(PBS_RUN.format(**dict(zip(names, one, strict=True))) + "\n" for one in runs)
    )
    described.write_text("nodes:\n- {name: n, count: 2, processors: 8}\n")
    rule = ("--policies", "fcfs:easy", "--out", str(out))
    words = "runs of requeued jobs that overlap with the run before: 1 under fcfs:easy"
    for machine, second, overlap in (
        (("--processors", "16"), 200, True),
        (("--site", str(described)), 260, False),
    ):
        found = run(capsys, "replay", str(log), *machine, *rule)
        assert (words in " ".join(found["remarks"])) is overlap
        rows = read_table(out / "schedule-fcfs-easy.csv", ["start", "finish"])
        seconds = [(int(row["start"]) % 1000, int(row["finish"]) % 1000) for row in rows]
        assert seconds == [(0, 200), (200, 260), (second, second + 60)]
