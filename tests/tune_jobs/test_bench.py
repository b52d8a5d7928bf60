"""Benchmarks: a reference that computes the same, and JSON that a program can read."""

import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.image import image
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from cluster_env.worlds.hpc import HPC
from rllib_configs.worlds.deeprm.plain import PlainCluster
from tests.cluster_env.worlds.stepping import step_all
from tests.tune_jobs.untrained_scorers import make_family
from tune_jobs import bench, cli
from tune_jobs.benchmarks import measuring, replay, reporting, simulator, training
from tune_jobs.benchmarks.measuring import Entry, rate, rates
from tune_jobs.benchmarks.plain_easy import LoopJob, plain_easy

KEYS = {"name", "value", "unit", "reference", "reference_value", "ratio"}


@pytest.mark.parametrize(
    "workload",
    [
        BimodalWorkload(load=0.7),
        BimodalWorkload(load=1.8),
        BimodalWorkload(load=1.2, window=30, cluster=Cluster((7, 12), 16, 4, 9)),
    ],
    ids=["usual", "overloaded", "other cluster"],
)
def test_the_plain_cluster_computes_what_the_compiled_one_does(workload):
    jobsets = sample_jobsets(workload, 1, Split.TRAIN, range(3))
    simulator = DeepRM(workload.cluster).simulator()
    rng = np.random.default_rng(0)
    for jobset in jobsets:
        simulator.load([jobset], get_objective("slowdown"))
        plain = PlainCluster(workload.cluster, jobset)
        over = False
        while not over:
            np.testing.assert_array_equal(
                plain.image(), image(simulator.layout, simulator.states)[0]
            )
            action = int(rng.integers(workload.cluster.num_actions))
            rewards, ended = step_all(simulator, np.array([action], np.int32))
            reward, over = plain.step(action)
            assert reward == pytest.approx(rewards[0], abs=1e-12)
            assert over == ended[0]


def test_a_rate_is_work_over_time(monkeypatch):
    clock = iter([0.0, 0.5, 1.5])
    monkeypatch.setattr(measuring.time, "process_time", lambda: next(clock))
    assert rate(lambda: 30.0, seconds=1.0) == 40.0  # the last call ends when it ends


def test_both_are_warmed_up_and_measured_in_turns():
    calls = []
    ours, theirs = rates(
        lambda: calls.append("a") or 1.0, lambda: calls.append("b") or 1.0, 1e-9, rounds=3
    )
    assert "".join(calls) == "ab" * 4
    assert len(ours) == len(theirs) == 3


def test_the_ratio_says_how_many_times_better():
    fast, slow = (9.0, 10.0, 30.0), (2.0,)
    assert Entry("x", "steps/s", fast, "", slow).ratio == 5
    assert Entry("x", "s", slow, "", fast, higher_is_better=False).ratio == 5
    shown = Entry("x", "s", fast, "", slow).as_dict()
    assert [shown[name] for name in ("min", "value", "max")] == [9, 10, 30]


JOB = st.tuples(st.integers(0, 9), st.integers(1, 30), st.integers(1, 30), st.integers(1, 8))


@given(st.lists(JOB, min_size=1, max_size=20))
def test_the_plain_loop_and_the_simulator_agree_whatever_was_estimated(jobs):
    gap, run, estimate, size = (np.array(column) for column in zip(*jobs, strict=True))
    arrival = np.cumsum(gap)
    plain = [LoopJob(*map(int, row)) for row in zip(arrival, run, estimate, size, strict=True)]
    plain_easy(plain, 8)
    jobset = JobSet.of(arrival, run, size[:, None], attributes={"estimate": estimate})
    world = HPC(processors=8)
    schedule = evaluate(get_heuristic("fcfs:easy", world), [jobset], world)
    starts = dict(zip(schedule.job.tolist(), schedule.start.tolist(), strict=True))
    first = int(arrival[0]) if len(arrival) else 0
    assert [starts[k] for k in range(len(plain))] == [
        job.start - first + int(jobset.arrival[0]) for job in plain
    ]


