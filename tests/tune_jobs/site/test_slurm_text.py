"""What a real Slurm 22.05 printed, and what nobody expects it to print."""

import pytest

from rllib_configs.snapshot import BLOCKED, HELD, RUNNING, WAITING, SiteJob, SiteNode, Snapshot
from tune_jobs.site.slurm_text import JOB_FIELDS, NODE_FIELDS, layout, read_jobs, read_nodes

# Recorded, but for the GPUs of jobs 2 and 4, the het job and the names of users.
SQUEUE = """\
8|PENDING|BeginTime|ann|main|1795402649|1795406249|1795406249|1:00:00|6|1|3|cpu=6,mem=600M,node=1|||||1||
5_1|PENDING|None|ann|main|1795402649|1795402649|N/A|UNLIMITED|250|4|250|cpu=250,mem=25000M,node=1|N/A|N/A|N/A|N/A|17||
4|PENDING|JobHeldUser|bob|main,gpu|1795402649|N/A|N/A|1-00:00:00|8|3|8|cpu=8,mem=12G,node=3|N/A|gres:gpu:a100:2|N/A|N/A|0||
3|PENDING|JobHeldAdmin|bob|main|1795402649|N/A|N/A|5:00|8|1|8|cpu=8,mem=800M,node=1|N/A|N/A|N/A|N/A|0||
6+0|PENDING|JobHeldUser|bob|main|1795402649|N/A|N/A|5:00|8|1|8|cpu=8,mem=800M,node=1|N/A|N/A|N/A|N/A|0||
1|RUNNING|None|ann|main|1795402649|1795402650|1795402651|5:00|100|2|100|cpu=100,mem=10000M,node=2|N/A|N/A|N/A|N/A|1|n[1-2]|
2|RUNNING|None|ann|gpu|1795402649|1795402649|1795402650|1:00|4|1|2|cpu=4,mem=400M,node=1|N/A|N/A|N/A|gres:gpu:1|1|n2|
9|COMPLETED|None|ann|main|1795402649|1795402649|1795402650|1:00|4|1|4|cpu=4|N/A|N/A|N/A|N/A|1||
"""
SINFO = """\
n1|allocated|64/0/0/64|262144|6400|(null)|(null)|main*|
n2|mixed|40/24/0/64|262144|4000|gpu:a100:8(S:0-1),nvme:1|gpu:a100:2(IDX:0-1)|main*|
n2|mixed|40/24/0/64|262144|4000|gpu:a100:8(S:0-1),nvme:1|gpu:a100:2(IDX:0-1)|gpu|
n3|drained|0/0/64/64|262144|0|(null)|(null)|main*|
n4|idle*|0/64/0/64|262144|0|(null)|(null)|main*|
n5|completing|10/54/0/64|262144|0|(null)|(null)|main*|
"""


def read(squeue: str, **options):
    return read_jobs(squeue, with_memory=True, **options)


def test_each_recorded_row_is_the_job_that_it_shows():
    assert read(SQUEUE).jobs == (
        SiteJob(
            *("8", BLOCKED, "BeginTime", "ann", "main", 1795406249, 0, 3600, 6, 600, 0, 1, 1),
            expected=1795406249,
        ),
        SiteJob(
            *("5_1", WAITING, "None", "ann", "main", 1795402649, 0, 0, 250, 25000, 0, 4, 17),
            array="5",
        ),
        SiteJob(
            *("4", HELD, "JobHeldUser", "bob", "main,gpu", 1795402649, 0, 86400, 8, 12288, 6, 3, 0)
        ),
        SiteJob("3", BLOCKED, "JobHeldAdmin", "bob", "main", 1795402649, 0, 300, 8, 800, 0, 1, 0),
        SiteJob("6+0", BLOCKED, "JobHeldUser", "bob", "main", 1795402649, 0, 300, 8, 800, 0, 1, 0),
        SiteJob(
            *("1", RUNNING, "None", "ann", "main", 1795402650, 1795402651, 300, 100, 10000, 0, 2),
            priority=1,
            node_list="n[1-2]",
        ),
        SiteJob(
            *("2", RUNNING, "None", "ann", "gpu", 1795402649, 1795402650, 60, 4, 400, 2, 1, 1),
            node_list="n2",
        ),
    )


def test_only_nodes_that_take_jobs_count_and_each_once():
    assert read_nodes(SINFO, with_memory=True).nodes == (
        SiteNode("n1", 64, 262144, 0, 0, 255744, 0, "main"),
        SiteNode("n2", 64, 262144, 8, 24, 258144, 6, "gpu,main"),
        SiteNode("n5", 64, 262144, 0, 54, 262144, 0, "main"),
    )


def test_a_partition_has_its_own_jobs_and_nodes():
    found = read(SQUEUE, partitions=("gpu",))
    assert [job.job for job in found.jobs] == ["4", "2"]
    assert set(found.holdings) == {"1", "2"}  # of the others, what they hold
    nodes = read_nodes(SINFO, with_memory=True, partitions=("gpu",)).nodes
    assert [node.name for node in nodes] == ["n2"]


def test_memory_counts_nowhere_or_everywhere():
    assert {job.memory for job in read_jobs(SQUEUE, with_memory=False).jobs} == {0}
    nodes = read_nodes(SINFO, with_memory=False).nodes
    assert {(node.memory, node.free_memory) for node in nodes} == {(0, 0)}


@pytest.mark.parametrize(
    "row",
    [
        "$(rm -rf /)|PENDING",
        "7|PENDING|None|a|b|main|1|1|N/A|5:00|8|1|8|cpu=8|N/A|N/A|N/A|N/A|0||",
        "7|PENDING|None|ann|main|1|1|N/A|5:00|-8|1|8|cpu=-8|N/A|N/A|N/A|N/A|0||",
        "7|PENDING|None|ann|main|1|1|N/A|soon|8|1|8|cpu=8|N/A|N/A|N/A|N/A|0||",
        "7|PENDING|None|ann|main|1|1|N/A|5:00|8|1|8|cpu|N/A|N/A|N/A|N/A|0||",
        "\x1b[2J||||||||||||||||||||",
    ],
)
def test_a_row_that_cannot_be_read_is_counted_and_left_out(row):
    found = read(f"{row}\n{SQUEUE}")
    assert len(found.jobs) == 7
    assert found.unreadable == 1


def test_what_is_no_number_of_a_job_is_never_steered():
    found = read(SQUEUE.replace("4|PENDING", "4;reboot|PENDING"))
    assert {job.state for job in found.jobs if job.job == "4;reboot"} == {BLOCKED}


def test_no_field_is_asked_for_that_users_write_freely():
    asked = {name.lower() for name in (*JOB_FIELDS, *NODE_FIELDS)}
    assert not asked & {"name", "comment", "admin_comment", "command", "workdir", "wckey"}
    assert layout(("A", "B")) == "A:|,B:|"


def test_a_snapshot_survives_json():
    found = Snapshot(7, read(SQUEUE).jobs, read_nodes(SINFO, with_memory=True).nodes, 1)
    assert Snapshot.from_plain(found.to_plain()) == found
