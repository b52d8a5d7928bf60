"""No schedule that a command writes holds more than the machine has, or forgets a dependency."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from tests.golden import stored
from tests.tune_jobs.replaying.partitioned_log import PARTITIONS, SITE, write_partitioned_log
from tune_jobs import cli
from tune_jobs.figures import pictures

Shown = pytest.CaptureFixture[str]
POLICIES = ("--policies", "fcfs:easy,sjf:conservative,saf:strict")

HEAD = (
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "State", "Submit", "Eligible"),
    *("Start", "End", "TimelimitRaw", "AllocCPUS", "AllocTRES", "SubmitLine"),
)
T = 1_772_438_400
CHAIN = (
    # Number, submitted, eligible, start, run time, processors, predecessor: as fcfs:easy plays it
    # on 8 processors. Jobs 4 and 5 are in the queue before 2 and 3, which wait for others to end.
    (1, 0, 0, 0, 600, 8, None),
    (2, 10, 600, 660, 500, 8, 1),
    (3, 20, 1160, 1210, 300, 8, 2),
    (4, 30, 30, 600, 60, 4, None),
    (5, 900, 900, 1160, 50, 4, None),
)
WAITS = [start - eligible for _, _, eligible, start, *_ in CHAIN]
CHAIN_SITE = "nodes:\n- {name: n, processors: 8}\npartitions:\n- {name: batch}\n"

PBS = (
    "05/28/2026 20:26:40;{kind};{job}.srv;user=ann queue=workq ctime=178000{came} "
    "etime=178000{came} start=178000{start} end=178000{end} Resource_List.ncpus={processors} "
    "Resource_List.walltime=01:00:00\n"
)
RERUN = (
    (7, "R", "0010", "0030", "0090", 8),
    (7, "E", "0010", "0100", "0160", 8),
    (6, "E", "0000", "0400", "0600", 16),
)


def write_chain(path: Path) -> Path:
    rows = ["\t".join(HEAD)]
    for number, submit, eligible, start, run, processors, after in CHAIN:
        times = [str(T + at) for at in (submit, eligible, start, start + run)]
        held = f"cpu={processors},node=1"
        line = "sbatch " + (f"-d afterok:{after} a.sh" if after else "a.sh")
        cells = [str(number)] * 2 + ["ann", "phys", "batch", "COMPLETED", *times, "30"]
        rows.append("\t".join([*cells, str(processors), held, line]))
    path.write_text("\n".join(rows) + "\n")
    return path


def run(capsys: Shown, *line: object) -> Any:
    assert cli.run(cli.metasched, [*map(str, line), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def schedules(out: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Every table with starts and finishes that a command wrote."""
    for path in sorted(out.glob("*.csv")):
        table = pd.read_csv(path)
        if {"start", "finish"} <= set(table):
            yield path.stem, table


def held_at_most(jobs: pd.DataFrame) -> int:
    """Processors that jobs hold at once."""
    times = np.concatenate([jobs["finish"], jobs["start"]])
    change = np.concatenate([-jobs["processors"], jobs["processors"]])
    return int(change[np.argsort(times, kind="stable")].cumsum().max())


def check(out: Path, machine: int, count: int) -> dict[str, pd.DataFrame]:
    found = dict(schedules(out))
    assert len(found) == count
    for name, jobs in found.items():
        assert (jobs["start"] >= jobs["eligible"]).all(), name
        assert (jobs["eligible"] >= jobs["submit"]).all(), name
        assert (jobs["wait"] == jobs["start"] - jobs["eligible"]).all(), name
        assert (jobs["finish"] == jobs["start"] + jobs["duration"]).all(), name
        assert held_at_most(jobs) <= machine, name
    return found


