"""Texts of users over several lines in exports of sacct, and what `scontrol show node` prints."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.sites.reading import read_site
from cluster_env.workloads.formats import read_log
from tests.conftest import REPOSITORY

FIELD = REPOSITORY.parent / "shared" / "field" / "hpc4"
NAMES = (
    "JobIDRaw|JobID|JobName|User|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS"
)


# A line that begins with a number could begin a job.
TYPED = (
    st.text(alphabet="ab |\n-=7.", min_size=1, max_size=30)
    .filter(lambda text: "\n7" not in text)
    .map(lambda text: f"sbatch {text}")
)


def export(path: Path, commands: list[str], *, last: bool) -> Path:
    """Jobs one after the other; commands stand in the last column, or in front of the state."""
    names = NAMES.split("|")
    place = len(names) if last else names.index("State")
    lines = ["|".join([*names[:place], "SubmitLine", *names[place:]])]
    for k, command in enumerate(commands):
        begin = 1_772_438_400 + 60 * k
        times = [str(begin), str(begin), str(begin), str(begin + 600), "600", "30", "4"]
        cells = [str(100 + k), str(100 + k), "job", "ann", "COMPLETED", *times]
        lines.append("|".join([*cells[:place], command, *cells[place:]]))
    path.write_text("\n".join([*lines, ""]))
    return path


@given(
    commands=st.lists(
        TYPED,
        min_size=1,
        max_size=8,
    ),
    last=st.booleans(),
)
def test_whatever_people_type_every_job_is_read(
    commands: list[str], last: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = export(tmp_path_factory.getbasetemp() / "typed.txt", commands, last=last)
    jobs = read_log(path)
    assert jobs.num_jobs == len(commands)
    assert not jobs.dropped
    assert list(jobs.submit - jobs.submit[0]) == [60 * k for k in range(len(commands))]
    assert set(jobs.demand[:, 0]) == {4}


def test_a_row_that_is_cut_off_is_still_one_that_cannot_be_read(tmp_path: Path) -> None:
    path = export(tmp_path / "a.txt", ["sbatch a"] * 3, last=True)
    lines = path.read_text().splitlines()
    lines[2] = lines[2][:30]
    path.write_text("\n".join(lines))
    jobs = read_log(path)
    assert jobs.num_jobs == 2
    assert [(one.count, one.line) for one in jobs.dropped] == [(1, 3)]


ENTRIES = (
    (
        "NodeName=a1 Arch=x86_64",
        "CPUAlloc=0 CPUTot=32 CPULoad=0.01",
        "AvailableFeatures=skylake,ib Gres=gpu:a100:2(S:0)",
        "RealMemory=1000 State=IDLE Weight=3 Partitions=high,low",
    ),
    ("NodeName=a2", "CPUTot=16 Gres=(null)", "State=IDLE+DRAIN Partitions=low", "Reason=bad disk"),
    ("NodeName=a3", "CPUTot=16 Gres=(null)", "State=MIXED Partitions=low"),
)


@pytest.mark.parametrize("between", [" ", "\n   "])
def test_a_listing_of_nodes_is_a_machine(between: str, tmp_path: Path) -> None:
    path = tmp_path / "nodes.txt"
    path.write_text("\n\n".join(between.join(entry) for entry in ENTRIES))
    site = read_site(path)
    sizes = [(group.name, group.processors, group.gpus) for group in site.nodes]
    assert sizes == [("a1", 32, 2), ("a3", 16, 0)]
    assert site.nodes[0].features == ("skylake", "ib")
    nodes = {partition.name: partition.nodes for partition in site.partitions}
    assert nodes == {"high": ("a1",), "low": ("a1,a3",)}
    assert "a2 (IDLE+DRAIN)" in " ".join(site.not_simulated)


@pytest.mark.parametrize(
    "text",
    [
        "PartitionName=high Nodes=a[1-2] TotalCPUs=32 State=UP\n",
        "the log speaks of NodeName=a1 in the middle\n",
        "JobId=1 JobName=a\n   NodeList=a1 BatchHost=a1\n",
    ],
)
def test_what_only_mentions_a_node_is_no_machine(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(InputError, match=r"no YAML file.*scontrol show node"):
        read_site(tmp_path / "a.txt")


def test_a_listing_without_a_node_that_is_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("NodeName=a CPUTot=4 State=DOWN* Partitions=p\n")
    with pytest.raises(InputError, match=r"no node is there: a \(DOWN\*\)"):
        read_site(tmp_path / "a.txt")


@pytest.mark.skipif(not FIELD.is_dir(), reason=f"needs the files of {FIELD.name}")
def test_files_of_others_are_read() -> None:
    jobs = read_log(FIELD / "sacct_submitline_newline.txt")
    assert (jobs.num_jobs, len(jobs.dropped)) == (6, 0)
    site = read_site(FIELD / "scontrol_nodes.txt")
    assert [group.processors for group in site.nodes] == [32]
    assert "node-c1" in " ".join(site.not_simulated)
