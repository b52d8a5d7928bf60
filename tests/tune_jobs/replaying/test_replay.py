"""Whole logs in one call: every rule by name, trained runs, killed jobs, what is left out."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, summarize
from cluster_env.objectives import get_objective
from cluster_env.task import Task
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.bounds import read_bound
from cluster_env.worlds.hpc.workloads import HPCLog, LublinWorkload
from meta.adaptation import untrained_policy
from rllib_configs.config.loading import load_config, write_config
from rllib_configs.policy_files import write_policy
from tests.golden import stored
from tests.tune_jobs.replaying.site_log import write_site_log
from tune_jobs import cli

pytestmark = pytest.mark.usefixtures("as_in_plans")

MACHINE = ("--processors", "16", "--gpus", "4")
Shown = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site_log(tmp_path_factory.mktemp("site") / "jobs.csv", 400)


def replayed(capsys: Shown, *args: object) -> dict:
    assert cli.run(cli.metasched, ["replay", *map(str, args), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def by_policy(found: dict, sheet: str = "replay") -> dict[str, dict]:
    return {row["policy"]: row for row in found[sheet]}


def test_the_numbers_are_those_of_the_evaluation(log: Path, capsys: Shown) -> None:
    world = HPC(processors=16, gpus=4)
    workload = HPCLog(log, world.capacity, world.resources, whole=True)
    (jobset,) = sample_jobsets(workload, 0, Split.HELD_OUT, [0])
    names = ("fcfs:strict", "sjf:skip", "wfp3:conservative", "saf:strict")
    found = by_policy(replayed(capsys, log, *MACHINE, "--policies", ",".join(names)))
    assert list(found) != list(names)  # the lowest slowdown first
    assert found.keys() == set(names)
    for name in names:
        schedule = evaluate(get_heuristic(name, world), [jobset], world)
        expected = summarize(schedule, metrics=world_metrics()).means
        for ours, theirs in {
            "bounded_slowdown": "bounded_slowdown",
            "mean_wait": "wait",
            "longest_wait": "longest_wait",
            "turnaround": "completion_time",
            "utilization": "utilization",
            "to_end": "utilization_to_end",
            "makespan": "makespan",
        }.items():
            assert found[name][ours] == pytest.approx(expected[theirs]), (name, ours)


def world_metrics() -> tuple[str, ...]:
    from cluster_env.worlds.hpc import SPEC

    return SPEC.metrics


def test_without_a_name_the_baselines_play(log: Path, capsys: Shown) -> None:
    from cluster_env.worlds.hpc import SPEC

    assert by_policy(replayed(capsys, log, *MACHINE)).keys() == set(SPEC.baselines)


def test_groups_add_up_to_all(log: Path, capsys: Shown) -> None:
    found = replayed(capsys, log, *MACHINE, "--policies", "fcfs")
    (whole,), (sizes,), users = found["replay"], found["by-size"], found["by-user"]
    num = np.array([sizes[f"jobs_{size}"] for size in ("narrow", "medium", "wide")])
    means = [sizes[f"mean_wait_{size}"] for size in ("narrow", "medium", "wide")]
    assert num.sum() == sum(row["jobs"] for row in users) == 400
    assert np.average(means, weights=num) == pytest.approx(whole["mean_wait"])
    waits = [row["mean_wait fcfs"] for row in users]
    assert np.average(waits, weights=[row["jobs"] for row in users]) == pytest.approx(
        whole["mean_wait"]
    )
    assert sum(row["of_work"] for row in users) == pytest.approx(1)


def test_jobs_may_be_killed_when_their_estimate_is_over(tmp_path: Path, capsys: Shown) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("arrival,duration,processors,estimate\n0,100,1,40\n0,10,1,20\n")
    line = (path, "--processors", "1", "--policies", "fcfs")
    assert replayed(capsys, *line)["replay"][0]["makespan"] == 110
    assert replayed(capsys, *line, "--kill-at-estimate", "true")["replay"][0]["makespan"] == 50


def test_what_does_not_fit_is_left_out_and_said(tmp_path: Path, capsys: Shown) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("arrival,duration,processors\n0,100,1\n5,10,9\n6,10,2\n")
    found = replayed(capsys, path, "--processors", "4", "--policies", "fcfs")
    assert found["jobs"] == 2
    reason = "is larger than the machine of 4 processors"
    assert found["dropped"] == [{"count": 1, "reason": reason}]
    assert cli.run(cli.metasched, ["replay", str(path), "--processors", "4"]) == 0
    assert f"left out: 1 because the job {reason}" in capsys.readouterr().out


def test_the_size_of_the_machine_comes_from_the_log_if_it_says_it(
    tmp_path: Path, capsys: Shown
) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 2\n" + "1 0 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 -1 -1 -1\n" * 2)
    assert by_policy(replayed(capsys, path, "--policies", "fcfs"))["fcfs"]["makespan"] == 200
    wide = replayed(capsys, path, "--policies", "fcfs", "--processors", "4")
    assert by_policy(wide)["fcfs"]["makespan"] == 100


def test_trained_runs_play_in_the_world_that_they_know(
    log: Path, tmp_path: Path, capsys: Shown
) -> None:
    changes = {"task.world.processors": 16, "task.world.gpus": 4, "task.workload.trace": str(log)}
    config = load_config("hpc-smoke", {**changes, "training.hidden": 4})
    for name in ("one", "two"):
        policy = untrained_policy(config, len(name))
        write_policy(policy.weights, config, tmp_path / name / "policy")
        write_config(config, tmp_path / name / "config.yaml")
    found = by_policy(replayed(capsys, log, "--policies", f"fcfs,{tmp_path}/*", "--seed", "3"))
    assert found.keys() == {"fcfs", "one", "two"}
    assert found["one"]["jobs"] == 400
    assert found["one"]["unfinished"] == 0


def test_recorded_waits_are_described(golden: Path, capsys: Shown) -> None:
    path = stored(golden / "traces" / "swf" / "theta_train.swf.gz")
    assert cli.run(cli.metasched, ["trace", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    with np.load(golden / "traces" / "swf" / "theta_train_fields.npz") as fields:
        wait, users = fields["fields"][:, 2], fields["fields"][:, 11]
    facts = found["facts"]
    assert facts["mean wait, as recorded"] == pytest.approx(wait.mean())
    assert facts["longest wait, as recorded"] == wait.max()
    assert facts["users"] == np.unique(users).size == len(found["by-user"])
    assert facts["dates (UTC)"] == "2018-01-01 to 2018-01-28"
    assert facts["processors"] == 4360
    assert [row["week"] for row in found["by-week"]][:2] == ["2018-01-01", "2018-01-08"]


def test_trace_says_what_was_dropped_and_why(golden: Path, capsys: Shown) -> None:
    path = stored(golden / "traces" / "swf" / "nasty.swf")
    assert cli.run(cli.metasched, ["trace", str(path)]) == 0
    shown = capsys.readouterr().out
    section = shown.partition("Left out\n")[2].partition("\n\n")[0]
    head, *rows, note = section.splitlines()
    assert head.split()[-4:] == ["rows", "first", "in", "line"]
    assert note == "  (of 10 rows; jobs: 6)"
    assert [line.rsplit(None, 2) for line in rows] == [
        ["has no run time above 0", "2", "7"],
        ["asks for no processor", "1", "11"],
        ["is larger than the machine of 64 processors", "1", "14"],
    ]


def test_a_bound_on_waits_is_said_with_those_whom_it_moved(log: Path, capsys: Shown) -> None:
    rule = ("--policies", "saf:easy")
    free = by_policy(replayed(capsys, log, *MACHINE, *rule))["saf:easy"]
    found = replayed(capsys, log, *MACHINE, *rule, "--max-wait", "1h")
    assert 3600 < by_policy(found)["saf:easy"]["longest_wait"] < free["longest_wait"]
    (said,) = [line for line in found["remarks"] if "goes first" in line]
    assert re.fullmatch(
        r"a job that has waited longer than 60 min goes first: \d+ under saf:easy", said
    )


@pytest.mark.parametrize(("whole", "end"), [(True, 0.5), (False, 0.8)])
def test_a_bound_may_be_a_multiple_of_the_longest_wait_before(
    log: Path, whole: bool, end: float
) -> None:
    """In the first half of a log that is replayed, and before the held-out jobs elsewhere."""
    world = HPC(processors=16, gpus=4, max_wait=7)
    workload = HPCLog(log, world.capacity, world.resources, whole=whole)
    task = Task(world, workload, get_objective("bounded_slowdown"))
    earlier = workload.recorded.between(0.0, end).jobset()
    reference = replace(world, max_wait=0)
    schedule = evaluate(get_heuristic("fcfs:easy", reference), [earlier], reference)
    longest = int((schedule.start - schedule.arrival).max())
    assert longest > 0
    assert read_bound("x1.5", lambda: task) == round(1.5 * longest)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5", "a time is 0 or a number with s, m, h or d, such as 12h or 5d, not '5'"),
        ("x", "a multiple of a wait is written like x2, not 'x'"),
        ("xnan", "a multiple of a wait"),
        ("30000d", "max_wait must be 0"),
    ],
)
def test_a_bound_that_is_none_is_refused(log: Path, capsys: Shown, text: str, said: str) -> None:
    assert cli.run(cli.metasched, ["replay", str(log), *MACHINE, "--max-wait", text]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_multiple_needs_a_log() -> None:
    task = Task(HPC(), LublinWorkload(256, jobs=8), get_objective("bounded_slowdown"))
    with pytest.raises(InputError, match="these jobs come from none; give a time, such as 5d"):
        read_bound("x2", lambda: task)


def test_start_times_are_measured_in_the_later_half(
    log: Path, capsys: Shown, tmp_path: Path
) -> None:
    words = (*MACHINE, "--starts", "--instants", "10", "--policies", "fcfs:easy,sjf:easy")
    found = replayed(capsys, log, *words, "--out", tmp_path)["starts"]
    by_size = {(row["policy"], row["size"]): row for row in found}
    assert {policy for policy, _ in by_size} == {"fcfs:easy", "sjf:easy"}
    for policy in ("fcfs:easy", "sjf:easy"):
        rows = [by_size[policy, size] for size in ("narrow", "medium", "wide")]
        everybody = by_size[policy, "all"]
        assert sum(row["jobs"] for row in rows) == everybody["jobs"] > 20
        assert everybody["covered_50"] < everybody["covered_90"] <= 1
        assert everybody["less_error"] == pytest.approx(
            1 - everybody["error"] / everybody["error_of_estimates"]
        )
    assert (tmp_path / "starts.csv").read_text().count("\n") == len(found) + 1


def test_start_times_of_what_cannot_be_played_on_are_refused(log: Path, capsys: Shown) -> None:
    refused = {
        ("--policies", "rls:sjf"): "was removed",
        ("--policies", "fcfs", "--calibrate"): "give one of them",
    }
    for words, said in refused.items():
        command = ["replay", str(log), *MACHINE, "--starts", "--instants", "10", *words]
        assert cli.run(cli.metasched, command) == 2
        assert said in capsys.readouterr().err
