"""What a slurm.conf says of the machine and the order of jobs, and what of it is not simulated."""

from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.slurm.conf import SlurmSite, read_slurm_conf
from tests.golden import stored

CONF = r"""
# a site
ClusterName=made-up   # with a remark
SchedulerType=sched/backfill
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightAge=1000
priorityweightfairshare=5000
PriorityWeightJobSize=250
PriorityWeightQOS=9
PriorityMaxAge=14-0
AccountingStorageEnforce=associations,limits
NodeName=DEFAULT RealMemory=1000 CPUs=4
NodeName=a[1-3,07] CPUs=16 \
    Gres=gpu:a100:2(S:0-1),nvme:1
NodeName=b1,b2 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CPUs=32 RealMemory=4000 Gres=gpu
NodeName=c1
NodeName=d[1-99] CPUs=64 State=FUTURE
PartitionName=main Nodes=ALL Default=YES
PartitionName=big Nodes=b1 PriorityTier=5
"""


def site(folder: Path, text: str) -> SlurmSite:
    path = folder / "slurm.conf"
    path.write_text(text)
    return read_slurm_conf(path)


def test_the_machine_is_the_sum_of_its_nodes(tmp_path: Path) -> None:
    found = site(tmp_path, CONF)
    assert found.processors == 4 * 16 + 2 * 32 + 4
    assert found.memory == 4 * 1000 + 2 * 4000 + 1000
    assert found.gpus == 4 * 2 + 2
    assert site(tmp_path, CONF.replace("_Memory", "")).memory == 0


def test_cpus_are_what_sockets_hold_where_nobody_counts_them(tmp_path: Path) -> None:
    line = "NodeName=n1 {}CoresPerSocket=8 ThreadsPerCore=2"
    assert site(tmp_path, line.format("Sockets=2 ")).processors == 32
    assert site(tmp_path, line.format("Boards=2 SocketsPerBoard=2 ")).processors == 64


def test_the_order_and_its_weights(tmp_path: Path) -> None:
    found = site(tmp_path, CONF)
    assert (found.order, found.backfilling) == ("priority", "conservative")
    assert found.weights == {"age": 1000, "size": 250, "fair_share": 5000}
    small = site(tmp_path, CONF + "PriorityFavorSmall=YES\n")
    assert small.weights["size"] == -250
    basic = site(tmp_path, CONF.replace("multifactor", "basic").replace("backfill", "builtin"))
    assert (basic.order, basic.backfilling, basic.weights) == ("fcfs", "strict", {})
    nothing = site(tmp_path, "PriorityType=priority/multifactor\nNodeName=n1 CPUs=2\n")
    assert nothing.order == "fcfs"  # all weights are 0, so age by number remains


def test_what_is_not_simulated_is_listed(tmp_path: Path) -> None:
    assert site(tmp_path, CONF).unknown == (
        "PriorityWeightQOS is 9",
        "PriorityMaxAge is 14-0, not a week",
        "limits of accounts and QOS are enforced",
        "2 partitions count as one machine (--site simulates them)",
        "partitions have several tiers of priority",
    )
    more = site(tmp_path, "Include more.conf\nPreemptType=preempt/qos\nNodeName=n1 CPUs=2\n")
    assert more.unknown == (
        "line 1 includes another file",
        "PriorityType is not set, and read as priority/basic",
        "jobs may preempt others",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ClusterName=x\n", "names no node with CPUs"),
        ("NodeName=n[1-x] CPUs=4\n", "line 1: a range of hosts is no range"),
        ("\n\nNodeName=n1 CPUs=many\n", "line 3: CPUs must be a whole number, not 'many'"),
        (CONF.replace("Age=1000", "Age=much"), "priorityweightage must be a number, not 'much'"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        site(tmp_path, text)
    assert words in str(refusal.value)


def test_the_golden_example(golden: Path) -> None:
    found = read_slurm_conf(stored(golden / "slurm" / "slurm.conf.example"))
    assert found == SlurmSite(128, 2 * 262_144, 16, "fcfs", "strict", {}, ())
