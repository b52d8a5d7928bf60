"""What a real Slurm 22.05 printed of partitions, limits and reservations, and what it may lack."""

import json
import re
from pathlib import Path

import pytest

from rllib_configs.snapshot import SiteJob, SiteNode, Snapshot
from tests.conftest import REPOSITORY
from tune_jobs.site import slurm
from tune_jobs.site.commands import Refused, SiteAway
from tune_jobs.site.slurm import SlurmBackend
from tune_jobs.site.slurm_restrictions import read_partitions
from tune_jobs.site.ticks import without_users

RECORDED = REPOSITORY / "tests" / "slurm" / "recorded"
CONFIG = "ClusterName = lab\nSelectTypeParameters = CR_CPU\nAccountingStorageEnforce = {}\n"
JOB = "5_1|PENDING|None|ann|batch|1|1|N/A|5:00|8|1|8|cpu=8|N/A|N/A|N/A|N/A|1||"
NODE = "n1|idle|0/64/0/64|262144|0|(null)|(null)|batch*|"


def recorded(name: str) -> str:
    return Path(RECORDED, name).read_text()


@pytest.fixture
def said(monkeypatch):
    """What programs say by their name and the word after it; how often each is called."""
    answers = {
        "scontrol show config": CONFIG.format("associations,limits,qos"),
        "squeue -O": f"{JOB}bio|urgent|(null)|OK|||0|(null)|a|b|\n",
        "squeue -o": "5 1-7%3\n9 0-3\n",
        "sinfo -O": f"{NODE}ib,gold|\n{NODE.replace('batch*', 'express')}ib,gold|\n",
        "scontrol show partition": recorded("partitions.txt"),
        "scontrol show res": recorded("reservations.txt"),
        "sacctmgr show qos": recorded("qos.txt"),
        "sacctmgr show assoc": recorded("assoc.txt"),
    }
    calls = []

    def call(program, *arguments, **options):
        listing = next((word for word in arguments if word in ("-O", "-o")), "")
        shows = program in ("scontrol", "sacctmgr")
        key = f"{program} {' '.join(arguments[:2]) if shows else listing}"
        calls.append(key)
        answer = answers[key]
        if isinstance(answer, Exception):
            raise answer
        return answer(*arguments) if callable(answer) else answer

    monkeypatch.setattr(slurm, "call", call)
    answers["calls"] = calls
    return answers


def test_partitions_of_scontrol():
    batch, express = read_partitions(recorded("partitions.txt"))
    assert batch["nodes"] == [f"n{k}" for k in range(1, 13)]
    assert (batch["max_time_s"], batch["max_nodes"], batch["default"]) == (3600, 0, True)
    assert (express["max_time_s"], express["max_nodes"], express["priority"]) == (240, 2, 10)
    assert (express["qos"], express["tier"], express["available"]) == ("", 1, True)


def test_a_look_has_what_slurm_would_refuse_jobs_for(said):
    clock = [0.0]
    backend = SlurmBackend(nodes_every_s=60, clock=lambda: clock[0])
    snapshot = backend.read()
    assert snapshot.jobs == (
        SiteJob(
            *("5_1", "waiting", "None", "ann", "batch", 1, 0, 300, 8, 0, 0, 1, 1),
            account="bio",
            qos="urgent",
            features="a|b",
            array="5",
            throttle=3,
        ),
    )
    assert snapshot.nodes == (SiteNode("n1", 64, 0, 0, 64, 0, 0, "batch,express", "ib,gold"),)
    limits = {limit["name"]: limit for limit in snapshot.restrictions["limits"]}
    assert limits["urgent"] == {
        **{"name": "urgent", "kind": "qos", "priority": 100},
        **{"jobs_per_user": 2, "processors": 128},
    }
    assert "biology" not in limits  # none of its jobs is there
    (course,) = snapshot.restrictions["calendar"]
    assert (course["name"], course["nodes"], course["users"]) == ("course", ["n[1-2]"], ["man"])
    assert Snapshot.from_plain(snapshot.to_plain()) == snapshot
    before = len(said["calls"])
    clock[0] = 59.0
    backend.read()
    assert said["calls"][before:] == ["squeue -O"]
    clock[0] = 60.0
    backend.read()
    assert "sacctmgr show qos" in said["calls"][before:]


def test_limits_of_accounts_and_users_come_with_their_jobs(said):
    rows = recorded("assoc.txt").replace("lab|biology|mail||1||||", "lab|biology|mail||1|||cpu=7|")
    said["sacctmgr show assoc"] = rows
    said["squeue -O"] = f"{JOB.replace('ann', 'mail')}biology|urgent|(null)|NO|n3||1|lab:2||\n"
    snapshot = SlurmBackend().read()
    (job,) = snapshot.jobs
    assert (job.exclusive, job.nodes_named) == (True, "n3")
    assert job.special == "contiguous nodes; licenses lab:2"
    limits = {limit["name"]: limit for limit in snapshot.restrictions["limits"]}
    assert limits["biology"] == {"name": "biology", "kind": "account", "processors": 400}
    assert limits["mail"] == {"name": "mail", "kind": "user", "processors": 7}
    hidden = without_users(snapshot)
    text = json.dumps(hidden.to_plain())
    assert not {"mail", "man"} & set(re.findall(r"\w+", text))
    users = {limit["name"] for limit in hidden.restrictions["limits"] if limit["kind"] == "user"}
    assert users == {job.user for job in hidden.jobs}


def test_limits_count_only_where_the_site_keeps_to_them(said):
    said["scontrol show config"] = CONFIG.format("associations")
    assert SlurmBackend().read().restrictions["limits"] == []
    assert "sacctmgr show qos" not in said["calls"]


@pytest.mark.parametrize("part", ["sacctmgr show qos", "scontrol show res"])
def test_what_cannot_be_read_is_said_once_and_the_rest_counts(said, part):
    said[part] = SiteAway("sacctmgr cannot be called: No such file or directory")
    clock, lines = [0.0], []
    backend = SlurmBackend(clock=lambda: clock[0], announce=lines.append)
    assert len(backend.read().restrictions["partitions"]) == 2
    clock[0] = 100.0
    backend.read()
    assert len(lines) == 1
    assert "so that Slurm alone checks them" in lines[0]


def test_an_old_slurm_without_a_column_is_read_as_before(said):
    def old(*arguments):
        if "Feature" in arguments[-1]:
            raise Refused("squeue failed: Invalid job format specification: Feature")
        return f"{JOB}\n"

    said["squeue -O"] = old
    lines: list[str] = []
    backend = SlurmBackend(announce=lines.append)
    snapshot = backend.read()
    assert snapshot.restrictions is None
    assert snapshot.jobs[0].qos == ""
    assert backend.read().restrictions is None
    assert len(lines) == 1
    assert lines[0].startswith("squeue does not list Account, QOS, Reservation,")
