"""What a slurm.conf says of the machine and the order of jobs."""

from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.slurm.conf import SlurmConf, parse_conf
from cluster_env.workloads.slurm.site_conf import site_of_conf
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


def conf(folder: Path, text: str) -> SlurmConf:
    path = folder / "slurm.conf"
    path.write_text(text)
    return parse_conf(path)


def nodes(found: SlurmConf) -> list[tuple[str, int, int, int]]:
    return [
        (group.name, group.processors, group.memory, group.gpus) for group in found.groups if group
    ]


def test_the_nodes_of_each_line_that_are_there(tmp_path: Path) -> None:
    found = conf(tmp_path, CONF)
    assert nodes(found) == [
        ("a[1-3,07]", 16, 1000, 2),
        ("b1,b2", 32, 4000, 1),
        ("c1", 4, 1000, 0),
    ]
    assert found.groups[0] is not None
    assert found.groups[0].hosts == ("a1", "a2", "a3", "a07")
    assert found.groups[3] is None  # they are for the future
    assert found.counts_memory
    assert not conf(tmp_path, CONF.replace("_Memory", "")).counts_memory


def test_cpus_are_what_sockets_hold_where_nobody_counts_them(tmp_path: Path) -> None:
    line = "NodeName=n1 {}CoresPerSocket=8 ThreadsPerCore=2"
    assert nodes(conf(tmp_path, line.format("Sockets=2 "))) == [("n1", 32, 0, 0)]
    assert nodes(conf(tmp_path, line.format("Boards=2 SocketsPerBoard=2 "))) == [("n1", 64, 0, 0)]


def test_the_order_and_its_weights(tmp_path: Path) -> None:
    found = conf(tmp_path, CONF)
    assert found.order == ("priority", {"age": 1000, "size": 250, "fair_share": 5000})
    assert found.backfilling == "conservative"
    small = conf(tmp_path, CONF + "PriorityFavorSmall=YES\n")
    assert small.order[1]["size"] == -250
    basic = conf(tmp_path, CONF.replace("multifactor", "basic").replace("backfill", "builtin"))
    assert (basic.order, basic.backfilling) == (("fcfs", {}), "strict")
    nothing = conf(tmp_path, "PriorityType=priority/multifactor\nNodeName=n1 CPUs=2\n")
    assert nothing.order == ("fcfs", {})  # all weights are 0, so age by number remains


def test_an_included_file_is_named(tmp_path: Path) -> None:
    found = conf(tmp_path, "Include more.conf\nNodeName=n1 CPUs=2\n")
    assert found.included == ("line 1 includes another file",)


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
        site_of_conf(conf(tmp_path, text))
    assert words in str(refusal.value)


def test_the_golden_example(golden: Path) -> None:
    found = parse_conf(stored(golden / "slurm" / "slurm.conf.example"))
    groups = [group for group in found.groups if group]
    assert sum(len(group.hosts) * group.processors for group in groups) == 128
    assert sum(len(group.hosts) * group.memory for group in groups) == 2 * 262_144
    assert sum(len(group.hosts) * group.gpus for group in groups) == 16
    assert found.counts_memory
    assert (found.order, found.backfilling, found.included) == (("fcfs", {}), "strict", ())
