"""A limit on nodes counts each node once, and is looked at when nodes are chosen, as simulated."""

from collections.abc import Iterator

import pytest

from tests.cluster_env.worlds.hpc.site.node_limits import NODE_LIMITS, Case, Job
from tests.slurm.limited import SCHEDULER
from tests.slurm.private_accounts import PrivateAccounts, skip_without_accounts
from tests.slurm.private_slurm import PARTITION, PrivateSlurm
from tests.waiting import wait_for

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

NODES = ("n1", "n2", "n3")
PARTITIONS = (
    PARTITION.replace("PartitionName=main", "PartitionName=n0"),
    *(f"PartitionName={name} Nodes={name} State=UP DefMemPerCPU=100" for name in NODES),
)
QOS = {"one": "GrpTRES=node=1", "two": "GrpTRES=node=2", "per": "MaxTRESPU=node=1"}
USER, RUN_S = "games", 100
UNDECIDED = ("None", "Priority")
"""Reasons of a job that Slurm has not looked at yet."""


@pytest.fixture(scope="module")
def slurm() -> Iterator[PrivateSlurm]:
    skip_without_accounts()
    enforced = {"AccountingStorageEnforce": "associations,limits,qos"}
    with (
        PrivateSlurm(len(NODES), partitions=PARTITIONS, scheduler=SCHEDULER) as started,
        PrivateAccounts(started, **enforced) as accounts,
    ):
        started.folder.chmod(0o755)
        for name, limit in QOS.items():
            accounts.run("add", "qos", name)
            accounts.run("modify", "qos", name, "set", limit)
        accounts.run("add", "account", "lab", f"qos=normal,{','.join(QOS)}")
        accounts.run("add", "user", USER, "account=lab")
        started.wait_until_idle()
        yield started


def runs(slurm: PrivateSlurm, job: Job) -> bool:
    """Submits a job; whether Slurm starts it at once."""
    words = [f"--uid={USER}", f"--qos={job.qos}", f"--partition=n{job.node}", f"-n{job.processors}"]
    words += [f"-N{job.nodes}"] if job.nodes else []
    words += ["--exclusive"] if job.exclusive else []
    number = str(slurm.submit(f"sleep {RUN_S}", *words, "--chdir=/tmp", "-t5"))

    def state() -> list[str]:
        return slurm.run("squeue", "-h", "-j", number, "-o", "%T %r").split()

    wait_for(lambda: state()[0] == "RUNNING" or state()[1] not in UNDECIDED, "a decision")
    return state()[0] == "RUNNING"


@pytest.mark.parametrize("case", NODE_LIMITS, ids=str)
def test_slurm_starts_what_the_simulator_starts(slurm: PrivateSlurm, case: Case) -> None:
    try:
        found = [runs(slurm, job) for job in case.jobs]
        assert found == [start < RUN_S for start in case.starts]
    finally:
        slurm.run("scancel", "--full", "-u", USER)
        wait_for(lambda: not slurm.run("squeue", "-h", "-o", "%A").strip(), "an empty queue")
        slurm.wait_until_idle()
