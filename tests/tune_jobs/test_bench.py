"""Benchmarks: a reference that computes the same, and JSON that a program can read."""

import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import yaml

from cluster_env.core.seeding import Split
from cluster_env.objectives import get_objective
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.image import image
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from rllib_configs.worlds.deeprm.plain import PlainCluster
from tests.cluster_env.worlds.deeprm.stepping import step_all
from tests.tune_jobs.untrained_scorers import make_family
from tune_jobs import bench, cli
from tune_jobs.benchmarks import measuring, replay, reporting, training
from tune_jobs.benchmarks.measuring import Entry, Sample, rate, rates

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
    clock = iter([0.0, 0.5, 1.0])
    monkeypatch.setattr(measuring.time, "process_time", lambda: next(clock))
    assert rate(lambda: 30.0, seconds=1.0) == 60.0


def test_both_are_warmed_up_and_measured_in_turns():
    calls = []
    ours, theirs = rates(
        lambda: calls.append("a") or 1.0, lambda: calls.append("b") or 1.0, 1e-9, rounds=3
    )
    assert "".join(calls) == "ab" * 4
    assert len(ours.values) == len(theirs.values) == 3


def test_the_ratio_says_how_many_times_better():
    fast, slow = Sample((9.0, 10.0, 30.0)), Sample((2.0,))
    assert Entry("x", "steps/s", fast, "", slow).ratio == 5
    assert Entry("x", "s", slow, "", fast, higher_is_better=False).ratio == 5
    assert Entry("x", "s", fast, "", slow).as_dict()["max"] == 30


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
    assert entries.keys() == {"simulator.steps", "simulator.image_steps", "machine"}


def test_rules_are_measured_against_a_plain_event_loop_with_the_same_schedule(monkeypatch):
    entries = {entry.name: entry for entry in replay.measure(0.02, jobs=3000, plain_jobs=500)}
    easy = entries["replay.fcfs_easy"]
    assert easy.ratio > 25  # well above 100, where the jobs are many and nothing disturbs it
    assert easy.measured.median > 4 * easy.parts["lean_python_jobs_per_s"]
    assert set(easy.parts) >= {"saf_easy_jobs_per_s", "sjf_skip_jobs_per_s"}
    assert 0.5 < entries["replay.large_machine"].ratio < 2
    monkeypatch.setattr(replay, "lean_fcfs_easy", lambda *jobs: [0] * 500)
    with pytest.raises(RuntimeError, match="different schedules"):
        replay.measure(0.02, jobs=3000, plain_jobs=500)


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
    for name in ("sampling.deeprm_mlp", "sampling.hpc"):
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
    entries = measured(capsys, "training", "--seconds", "0.1")
    entry = entries["training.deeprm_iteration"]
    assert entries["training.deeprm_learning"]["reference"] == "sampling in the same iterations"
    assert entry["unit"].startswith("s for 100 jobsets x 20 episodes")
    assert "not measured" in entry["reference"]
    assert entry["reference_value"] == 80


def test_parts_of_meta_training_by_hand(monkeypatch):
    """320 episodes of 10 decisions: of 8 s 4 in sampling, 1 in adapting and 3 in updates."""
    seen = []

    def iterate(config, seconds):
        seen.append(config)
        rows = {
            "train/decisions_per_episode": 10.0,
            "time/sample_s": 5.0 if config.training.inner_steps else 2.0,
            "time/adapt_s": 1.0 if config.training.inner_steps else 0.0,
            "time/learn_s": 3.0 if config.training.inner_steps else 2.0,
            "time/iteration_s": 8.0 if config.training.inner_steps else 4.0,
        }
        return [1.0], [rows]

    monkeypatch.setattr(training, "_iterate", iterate)
    monkeypatch.setattr(training, "ray_session", lambda config: nullcontext())
    monkeypatch.setattr(training, "num_local_cpus", lambda: 2)
    found = {entry.name: entry for entry in training.measure(1.0, "deeprm-maml")}
    assert all(config.training.warm_up == 0 for config in seen)
    assert [config.training.inner_steps for config in seen] == [1, 0]
    assert [config.training.episodes_per_jobset for config in seen] == [5, 10]
    decisions = 8 * 2 * 4 * 5 * 10
    expected = {
        "training.maml_iteration": (8, 4, None),
        "training.maml_sampling": (decisions / 4, decisions / 2, 1 / 2),
        "training.maml_adaptation": (decisions / 2, decisions / 4, 1 / 8),
        "training.maml_update": (decisions / 3, decisions / 2, 3 / 8),
    }
    assert found.keys() == expected.keys()
    for name, (value, reference, share) in expected.items():
        entry = found[name].as_dict()
        assert (entry["value"], entry["reference_value"]) == pytest.approx((value, reference))
        assert entry.get("share") == (None if share is None else pytest.approx(share))
    assert found["training.maml_iteration"].ratio == 0.5
    assert "8 tasks x 2 stages x 4 jobsets x 5 episodes" in found["training.maml_iteration"].unit
    assert "37.5% of an iteration" in reporting.describe(found["training.maml_update"])