def measured(capsys, *args: str) -> dict[str, dict]:
    assert cli.run(bench.command, ["--json", *args]) == 0
    captured = capsys.readouterr()
    entries = json.loads(captured.out)
    assert entries[-1]["name"] == "machine"
    assert entries[-1]["cores"] >= 1
    for entry in entries[:-1]:
        assert entry.keys() >= KEYS
        better = entry["value"] / entry["reference_value"]
        seconds = entry["unit"].startswith(("s ", "ms "))
        assert entry["ratio"] == pytest.approx(1 / better if seconds else better)
    return {entry["name"]: entry for entry in entries}


def test_the_compiled_simulator_is_measured_against_the_plain_one(capsys):
    entries = measured(capsys, "simulator", "--seconds", "0.05")
    assert entries.keys() == {
        *("simulator.steps", "simulator.image_steps", "simulator.graphs", "machine")
    }
    assert entries["simulator.graphs"]["ratio"] > 30  # above 150, where all is quiet


def test_rules_are_measured_against_a_plain_event_loop_with_the_same_schedule(monkeypatch):
    sizes = {"jobs": 3000, "plain_jobs": 500, "backlog_jobs": 200, "site_jobs": 500}
    entries = {entry.name: entry for entry in replay.measure(0.02, **sizes)}
    sites = {f"replay.{name}" for name, *_ in replay.SITES}
    assert entries.keys() == {"replay.fcfs_easy", "replay.backlog"} | sites
    assert entries["replay.fcfs_easy"].ratio > 25  # above 60, where jobs are many and all is quiet
    assert entries["replay.backlog"].ratio > 25
    monkeypatch.setattr(replay, "plain_easy", lambda jobs, processors: None)
    with pytest.raises(RuntimeError, match="different schedules"):
        replay.measure(0.02, **sizes)


@pytest.mark.integration
@pytest.mark.slow
def test_our_runner_is_measured_against_rllib_s(capsys, local_ray, monkeypatch):
    from tune_jobs.benchmarks import sampling

    # Not with 64 and 256 environments, which take 15 s to build; units of 2 episodes.
    sizes = ("training.jobsets=2", "training.jobsets_per_unit=1", "training.episodes_per_jobset=2")
    small = [replace(each, overrides=(*each.overrides, *sizes)) for each in sampling.SAMPLED]
    monkeypatch.setattr(sampling, "SAMPLED", small)
    monkeypatch.setattr(sampling, "NUM_ENVS", (1, 4))
    monkeypatch.setattr(sampling, "STEPS", 5)
    monkeypatch.setattr(sampling, "EPISODES", (*sizes, "task.workload.window=10"))
    entries = measured(capsys, "sampling", "--seconds", "0.01")
    for name in ("sampling.deeprm_mlp", "sampling.slot_scorer", "sampling.hpc"):
        assert "SingleAgentEnvRunner" in entries[name]["reference"]
        assert "(the best of 1, 4)" in entries[name]["reference"]
    assert "MultiAgentEnvRunner" in entries["sampling.panda"]["reference"]


@pytest.mark.integration
@pytest.mark.service
@pytest.mark.slow
def test_an_iteration_is_measured_in_seconds_and_its_reference_is_quoted(
    capsys, monkeypatch, local_ray
):
    monkeypatch.setattr("tune_jobs.benchmarks.training.ROUNDS", 1)
    monkeypatch.setattr("tune_jobs.benchmarks.training._WARM_UPS", 1)
    entries = measured(capsys, "training", "--seconds", "0.1", "--preset", "deeprm")
    entry = entries["training.deeprm_iteration"]
    assert entries["training.deeprm_learning"]["reference"] == "sampling in the same iterations"
    assert entry["unit"].startswith("s for 100 jobsets x 20 episodes")
    assert "not measured" in entry["reference"]
    assert entry["reference_value"] == 80