@pytest.fixture
def tables_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take most of the time, and are drawn of the chain of jobs."""
    monkeypatch.setattr(pictures, "_draw", lambda *_, **__: Figure())


@pytest.fixture
def chain(tmp_path: Path) -> list[str]:
    """A log in which jobs wait for others, and its site, as arguments of commands."""
    (tmp_path / "site.yaml").write_text(CHAIN_SITE)
    return [str(write_chain(tmp_path / "jobs.txt")), "--site", str(tmp_path / "site.yaml")]


def test_a_chain_of_jobs_is_written_as_it_was_played(
    chain: list[str], tmp_path: Path, capsys: Shown
) -> None:
    out = tmp_path / "out"
    found = run(capsys, "replay", *chain, *POLICIES, "--out", out)
    tables = check(out, 8, 4)
    for name, jobs in tables.items():
        first, second, third = (jobs[jobs["line"] == line].iloc[0] for line in (2, 3, 4))
        assert second["eligible"] == max(first["finish"], second["submit"]), name
        assert third["eligible"] == max(second["finish"], third["submit"]), name
    recorded = tables["schedule-as-recorded"].sort_values("line")
    assert (recorded["start"] - T).tolist() == [start for _, _, _, start, *_ in CHAIN]
    assert recorded["wait"].tolist() == WAITS == [0, 60, 50, 570, 260]
    rows = {row["policy"]: row for row in found["replay"]}
    assert rows["as recorded"]["mean_wait"] == pytest.approx(np.mean(WAITS))
    assert run(capsys, "trace", *chain, "--out", tmp_path / "trace")["partitions"][0]["held"] == 8
    assert check(tmp_path / "trace", 8, 1)["schedule-as-recorded"]["wait"].sum() == sum(WAITS)


def test_a_log_that_a_rule_made_is_recognized_although_jobs_wait_for_others(
    chain: list[str], capsys: Shown
) -> None:
    (row,) = run(capsys, "replay", *chain, "--calibrate", "--policies", "fcfs:easy")["fidelity"]
    assert (row["recorded"], row["simulated"]) == (188, 188)
    assert (row["difference"], row["gain"]) == (0, 1)
    trust = run(capsys, "whatif", *chain, "--change", "policy=sjf:easy")["trust"]
    assert (trust["recorded"], trust["simulated"], trust["gain"]) == (188, 188, 1)
    assert trust["grade"] == "good"


def test_jobs_that_wait_for_nothing_but_others_agree_with_the_record(
    golden: Path, capsys: Shown
) -> None:
    folder = stored(golden.parent / "field" / "hpc4")
    log, site = folder / "dependency_chain.txt", folder / "dependency_chain.yaml"
    line = ["replay", str(log), "--site", str(site), "--calibrate", "--policies", "fcfs:easy"]
    found = run(capsys, *line)
    assert found["verdict"] == "good"
    assert (found["fidelity"][0]["recorded"], found["fidelity"][0]["simulated"]) == (0, 0)
    assert cli.run(cli.metasched, line) == 0
    assert "nan" not in capsys.readouterr().out


@pytest.mark.usefixtures("tables_alone")
def test_a_predecessor_that_the_site_cannot_run_is_none(tmp_path: Path, capsys: Shown) -> None:
    log, site = write_chain(tmp_path / "jobs.txt"), tmp_path / "site.yaml"
    site.write_text(CHAIN_SITE.replace("batch}", "batch, max_time_s: 1800}"))
    first, rest = log.read_text().split("\t30\t8\t", 1)
    log.write_text(f"{first}\t31\t8\t{rest}")
    run(capsys, "replay", log, "--site", site, "--policies", "fcfs:easy", "--out", tmp_path / "out")
    for jobs in check(tmp_path / "out", 8, 2).values():
        assert jobs[jobs["line"] == 3]["eligible"].item() == T + 600


@pytest.mark.usefixtures("tables_alone")
def test_partitions_hold_no_more_than_their_nodes(tmp_path: Path, capsys: Shown) -> None:
    write_partitioned_log(tmp_path / "jobs.txt")
    (tmp_path / "site.yaml").write_text(SITE)
    site = ("--site", tmp_path / "site.yaml")
    for command, count in (("replay", 4), ("trace", 1)):
        more = POLICIES if command == "replay" else ()
        run(capsys, command, tmp_path / "jobs.txt", *site, *more, "--out", tmp_path / command)
        for name, jobs in check(tmp_path / command, 16 * 11, count).items():
            for partition, nodes in PARTITIONS.items():
                assert held_at_most(jobs[jobs["queue"] == partition]) <= 16 * len(nodes), name
            shared = jobs[jobs["queue"].isin(["main", "long"])]
            assert held_at_most(shared) <= 16 * 8, name


@pytest.mark.usefixtures("tables_alone")
@pytest.mark.parametrize("site", [True, False])
def test_runs_of_a_requeued_job(site: bool, tmp_path: Path, capsys: Shown) -> None:
    names = ("job", "kind", "came", "start", "end", "processors")
    log = tmp_path / "20260528"
    log.write_text("".join(PBS.format(**dict(zip(names, one, strict=True))) for one in RERUN))
    (tmp_path / "site.yaml").write_text("nodes:\n- {name: n, count: 2, processors: 8}\n")
    machine = ("--site", tmp_path / "site.yaml") if site else ("--processors", 16)
    for command, count in (("replay", 4), ("trace", 1)):
        more = POLICIES if command == "replay" else ()
        run(capsys, command, log, *machine, *more, "--out", tmp_path / command)
        check(tmp_path / command, 16, count)