@pytest.mark.integration
@pytest.mark.service
@pytest.mark.slow
def test_meta_training_is_measured_part_by_part(tmp_path, capsys, monkeypatch, local_ray):
    monkeypatch.setattr("tune_jobs.benchmarks.training.ROUNDS", 1)
    monkeypatch.setattr("tune_jobs.benchmarks.training._WARM_UPS", 1)
    small = {
        "name": "small",
        "training": {
            **{"algorithm": "maml", "network": "set_scorer", "iterations": 9, "hidden": 8},
            **{"jobsets": 2, "episodes_per_jobset": 2, "epochs": 1},
        },
        "meta": {"family": str(make_family(tmp_path / "family.yaml")), "tasks": 2},
    }
    preset = tmp_path / "small.yaml"
    preset.write_text(yaml.safe_dump(small))
    entries = measured(capsys, "training", "--seconds", "0.01", "--preset", str(preset))
    parts = ("sampling", "adaptation", "update")
    names = [f"training.maml_{part}" for part in ("iteration", *parts)]
    assert list(entries) == [*names, "machine"]
    assert sum(entries[f"training.maml_{part}"]["share"] for part in parts) == pytest.approx(1)


def test_efficiency_by_hand():
    """Two units of 50 ms, and 4 updates that ask half of the units, 10 ms each, on 10 runners."""
    from tune_jobs.benchmarks.runners import _Unit, efficiency

    plain = _Unit(None, None, (), (None, 0.05), (None, 0.0), 1.0)
    assert efficiency(plain, 10, cpu_s=0.001, round_s=0.002) == pytest.approx(100 / (100 + 12))
    learning = _Unit(None, None, (1, 2, 3, 4), (None, 0.05), (None, 0.01), 0.5)
    work = 100 + 4 * 10
    assert efficiency(learning, 10, 0.001, 0.002) == pytest.approx(work / (work + 5 * 12))


@pytest.mark.integration
@pytest.mark.service
@pytest.mark.slow
def test_more_runners_are_measured_beside_idle_ones(capsys, monkeypatch, local_ray):
    monkeypatch.setattr("tune_jobs.benchmarks.runners.ROUNDS", 2)
    monkeypatch.setattr("tune_jobs.benchmarks.runners.IDLE", (1, 3))
    entries = measured(capsys, "runners", "--preset", "hpc-smoke")
    names = ("training.runners_2_over_1", "training.runners_4_over_1", "runners.driver_cpu")
    assert entries.keys() == {*names, "machine"}
    parts = entries["runners.driver_cpu"]["parts"]
    assert parts["rounds"] == 13
    assert 0 < parts["efficiency_256_percent"] < parts["efficiency_32_percent"] < 100


def test_people_get_a_table(capsys):
    assert cli.run(bench.command, ["simulator", "--seconds", "0.05"]) == 0
    shown = capsys.readouterr().out
    assert "simulator.steps: " in shown
    assert "times as good as" in shown
    assert "machine: " in shown


@pytest.mark.parametrize(
    "args", [["simulatr"], ["--seconds", "0"], ["training", "--preset", "deeprn"]]
)
def test_bad_input_is_refused(args, capsys):
    assert cli.run(bench.command, args) == 2
    assert capsys.readouterr().err.count("\n") == 1
