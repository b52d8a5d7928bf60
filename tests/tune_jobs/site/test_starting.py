"""Start times at a site: from its queue and its log, what Slurm says, and the bound."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import metasched
from rllib_configs.snapshot import BLOCKED, RUNNING, WAITING, SiteJob, SiteNode, Snapshot
from rllib_configs.worlds.hpc.live_moment import LiveSite
from tests.tune_jobs.replaying.site_log import write_site_log
from tune_jobs import cli
from tune_jobs.site.deciding import NO_PAST, Limits, decide
from tune_jobs.site.journal import open_journal, tick_entry
from tune_jobs.tables.report import Report

pytestmark = pytest.mark.usefixtures("as_in_plans")

NOW = 1_800_000_000
QUEUE = (
    SiteJob("1", RUNNING, "", "ada", "", NOW - 900, NOW - 600, 3600, 16, 0, 0),
    SiteJob("2", WAITING, "", "bob", "", NOW - 300, 0, 1800, 16, 0, 0, expected=NOW + 3000),
    SiteJob("3", WAITING, "", "cyd", "", NOW - 200, 0, 1800, 1, 0, 0),
    SiteJob("4", WAITING, "", "cyd", "", NOW - 100, 0, 1800, 17, 0, 0),  # never fits
)
EXACT = "arrival,duration,estimate,processors,user\n" + "".join(
    f"{1000 * k},60,60,1,ada\n" for k in range(20)
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snapshot = Snapshot(NOW, QUEUE, (SiteNode("all", 16, 0, 0, 0, 0, 0),))
    decision = decide(snapshot, lambda queue: _Nothing, Limits(), WAITING)
    write = open_journal(Path("seen.jsonl"))
    write(tick_entry(1, "", Limits(), WAITING, snapshot, NO_PAST, decision))
    Path("exact.csv").write_text(EXACT)
    return tmp_path


class _Nothing:
    starts, planned, scores = (), {}, {}


def command(*words: str) -> int:
    return cli.run(cli.metasched, words)


def foreseen(policy: str, record: str, num_instants: int = 0, **options: Any) -> Report:
    return metasched.starts(
        policy, "exact.csv", repeat=record, num_instants=num_instants, **options
    )


def test_a_queue_of_exact_users_starts_when_estimates_say(folder):
    data = foreseen("fcfs:strict", "seen.jsonl", num_futures=5).data
    second, third = data["starts"]
    assert data["time"] == NOW
    # Job 1 runs to its limit, 3,000 seconds from now; then job 2, 1,800 more.
    assert second == {
        "job": "2",
        "expected": NOW + 3000,
        "plan": NOW + 3000,
        "at": (*[NOW + 3000] * 4, NOW + 3060),
        "latest": None,
        "not_simulated": (),
    }
    assert (third["job"], third["expected"], third["at"]) == (
        "3",
        0,
        (*[NOW + 4800] * 4, NOW + 4860),
    )


def test_people_see_slurms_own_time_and_the_guaranteed_one(folder):
    found = foreseen("fcfs:easy", "seen.jsonl", 4, num_futures=5, max_wait="1h")
    title, head, *rows = repr(found).splitlines()
    assert title == "Starts under fcfs:easy, from now on"
    assert head.split()[2:4] == ["Slurm", "median"]
    assert head.endswith("latest")
    # Overdue in 3,300 s; what starts until then ends 3,600 s later.
    assert rows[0].split()[:5] == ["2", "5", "min", "50", "min"]
    assert rows[0].endswith("115 min")
    assert any(row.startswith("Guaranteed, if no job") for row in rows)


def test_shadow_writes_start_times_beside_its_advice(folder, capsys):
    write_site_log(folder / "jobs.csv", 300)
    site = ("--simulate", "jobs.csv", "--processors", "16", "--gpus", "4", "--speed", "3000000")
    words = ("--starts", "jobs.csv", "--instants", "0", "--futures", "3", "--tick", "0.01")
    assert command("shadow", "sjf:easy", *site, *words, "--ticks", "3", "--out", "s.jsonl") == 0
    ticks = [json.loads(line) for line in (folder / "s.jsonl").read_text().splitlines()]
    for tick in ticks:
        waiting = [job[0] for job in tick["snapshot"]["jobs"] if job[1] == WAITING]
        assert sorted(one["job"] for one in tick["start_times"]) == sorted(waiting)
    assert command("shadow", "sjf:easy", "--repeat", "s.jsonl") == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "squeue is not on PATH"),
        ({"past": "none.csv"}, "none.csv: No such file"),
        ({"repeat": "exact.csv"}, "is no line of a journal"),
        ({"policy": "slj:easy"}, "'slj:easy'"),
        ({"max_wait": "x2"}, "a time"),
        ({"gpus": 4}, "describes a simulated site"),
    ],
)
def test_what_cannot_be_done_is_said(given, said, folder, monkeypatch):
    monkeypatch.setenv("PATH", str(folder))
    usual = {"policy": "fcfs:easy", "past": "exact.csv"}
    record = {"repeat": "seen.jsonl"} if given else {}
    with pytest.raises(metasched.InputError, match=re.escape(said)):
        metasched.starts(**{**usual, **record, **given})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--starts", "exact.csv"), "squeue is not on PATH"),
        (("--starts", "exact.csv", "--time-zone", "UTC"), "squeue is not on PATH"),
        (("--starts", "exact.csv", "--gpus", "4"), "--gpus describes a simulated site"),
        (("--time-zone", "UTC"), "--time-zone describes a simulated site"),
        (("--starts", "none.csv"), "none.csv: No such file"),
        (("--starts", "exact.csv", "--repeat", "seen.jsonl"), "metasched.starts(POLICY, LOG"),
    ],
)
def test_what_shadow_cannot_foresee_is_said_in_a_line_with_status_2(
    words, said, folder, capsys, monkeypatch
):
    monkeypatch.setenv("PATH", str(folder))
    assert command("shadow", "fcfs:easy", *words) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1


def test_a_record_of_before_slurms_own_times_were_read_has_none(folder):
    entry = json.loads(Path("seen.jsonl").read_text())
    entry["snapshot"]["jobs"] = [row[:13] for row in entry["snapshot"]["jobs"]]
    Path("old.jsonl").write_text(json.dumps(entry) + "\n")
    found = foreseen("fcfs:strict", "old.jsonl", num_futures=2).data["starts"]
    assert [one["expected"] for one in found] == [0, 0]


def at_site(*jobs: SiteJob, limits: tuple[dict, ...] = (), **record: object) -> None:
    """A record of four nodes, all held by job 1 for 100 s more."""
    first = SiteJob(
        *("1", RUNNING, "None", "ada", "main", NOW - 900, NOW - 100, 200, 32, 0, 0, 4),
        node_list="n[1-4]",
        exclusive=True,
    )
    nodes = tuple(SiteNode(f"n{k}", 8, 0, 0, 0, 0, 0, "main") for k in (1, 2, 3, 4))
    main = {"name": "main", "nodes": [node.name for node in nodes], "shared": record.get("shared")}
    rules = {"partitions": [main], "limits": list(limits), "calendar": []}
    snapshot = Snapshot(NOW, (first, *jobs), nodes, restrictions=rules)
    decision = decide(snapshot, lambda queue: _Nothing, Limits(), WAITING)
    with Path("site.jsonl").open("w") as file:
        entry = tick_entry(1, "", Limits(), WAITING, snapshot, NO_PAST, decision)
        file.write(json.dumps(entry) + "\n")


def waits(job: str, processors: int = 1, nodes: int = 1, **more) -> SiteJob:
    times = (NOW - 50, 0, 60)
    state, reason = more.pop("state", WAITING), more.pop("reason", "Resources")
    partition, user = more.pop("partition", "main"), more.pop("user", "ada")
    units = (processors, 0, 0, nodes)
    return SiteJob(job, state, reason, user, partition, *times, *units, **more)


def starts_at_site() -> dict:
    found = foreseen("fcfs:easy", "site.jsonl", num_futures=3)
    return {one["job"]: one for one in found.data["starts"]}


def after(one: dict) -> list[int]:
    return [time - NOW for time in one["at"]]


def test_nodes_throttles_and_exclusive_jobs_are_played(folder):
    """All run as long as they may, so that it can be followed by hand."""
    array = [waits(f"2_{k}", array="2", throttle=1) for k in (1, 2, 3, 4)]
    wide = [waits(job, 3, 3, exclusive=True) for job in "34"]
    at_site(*array, *wide, waits("5", nodes_named="n1"))
    found = starts_at_site()
    medians = {job: after(one)[2] for job, one in found.items()}
    assert medians == {"2_1": 100, "2_2": 160, "2_3": 220, "2_4": 280, "3": 100, "4": 160, "5": 100}
    assert all(after(one)[4] == after(one)[2] + 60 for one in found.values())
    assert not any(one["not_simulated"] for one in found.values())


def test_a_job_that_a_limit_blocks_is_foreseen_and_others_that_wait_for_jobs_are_not(
    folder,
):
    reason = "QOSMaxJobsPerUserLimit"
    blocked = waits("2", qos="one", state=BLOCKED, reason=reason)
    other = waits("3", state=BLOCKED, reason="Dependency")
    limit = {"name": "one", "kind": "qos", "jobs_per_user": 1}
    at_site(waits("4", qos="one"), blocked, other, limits=(limit,))
    found = starts_at_site()
    assert {job: after(one)[2] for job, one in found.items()} == {"4": 100}  # no limit blocks 2 now
    runs = replace(waits("6", qos="one"), state=RUNNING, start=NOW - 20, node_list="n9")
    at_site(waits("4", qos="one"), blocked, other, runs, limits=(limit,))
    found = starts_at_site()
    assert {job: after(one)[2] for job, one in found.items()} == {"2": 100, "4": 160}


def test_what_no_site_describes_is_said_beside_the_job(folder):
    at_site(
        waits("2", special="contiguous nodes; licenses lab:2"),
        waits("3", 2, 2, nodes_named="n1"),
        waits("4", features="[a*1&b*2]"),
        waits("5", partition="main,long"),
        waits("6", 64, 8),
        waits("7", partition="gone"),
        waits("8", reservation="course"),
        shared=True,
    )
    found = starts_at_site()
    shared = "jobs of its partition share processors"
    assert found["2"]["not_simulated"] == ("contiguous nodes", "licenses lab:2", shared)
    assert found["3"]["not_simulated"] == (shared, "needs n1 among its nodes")
    assert found["5"]["not_simulated"][0] == "waits in 2 partitions, simulated in one"
    assert found["8"]["not_simulated"] == (shared, "reservation course")
    for job, why in (
        ("4", "no node has the features"),
        ("6", "a number of nodes"),
        ("7", "no nodes"),
    ):
        assert found[job]["at"] is None
        assert why in found[job]["not_simulated"][0]
    _, head, *rows = repr(foreseen("fcfs:easy", "site.jsonl", num_futures=2)).splitlines()
    assert head.endswith("not simulated")
    assert "contiguous nodes; licenses lab:2" in rows[0]


def test_jobs_on_nodes_that_take_no_more_count_and_free_nothing(folder, capsys):
    """Job 6 runs on a drained node and, unevenly, on n1, whose other jobs nobody lists."""
    snapshot = Snapshot(
        NOW,
        (
            SiteJob(
                *("6", RUNNING, "", "ada", "main", 1, NOW, 100, 10, 0, 0, 2), node_list="n[1,9]"
            ),
            SiteJob(*("7", RUNNING, "", "ada", "main", 1, NOW, 50, 2, 0, 0), node_list="n2"),
            waits("8", 16, 2),
            waits("9", 4),
        ),
        (SiteNode("n1", 8, 0, 0, 4, 0, 0, "main"), SiteNode("n2", 8, 0, 0, 4, 0, 0, "main")),
        restrictions={"partitions": [], "limits": [], "calendar": []},
    )
    live = LiveSite(snapshot)
    assert [job.job for job in live.running] == ["6", "7"]
    assert live.site.node_names == ("n1", "n2", "n9")
    # n2 is two processors smaller, which somebody holds.
    assert live.site.units[:, 0].tolist() == [8, 6, 6]
    assert live.nodes.first.tolist() == [0, 2, 3]
    assert live.nodes.size.tolist() == [4, 6, 2]
    assert not live.never()