def test_an_iteration_of_meta_training_by_hand(monkeypatch):
    """Of 8 s 4 in sampling, 1 in adapting and 3 in updates; joint training takes 4."""
    configs = []

    def iterate(config, seconds):
        configs.append(config)
        meta = config.training.inner_steps
        return [1.0], [
            {
                "time/sample_s": 5.0 if meta else 2.0,
                "time/adapt_s": 1.0 if meta else 0.0,
                "time/learn_s": 3.0 if meta else 2.0,
                "time/iteration_s": 8.0 if meta else 4.0,
            }
        ]

    monkeypatch.setattr(training, "_iterate", iterate)
    monkeypatch.setattr(training, "ray_session", lambda config: nullcontext())
    monkeypatch.setattr(training, "num_local_cpus", lambda: 2)
    (entry,) = training.measure(1.0, "deeprm-maml")
    assert all(config.training.warm_up == 0 for config in configs)
    assert [config.training.inner_steps for config in configs] == [1, 0]
    assert [config.training.episodes_per_jobset for config in configs] == [5, 10]
    assert entry.name == "training.maml_iteration"
    assert entry.unit.startswith("s for 8 tasks x 2 stages x 4 jobsets x 5 episodes")
    assert (entry.measured, entry.reference_measured, entry.ratio) == ([8], [4], 0.5)
    assert [entry.parts[f"{part}_s"] for part in ("sample", "adapt", "learn")] == [4, 1, 3]
    assert "sample s 4, adapt s 1, learn s 3" in reporting.describe(entry)


@pytest.mark.integration
@pytest.mark.service
@pytest.mark.slow
def test_meta_training_is_measured(tmp_path, capsys, monkeypatch, local_ray):
    monkeypatch.setattr("tune_jobs.benchmarks.training.ROUNDS", 1)
    monkeypatch.setattr("tune_jobs.benchmarks.training._WARM_UPS", 1)
    small = {
        "name": "small",
        "training": {
            **{"algorithm": "maml", "network": "set_scorer", "iterations": 9, "hidden": 8},
            **{"jobsets": 2, "episodes_per_jobset": 2, "epochs": 1, "tasks": 2},
            "family": str(make_family(tmp_path / "family.yaml")),
        },
    }
    preset = tmp_path / "small.yaml"
    preset.write_text(yaml.safe_dump(small))
    entries = measured(capsys, "training", "--seconds", "0.01", "--preset", str(preset))
    assert list(entries) == ["training.maml_iteration", "machine"]
    assert all(seconds > 0 for seconds in entries["training.maml_iteration"]["parts"].values())


@pytest.mark.integration
@pytest.mark.service
@pytest.mark.slow
def test_more_runners_are_measured(capsys, monkeypatch, local_ray):
    monkeypatch.setattr("tune_jobs.benchmarks.runners.ROUNDS", 2)
    entries = measured(capsys, "runners", "--preset", "hpc-smoke")
    names = ("training.runners_2_over_1", "training.runners_4_over_1")
    assert entries.keys() == {*names, "machine"}
    assert entries[names[0]]["parts"].keys() >= {"mean", "processes_low", "iteration_2_ms"}


def test_people_get_a_table(capsys, monkeypatch):
    measured = [Entry("simulator.steps", "steps/s", (9.0, 10.0, 30.0), "a plain loop", (2.0,))]
    monkeypatch.setattr(simulator, "measure", lambda seconds: measured)
    assert cli.run(bench.command, ["simulator", "--seconds", "0.05"]) == 0
    shown = capsys.readouterr().out
    assert "simulator.steps: 10 steps/s [9 to 30] 5.0 times as good as 2: a plain loop" in " ".join(
        shown.split()
    )
    assert "machine: " in shown


@pytest.mark.parametrize(
    "args", [["simulatr"], ["--seconds", "0"], ["training", "--preset", "deeprn"]]
)
def test_bad_input_is_refused(args, capsys):
    assert cli.run(bench.command, args) == 2
    assert capsys.readouterr().err.count("\n") == 1
